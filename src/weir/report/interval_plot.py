"""Computes the positions of dots and intervals on an axis, in percent of the axis. A template draws them as SVG."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from weir.findings.formatting import ratio_text
from weir.findings.metrics import BY_KEY
from weir.findings.point_types import Comparison, Point
from weir.findings.types import IdenticalCopies, Variation
from weir.report.number_format import display, interval_text, value_text

MARGIN_PERCENT = 2.0
"""Space at both ends of the axis, so that a dot at an end is completely visible."""
_GREY = 6
"""The colour of a row without a stack."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on the axis."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Row:
    """The row of a stack or a comparison: a mean, an interval, and a dot for each trial. Positions are in percent."""

    name: str
    colour: int
    at: float | None
    value: str
    low: float | None = None
    high: float | None = None
    dots: tuple[float, ...] = ()
    interval: str = ""
    note: str = ""
    faint: bool = False


@dataclass(frozen=True, slots=True)
class Strip:
    """A chart: rows over a common axis. On an axis of ratios, `reference` is the position of the ratio 1."""

    title: str
    unit: str
    rows: tuple[Row, ...]
    ticks: tuple[Tick, ...]
    reference: float | None = None


def measure_strip(point: Point, metric: str) -> Strip | None:
    """Returns the chart of one metric, with a row for each stack at a point; None if no value is above 0."""
    shown = display(metric)
    measures = [(stack, stack.measure(metric)) for stack in point.stacks]
    values = [
        value * shown.scale
        for _, measure in measures
        for value in (measure.value, measure.high, *(trial.value for trial in measure.trials))
        if value is not None
    ]
    if max(values, default=0.0) <= 0:
        return None
    place, ticks = _linear_axis(max(values), shown.scale)
    colours = assign_colours(point)
    rows = []
    for stack, measure in measures:
        at, low, high = (place(value) for value in (measure.value, measure.low, measure.high))
        dots = tuple(spot for trial in measure.trials if (spot := place(trial.value)) is not None)
        figures = (at, value_text(measure), low, high, dots, interval_text(measure), measure.note)
        rows.append(Row(stack.name, colours[stack.label], *figures, faint=stack.arm == "aa"))
    return Strip(BY_KEY[metric].title, shown.unit, tuple(rows), ticks)


def tile_rows(point: Point, metric: str) -> tuple[Row, ...]:
    """Returns a bar of one metric for each stack, without the A/A copy. The largest value has the full width."""
    measures = [(stack, stack.measure(metric)) for stack in point.stacks if stack.arm == "main"]
    largest = max((measure.value for _, measure in measures if measure.value is not None), default=0.0)
    if largest <= 0:
        return ()
    colours = assign_colours(point)
    rows = []
    for stack, measure in measures:
        at = None if measure.value is None else round(100 * measure.value / largest, 3)
        rows.append(Row(stack.name, colours[stack.label], at, value_text(measure), note=measure.note))
    return tuple(rows)


def ratio_strip(comparisons: Sequence[Comparison], colours: dict[str, int]) -> Strip | None:
    """Returns the chart of ratios, on a logarithmic axis with the ratio 1. None if no ratio is known."""
    compared = [comparison for comparison in comparisons if comparison.ratio]
    if not compared:
        return None
    known = [end for found in compared for end in (found.ratio, found.low, found.high) if end]
    # An interval from two blocks can be very wide. The axis ends at 100×, but the text has the true interval.
    low, high = max(min([1.0, *known]), 0.01), min(max([1.0, *known]), 100.0)
    room = max(math.log(high / low) * 0.08, math.log(1.1))
    first, last = math.log(low) - (room if low < 1 else room / 2), math.log(high) + room

    def place(value: float | None) -> float | None:
        return None if value is None else _percent(min(1.0, max(0.0, (math.log(value) - first) / (last - first))))

    rows = []
    for found in compared:
        assert found.ratio is not None
        value, interval = ratio_text(found.ratio, found.low, found.high)
        at, start, end = map(place, (found.ratio, found.low, found.high))
        colour = colours.get(found.label, 0)
        rows.append(Row(found.name, colour, at, f"{value}×", start, end, interval=interval, note=found.outcome))
    steps = ratio_ticks(math.exp(first), math.exp(last))
    ticks = tuple(Tick(spot, f"{step:g}×") for step in steps if (spot := place(step)) is not None)
    return Strip(f"times {compared[0].against_name}", "×", tuple(rows), ticks, place(1.0))


