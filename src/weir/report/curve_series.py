"""Throughput and p99 over the amount of load, for the charts of a run that varies it: what was measured, the law that fits it, and where
stacks change sides."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weir.findings import Measure, Point, RunFindings
from weir.findings.metrics import P99, THROUGHPUT
from weir.findings.points import where_text
from weir.findings.words import significant
from weir.report.series import Line
from weir.report.strips import colours_of

_LAW_POINTS = 48
_MS = 1e3


@dataclass(frozen=True, slots=True)
class CurveLine:
    """One stack; None where it was not measured."""

    name: str
    colour: int
    rate_rps: Line
    rate_low_rps: Line
    rate_high_rps: Line
    p99_ms: Line
    p99_low_ms: Line
    p99_high_ms: Line
    law_rps: Line
    """The universal scalability law, between the measured amounts as well; empty where it does not describe them."""


@dataclass(frozen=True, slots=True)
class CurveCrossing:
    """Where two stacks change sides on throughput."""

    at: float
    low: float | None
    high: float | None
    text: str


@dataclass(frozen=True, slots=True)
class CurveSeries:
    """Stacks over one amount of load, all else equal."""

    axis: str
    where: str
    amounts: list[float]
    """Where lines have values: the measured amounts, and those between on which laws are drawn."""
    measured: list[float]
    lines: list[CurveLine]
    crossings: list[CurveCrossing]
    sentence: str

    @property
    def has_times(self) -> bool:
        """Whether any p99 is known."""
        return any(value is not None for line in self.lines for value in line.p99_ms)


def curve_series(findings: RunFindings) -> list[CurveSeries]:
    """A chart for each set of points that differ in nothing but the amount of load."""
    together: dict[tuple[str, str, tuple[tuple[str, str], ...]], list[Point]] = {}
    for point in findings.points:
        if point.amount is not None:
            together.setdefault((point.axis, point.workload, tuple(sorted(point.coordinates.items()))), []).append(point)
    return [_curve(findings, points) for points in together.values() if len({point.amount for point in points}) > 1]


def _curve(findings: RunFindings, points: Sequence[Point]) -> CurveSeries:
    by_amount = {point.amount: point for point in points if point.amount is not None}
    measured = sorted(by_amount)
    between = np.geomspace(measured[0], measured[-1], _LAW_POINTS)
    amounts = sorted({*measured, *(round(float(amount), 3) for amount in between)})
    first = points[0]
    where = where_text(first.workload, first.coordinates)
    laws = {scaling.label: scaling.fitted for scaling in findings.scalings if scaling.where == where}
    colours = {label: colour for point in points for label, colour in colours_of(point).items()}
    names = {stack.label: stack.name for point in points for stack in point.stacks if stack.arm == "main"}
    lines = []
    for label, name in names.items():
        found = {amount: stack for amount, point in by_amount.items() for stack in point.stacks if stack.label == label}
        rates = {amount: stack.measure(THROUGHPUT) for amount, stack in found.items()}
        times = {amount: stack.measure(P99) for amount, stack in found.items()}
        law = laws.get(label)
        lines.append(
            CurveLine(
                name,
                colours[label],
                _line(amounts, rates, "value"),
                _line(amounts, rates, "low"),
                _line(amounts, rates, "high"),
                _line(amounts, times, "value", _MS),
                _line(amounts, times, "low", _MS),
                _line(amounts, times, "high", _MS),
                [] if law is None else [round(law.throughput(amount), 3) for amount in amounts],
            )
        )
    crossings = [
        CurveCrossing(crossing.at, crossing.low, crossing.high, f"{found.name} and {found.against_name}")
        for found in findings.break_evens
        if found.metric == THROUGHPUT and found.axis == first.axis and found.where == where
        for crossing in found.crossings
    ]
    return CurveSeries(first.axis, where, amounts, measured, lines, crossings, _sentence(findings, first.axis, where))


def _line(amounts: Sequence[float], measures: dict[float, Measure], part: str, divisor: float = 1.0) -> Line:
    values: Line = []
    for amount in amounts:
        value = getattr(measures[amount], part) if amount in measures else None
        values.append(None if value is None or not math.isfinite(value) else round(max(value, 0.0) / divisor, 4))
    return values


def _sentence(findings: RunFindings, axis: str, where: str) -> str:
    """In a few words; the findings below say it with what it rests on."""
    unit = "req/s" if axis == "rate_rps" else "connections"
    said = []
    for found in findings.break_evens:
        if (found.axis, found.where, found.metric) == (axis, where, THROUGHPUT):
            for crossing in found.crossings:
                interval = "" if not crossing.has_interval else f" ({_end(crossing.low)}–{_end(crossing.high)})"
                said.append(f"{found.name} and {found.against_name} change sides at {significant(crossing.at)} {unit}{interval}.")
    for scaling in findings.scalings:
        peak = scaling.fitted.peak_at if scaling.where == where and scaling.fitted is not None else None
        if peak is not None:
            said.append(f"{scaling.name} peaks at {significant(peak.value)} {unit}.")
    return " ".join(said) or "No two stacks change sides."


def _end(value: float | None) -> str:
    return "…" if value is None else significant(value)
