"""Computes charts of metrics over the amount of load or over a setting. A chart shows measured values, the fitted
scalability law, and amounts at which two stacks cross. A chart also marks loads that the generator may have limited."""

import math
from collections.abc import Sequence, Set
from dataclasses import dataclass

import numpy as np

from weir.findings import RunFindings
from weir.findings.formatting import amount as amount_text
from weir.findings.formatting import significant
from weir.findings.metrics import BY_KEY, CPU, MEAN, MEMORY, P99, THROUGHPUT
from weir.findings.point_types import Point, StackFindings
from weir.findings.sweep import CONNECTIONS, LOADS, RATE, AxisSeries, get_axis_unit, group_by_axis
from weir.findings.types import BreakEven
from weir.model.run_types import Trial
from weir.report.interval_plot import assign_colours
from weir.report.number_format import display
from weir.report.timeseries import Line
from weir.stats import Crossing

_LAW_POINTS = 48
_CPUS = "cpus"
"""Key of the chart of CPUs in use: CPU time per request × throughput. No metric has this key."""
_FAILED = "failed"
_METRICS = (THROUGHPUT, _FAILED, P99, MEAN, _CPUS, CPU, MEMORY)
_TITLES = {_CPUS: ("CPUs in use", "CPUs"), _FAILED: ("requests that failed", "%")}
_LOGARITHMIC = (P99, MEAN)
_AXES = {CONNECTIONS: "connections", RATE: "arrivals a second"}
"""Names of the load axes, for headings. A setting's axis has the setting's name from the study file."""
_GENERATOR_REASONS = {"generator limit", "generator busy"}
"""Kinds of verdict reasons. A reason of these kinds means that the generator may have limited the trial."""


@dataclass(frozen=True, slots=True)
class CurveLine:
    """The line of one stack, with a value for each of `CurveSeries.amounts`; None at amounts without a measurement."""

    name: str
    colour: int
    values: Line
    low: Line
    high: Line
    law: Line
    """Throughput by the universal scalability law; empty if the law does not fit."""


@dataclass(frozen=True, slots=True)
class CurveChart:
    """The chart of one metric over the amount of load or over a setting."""

    metric: str
    title: str
    unit: str
    logarithmic: bool
    lines: list[CurveLine]


@dataclass(frozen=True, slots=True)
class CurveCrossing:
    """The amount of load, or the setting's value, where one stack overtakes another on a metric."""

    metric: str
    at: float
    low: float | None
    high: float | None
    text: str
    """A sentence with the two stacks, the amount of the crossing, and the interval of that amount."""


@dataclass(frozen=True, slots=True)
class CurveKnee:
    """The amount of load above which a stack's throughput grows only a little, according to the fitted law."""

    name: str
    colour: int
    at: float


@dataclass(frozen=True, slots=True)
class CurveSeries:
    """The charts of a set of points that differ only in the amount of load, or only in one setting."""

    axis: str
    where: str
    unit: str
    amounts: list[float]
    """The positions on the axis: the measured amounts, and more amounts for smooth lines of the fitted laws."""
    measured: list[float]
    charts: list[CurveChart]
    """The charts with at least one value; the chart of throughput is the first."""
    crossings: list[CurveCrossing]
    knees: list[CurveKnee]
    """The knees that lie between the measured amounts."""
    limited: list[float]
    """Amounts at which the generator may have limited at least one trial."""
    sentence: str
    """The text that follows the legend under the first chart."""

    @property
    def heading(self) -> str:
        return _AXES.get(self.axis, self.axis)

    def chart_sentence(self, chart: CurveChart) -> str:
        """Returns the text below a chart other than the first: lowest value, highest value, and crossings."""
        return " ".join([self._levels(chart), *_changes_of_sides(self.crossings, chart.metric)])

    def _levels(self, chart: CurveChart) -> str:
        """Returns a sentence with the lowest and the highest value at the largest amount that all stacks have. Without
        such an amount, or with one stack, returns each stack's first and last value."""
        for amount in reversed(self.measured):
            at = self.amounts.index(amount)
            known = sorted((value, line.name) for line in chart.lines if (value := line.values[at]) is not None)
            if len(known) == len(chart.lines) > 1:
                (least, first), (most, last) = known[0], known[-1]
                return (
                    f"At {amount_text(amount)} {self.unit}, {first} has the lowest value ({significant(least)} "
                    f"{chart.unit}), and {last} has the highest ({significant(most)} {chart.unit})."
                )
        courses = [course for line in chart.lines if (course := self._course(line, chart.unit))]
        return f"{'; '.join(courses)}." if courses else "Nothing was measured."

    def _course(self, line: CurveLine, unit: str) -> str:
        """Returns the values of a stack at its smallest and largest measured amount as words; empty without values."""
        values = dict(zip(self.amounts, line.values, strict=True))
        known = [(amount, value) for amount in self.measured if (value := values[amount]) is not None]
        if not known:
            return ""
        (from_amount, start), (to_amount, end) = known[0], known[-1]
        if from_amount == to_amount:
            return f"{line.name} has {significant(end)} {unit} at {amount_text(to_amount)} {self.unit}"
        return (
            f"{line.name} goes from {significant(start)} {unit} at {amount_text(from_amount)} {self.unit} "
            f"to {significant(end)} {unit} at {amount_text(to_amount)}"
        )


