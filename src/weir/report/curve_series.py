"""Throughput, response time, CPU and memory over the amount of load or a setting, for the charts of a run that varies it: what was
measured, the law that fits it, where stacks change sides, and where it was the generator that gave out."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np

from weir.findings import BY_KEY, BreakEven, Measure, Point, RunFindings, StackFindings
from weir.findings.along import CONNECTIONS, LOADS, RATE, Along, lines_along, unit_along
from weir.findings.metrics import CPU, MEAN, MEMORY, P99, THROUGHPUT
from weir.findings.words import amount as amount_text
from weir.findings.words import significant
from weir.model.run import Trial
from weir.report.lines import Line
from weir.report.numbers import display
from weir.report.strips import colours_of
from weir.stats import Crossing, Scalability

_LAW_POINTS = 48
_METRICS = (THROUGHPUT, P99, MEAN, CPU, MEMORY)
_CPUS = "cpus"
"""Not a metric: CPU time per request × throughput, as CPUs that are in use."""
_FAILED = "failed"
_TITLES = {_CPUS: ("CPUs in use", "CPUs"), _FAILED: ("requests that failed", "%")}
_LOGARITHMIC = (P99, MEAN)
_AXES = {CONNECTIONS: "connections", RATE: "arrivals a second"}
"""In a heading; a setting is called what the study file calls it."""
_GENERATOR_REASONS = ("generator ceiling", "generator busy")
"""Kinds of a verdict's reasons that say that the generator may have been the limit."""


@dataclass(frozen=True, slots=True)
class CurveLine:
    """One stack; None where it was not measured."""

    name: str
    colour: int
    values: Line
    low: Line
    high: Line
    law: Line
    """The universal scalability law, between the measured amounts as well; empty where it does not describe them."""


@dataclass(frozen=True, slots=True)
class CurveChart:
    """One metric along the axis."""

    metric: str
    title: str
    unit: str
    logarithmic: bool
    lines: list[CurveLine]


@dataclass(frozen=True, slots=True)
class CurveCrossing:
    """Where two stacks change sides on a metric."""

    metric: str
    at: float
    low: float | None
    high: float | None
    text: str
    """Who, where, and within what interval."""


@dataclass(frozen=True, slots=True)
class CurveKnee:
    """From where on more load adds little throughput to a stack, by the law that fits it."""

    name: str
    colour: int
    at: float


@dataclass(frozen=True, slots=True)
class CurveSeries:
    """Stacks over one amount of load, or one setting, all else equal."""

    axis: str
    where: str
    unit: str
    """What the amounts are of."""
    amounts: list[float]
    """Where lines have values: the measured amounts, and those between on which laws are drawn."""
    measured: list[float]
    charts: list[CurveChart]
    """Throughput first; those of which anything is known."""
    crossings: list[CurveCrossing]
    knees: list[CurveKnee]
    """Those that lie among the measured amounts."""
    limited: list[float]
    """Amounts at which the generator may have been the limit in a trial of any stack."""
    sentence: str
    """Under the first chart, behind what its marks mean."""

    @property
    def heading(self) -> str:
        """What the charts are over."""
        return _AXES.get(self.axis, self.axis)

    def chart_sentence(self, chart: CurveChart) -> str:
        """Under a chart that is not the first: who has the least and the most, and where two stacks change sides."""
        return " ".join([self._levels(chart), *_changes_of_sides(self.crossings, chart.metric)])

    def _levels(self, chart: CurveChart) -> str:
        """Who has the least and the most at the largest amount that all were measured at, and where there is none, or one stack alone, how
        each went."""
        for amount in reversed(self.measured):
            at = self.amounts.index(amount)
            known = sorted((value, line.name) for line in chart.lines if (value := line.values[at]) is not None)
            if len(known) == len(chart.lines) > 1:
                (least, first), (most, last) = known[0], known[-1]
                return (
                    f"At {amount_text(amount)} {self.unit} {first} has the least with {significant(least)} {chart.unit}, "
                    f"{last} the most with {significant(most)} {chart.unit}."
                )
        courses = [course for line in chart.lines if (course := self._course(line, chart.unit))]
        return f"{'; '.join(courses)}." if courses else "Nothing was measured."

    def _course(self, line: CurveLine, unit: str) -> str:
        """What a stack had at the smallest and the largest amount that it was measured at."""
        known = [(amount, value) for amount in self.measured if (value := line.values[self.amounts.index(amount)]) is not None]
        if not known:
            return ""
        (from_amount, start), (to_amount, end) = known[0], known[-1]
        if from_amount == to_amount:
            return f"{line.name} has {significant(end)} {unit} at {amount_text(to_amount)} {self.unit}"
        return (
            f"{line.name} goes from {significant(start)} {unit} at {amount_text(from_amount)} {self.unit} "
            f"to {significant(end)} {unit} at {amount_text(to_amount)}"
        )


def curve_series(findings: RunFindings, trials: Sequence[Trial]) -> list[CurveSeries]:
    """The charts of each set of points that differ in nothing but one number: first those over the amount of load. A setting that was
    varied together with it has charts where stacks change sides along it.

    Args:
        findings: of the run.
        trials: its finished trials, for what their verdicts say of the generator.
    """
    limited = {trial.id for trial in trials if any(reason.kind in _GENERATOR_REASONS for reason in trial.result.verdict.reasons)}
    lines = lines_along(findings.points)
    over_load = [line for line in lines if line.axis in LOADS]
    crossed = {(found.axis, found.where) for found in findings.break_evens if found.crossings}
    over_settings = [line for line in lines if line.axis not in LOADS and (not over_load or (line.axis, line.where) in crossed)]
    return [_curve(findings, line, limited) for line in (*over_load, *over_settings)]