def variation_strip(variation: Variation, copies: IdenticalCopies | None) -> Strip:
    """Returns the chart of throughput's variation in percent: a row per source, and a row for identical copies."""
    split = variation.split
    parts: list[tuple[str, float, float | None, float | None]] = [
        ("within trials", split.within, None, None),
        ("between trials", split.between_trials, None, None),
        ("between blocks", split.between_blocks, None, None),
    ]
    if copies is not None and copies.spread is not None:
        parts.append(("between identical copies", copies.spread, copies.spread_low, copies.spread_high))
    # An interval from few pairs can be very wide. The axis ends at five times the largest value.
    largest = max((value for _, value, _, _ in parts), default=0.0)
    highest = 100 * max(min(max((high or value for _, value, _, high in parts), default=0.0), 5 * largest), 1e-4)
    place, ticks = _linear_axis(highest, 100)
    rows = []
    for name, value, low, high in parts:
        interval = "" if low is None or high is None else f"{low * 100:.1f}–{high * 100:.1f} %"
        rows.append(Row(name, _GREY, place(value), f"{value * 100:.1f} %", place(low), place(high), interval=interval))
    return Strip("spread of throughput", "%", tuple(rows), ticks)


def assign_colours(*points: Point) -> dict[str, int]:
    """Returns the number of the colour for each stack's label. An A/A copy has the colour of its original."""
    colours: dict[str, int] = {}
    for point in points:
        main = [stack.label for stack in point.stacks if stack.arm == "main"]
        colours |= {stack.label: main.index(stack.label.removesuffix(" (A/A)")) for stack in point.stacks}
    return colours


def _linear_axis(largest: float, scale: float) -> tuple[Callable[[float | None], float | None], tuple[Tick, ...]]:
    """Returns a function and the ticks of a linear axis from zero. The function converts a value to a position in
    percent. `largest`: the axis's end, in the unit of value × `scale`."""
    steps = linear_ticks(largest)
    end = max(largest, steps[-1])

    def place(value: float | None) -> float | None:
        return None if value is None else _percent(min(1.0, max(0.0, value * scale / end)))

    return place, tuple(Tick(_percent(step / end), f"{step:,g}") for step in steps)


def linear_ticks(largest: float) -> list[float]:
    """Returns 0 and two to five equal steps of a round size, for an axis that ends at `largest`."""
    step = 10 ** math.floor(math.log10(largest / 4))
    step *= next(factor for factor in (1, 2, 2.5, 5, 10) if largest / (step * factor) <= 5)
    return [index * step for index in range(int(largest / step + 0.1) + 1)]


def logarithmic_ticks(low: float, high: float) -> list[float]:
    """Returns round values from `low` to `high`: at most seven, or all powers of ten if these are more than seven."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    scales = ((1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,))
    return _at_most_seven(low, high, ([step * 10.0**power for power in powers for step in steps] for steps in scales))


def ratio_ticks(low: float, high: float) -> list[float]:
    """Returns round ratios from `low` to `high`: at most seven, or more if even the coarsest scale has more."""
    coarse = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]
    medium = sorted({*coarse, 0.25, 0.33, 0.67, 1.5, 3.0, 4.0, 6.0, 8.0})
    fine = sorted({*medium, 0.8, 0.9, 0.95, 1.05, 1.1, 1.25})
    return _at_most_seven(low, high, (fine, medium, coarse))


def _at_most_seven(low: float, high: float, scales: Iterable[list[float]]) -> list[float]:
    """Returns the values from `low` to `high` in the first scale with at most seven of them, or in the last scale."""
    found = [[value for value in scale if low <= value <= high] for scale in scales]
    return next((inside for inside in found if len(inside) <= 7), found[-1])


def _percent(share: float) -> float:
    return round(MARGIN_PERCENT + share * (100 - 2 * MARGIN_PERCENT), 2)