def build_curves(findings: RunFindings, trials: Sequence[Trial]) -> list[CurveSeries]:
    """Returns the charts of each set of points that differ in one number: first the charts over the amount of load. If
    the load varies too, only settings along which two stacks cross have charts. `trials` show at which amounts
    the generator may have been the limit."""
    kinds = {trial.id: {reason.kind for reason in trial.result.verdict.reasons} for trial in trials}
    limited = {trial for trial, found in kinds.items() if found & _GENERATOR_REASONS}
    lines = group_by_axis(findings.points)
    over_load = [line for line in lines if line.axis in LOADS]
    crossed = {(found.axis, found.where) for found in findings.break_evens if found.crossings}
    others = [line for line in lines if line.axis not in LOADS]
    over_settings = [line for line in others if not over_load or (line.axis, line.where) in crossed]
    return [_curve(findings, line, limited) for line in (*over_load, *over_settings)]


def alike_but_for_load(points: Sequence[Point]) -> list[list[Point]]:
    """Groups points that differ only in the amount of load."""
    groups: dict[tuple[str, str, tuple[tuple[str, str], ...]], list[Point]] = {}
    for point in points:
        groups.setdefault((point.axis, point.workload, tuple(sorted(point.coordinates.items()))), []).append(point)
    return list(groups.values())


def _curve(findings: RunFindings, along: AxisSeries[Point], limited: Set[int]) -> CurveSeries:
    axis, where, by_amount = along.axis, along.where, along.points
    points = list(by_amount.values())
    measured = sorted(by_amount)
    laws = {scaling.label: scaling.fitted for scaling in findings.scalings if scaling.where == where}
    amounts = measured
    if any(laws.values()):
        between = np.geomspace(measured[0], measured[-1], _LAW_POINTS)
        amounts = sorted({*measured, *(round(float(amount), 3) for amount in between)})
    colours = assign_colours(*points)
    names = {stack.label: stack.name for point in points for stack in point.stacks if stack.arm == "main"}
    found = {
        label: {amount: stack for amount, point in by_amount.items() for stack in point.stacks if stack.label == label}
        for label in names
    }

    def chart(key: str) -> CurveChart:
        lines = []
        for label, name in names.items():
            law = laws.get(label) if key == THROUGHPUT else None
            figures = [_figures(key, found[label].get(amount)) for amount in amounts]
            values, low, high = ([_rounded(one[at]) for one in figures] for at in range(3))
            drawn: Line = [] if law is None else [round(law.throughput(amount), 3) for amount in amounts]
            lines.append(CurveLine(name, colours[label], values, low, high, drawn))
        title, unit = _TITLES.get(key) or (BY_KEY[key].title, display(key).unit)
        return CurveChart(key, title, unit, key in _LOGARITHMIC, lines)

    has_failed = any(stack.failed_share for by_place in found.values() for stack in by_place.values())
    charts = [chart(key) for key in _METRICS if key != _FAILED or has_failed]
    unit = "req/s" if axis == RATE else get_axis_unit(axis)
    crossings = [
        CurveCrossing(change.metric, crossing.at, crossing.low, crossing.high, _crossing_text(change, crossing, unit))
        for change in findings.break_evens
        if (change.axis, change.where) == (axis, where)
        for crossing in change.crossings
    ]
    used = {amount: {id_ for stack in at.stacks for id_ in stack.evidence.used} for amount, at in by_amount.items()}
    knees = [
        CurveKnee(name, colours[label], round(law.knee, 3))
        for label, name in names.items()
        if (law := laws.get(label)) is not None and law.knee is not None and measured[0] < law.knee < measured[-1]
    ]
    grown = [(one.name, one.fitted.peak_at) for one in findings.scalings if one.where == where and one.fitted]
    peaks = [f"{name} peaks at {significant(peak.value)} {unit}." for name, peak in grown if peak is not None]
    sentence = " ".join([*_changes_of_sides(crossings, THROUGHPUT), *peaks])
    return CurveSeries(
        axis=axis,
        where=where,
        unit=unit,
        amounts=amounts,
        measured=measured,
        charts=[one for one in charts if any(value is not None for line in one.lines for value in line.values)],
        crossings=crossings,
        knees=knees,
        limited=[amount for amount in measured if used[amount] & limited],
        sentence=sentence or "No two stacks cross.",
    )


def _figures(key: str, stack: StackFindings | None) -> tuple[float | None, float | None, float | None]:
    """Returns a stack's value of the metric `key` and both ends of the interval, in the chart's unit."""
    if stack is None:
        return None, None, None
    if key == _CPUS:
        return _cpus_in_use(stack), None, None
    if key == _FAILED:
        return stack.failed_share * 100 if stack.evidence.used else None, None, None
    measure, scale = stack.measure(key), display(key).scale
    value, low, high = (None if end is None else end * scale for end in (measure.value, measure.low, measure.high))
    return value, low, high


def _rounded(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else round(max(value, 0.0), 4)


def _cpus_in_use(stack: StackFindings) -> float | None:
    rates = {trial.trial: trial.value for trial in stack.measure(THROUGHPUT).trials}
    used = [trial.value / 1e6 * rates[trial.trial] for trial in stack.measure(CPU).trials if trial.trial in rates]
    return sum(used) / len(used) if used else None


def _changes_of_sides(crossings: Sequence[CurveCrossing], metric: str) -> list[str]:
    """Returns a sentence for each crossing on one metric."""
    return [crossing.text for crossing in crossings if crossing.metric == metric]


def _crossing_text(change: BreakEven, crossing: Crossing, unit: str) -> str:
    """Returns a short sentence about a crossing. The section on break-evens, further down the page, has the details."""
    interval = f"{_end(crossing.low)}–{_end(crossing.high)}" if crossing.has_interval else "no interval"
    return f"{change.name} and {change.against_name} cross at {significant(crossing.at)} {unit} ({interval})."


def _end(value: float | None) -> str:
    return "…" if value is None else significant(value)