def alike_but_for_load(points: Sequence[Point]) -> list[list[Point]]:
    """The points in groups that differ in nothing but the amount of load."""
    groups: dict[tuple[str, str, tuple[tuple[str, str], ...]], list[Point]] = {}
    for point in points:
        groups.setdefault((point.axis, point.workload, tuple(sorted(point.coordinates.items()))), []).append(point)
    return list(groups.values())


def _curve(findings: RunFindings, along: Along[Point], limited: Set[int]) -> CurveSeries:
    axis, where, by_amount = along.axis, along.where, along.points
    points = list(by_amount.values())
    measured = sorted(by_amount)
    laws = {scaling.label: scaling.fitted for scaling in findings.scalings if scaling.where == where}
    amounts = measured
    if any(laws.values()):
        between = np.geomspace(measured[0], measured[-1], _LAW_POINTS)
        amounts = sorted({*measured, *(round(float(amount), 3) for amount in between)})
    colours = {label: colour for point in points for label, colour in colours_of(point).items()}
    names = {stack.label: stack.name for point in points for stack in point.stacks if stack.arm == "main"}
    found = {
        label: {amount: stack for amount, point in by_amount.items() for stack in point.stacks if stack.label == label} for label in names
    }

    def chart(key: str, of: Callable[[StackFindings], Measure | float | None]) -> CurveChart:
        lines = []
        for label, name in names.items():
            law = laws.get(label) if key == THROUGHPUT else None
            lines.append(_line(name, colours[label], amounts, {amount: of(stack) for amount, stack in found[label].items()}, law, key))
        title, unit = _TITLES.get(key) or (BY_KEY[key].title, display(key).unit)
        return CurveChart(key, title, unit, key in _LOGARITHMIC, lines)

    def measure(key: str) -> Callable[[StackFindings], Measure | float | None]:
        return lambda stack: stack.measure(key)

    charts = [chart(key, measure(key)) for key in _METRICS]
    charts.insert(_METRICS.index(CPU), chart(_CPUS, _cpus_in_use))
    if any(stack.failed_share for by_place in found.values() for stack in by_place.values()):
        charts.insert(1, chart(_FAILED, lambda stack: stack.failed_share * 100 if stack.evidence.used else None))
    unit = "req/s" if axis == RATE else unit_along(axis)
    crossings = [
        CurveCrossing(change.metric, crossing.at, crossing.low, crossing.high, _crossing_text(change, crossing, unit))
        for change in findings.break_evens
        if (change.axis, change.where) == (axis, where)
        for crossing in change.crossings
    ]
    used = {amount: {trial for stack in point.stacks for trial in stack.evidence.used} for amount, point in by_amount.items()}
    return CurveSeries(
        axis,
        where,
        unit,
        amounts,
        measured,
        [one for one in charts if any(value is not None for line in one.lines for value in line.values)],
        crossings,
        [
            CurveKnee(name, colours[label], round(law.knee, 3))
            for label, name in names.items()
            if (law := laws.get(label)) is not None and law.knee is not None and measured[0] < law.knee < measured[-1]
        ],
        [amount for amount in measured if used[amount] & limited],
        " ".join([*_changes_of_sides(crossings, THROUGHPUT), *_peaks(findings, where, unit)]) or "No two stacks change sides.",
    )


def _line(
    name: str, colour: int, amounts: Sequence[float], values: Mapping[float, Measure | float | None], law: Scalability | None, key: str
) -> CurveLine:
    def part(of: Callable[[Measure], float | None]) -> Line:
        line: Line = []
        for amount in amounts:
            value = values.get(amount)
            if isinstance(value, Measure):
                scaled = of(value)
                value = None if scaled is None else scaled * display(key).scale
            elif of is not _value:
                value = None
            line.append(None if value is None or not math.isfinite(value) else round(max(value, 0.0), 4))
        return line

    drawn: Line = [] if law is None else [round(law.throughput(amount), 3) for amount in amounts]
    return CurveLine(name, colour, part(_value), part(lambda measure: measure.low), part(lambda measure: measure.high), drawn)


def _value(measure: Measure) -> float | None:
    return measure.value


def _cpus_in_use(stack: StackFindings) -> float | None:
    rates = {trial.trial: trial.value for trial in stack.measure(THROUGHPUT).trials}
    used = [trial.value / 1e6 * rates[trial.trial] for trial in stack.measure(CPU).trials if trial.trial in rates]
    return sum(used) / len(used) if used else None


def _changes_of_sides(crossings: Sequence[CurveCrossing], metric: str) -> list[str]:
    """What is to be said of the dashed lines of a metric's chart."""
    return [crossing.text for crossing in crossings if crossing.metric == metric]


def _crossing_text(change: BreakEven, crossing: Crossing, unit: str) -> str:
    """In a few words; the findings below say it with what it rests on."""
    interval = f"{_end(crossing.low)}–{_end(crossing.high)}" if crossing.has_interval else "no interval"
    return f"{change.name} and {change.against_name} change sides at {significant(crossing.at)} {unit} ({interval})."


def _peaks(findings: RunFindings, where: str, unit: str) -> Iterator[str]:
    for scaling in findings.scalings:
        peak = scaling.fitted.peak_at if scaling.where == where and scaling.fitted is not None else None
        if peak is not None:
            yield f"{scaling.name} peaks at {significant(peak.value)} {unit}."


def _end(value: float | None) -> str:
    return "…" if value is None else significant(value)
