"""Dots and intervals on one axis, drawn as SVG with coordinates in percent: sharp in print, and as wide as the page allows.

Only positions are computed here; the template draws them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from weir.findings import BY_KEY, Comparison, IdenticalCopies, Point, Variation
from weir.findings.words import ratio_text
from weir.report.numbers import display, interval_text, value_text

MARGIN_PERCENT = 2.0
"""Room at both ends, so that a dot at the edge is whole."""
_GREY = 6
"""The colour of what is no stack's."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on the axis."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Row:
    """One stack or comparison: a mean with its interval, and each trial as a dot. Positions in percent of the width."""

    name: str
    colour: int
    faint: bool
    at: float | None
    low: float | None
    high: float | None
    dots: tuple[float, ...]
    value: str
    interval: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Strip:
    """Rows over one axis. `reference` is where 'equal' lies, on ratio axes."""

    title: str
    unit: str
    rows: tuple[Row, ...]
    ticks: tuple[Tick, ...]
    reference: float | None = None


def measure_strip(point: Point, metric: str) -> Strip | None:
    """One metric of every stack at a point, from zero; None where nothing was measured."""
    shown = display(metric)
    measures = [(stack, stack.measure(metric)) for stack in point.stacks]
    values = [value for _, measure in measures for value in (measure.value, measure.high, *(trial.value for trial in measure.trials))]
    largest = max((value * shown.scale for value in values if value is not None), default=0.0)
    if largest <= 0:
        return None
    steps = linear_ticks(largest)
    end = max(largest, steps[-1])

    def place(value: float | None) -> float | None:
        return None if value is None else _percent(max(0.0, value * shown.scale) / end)

    colours = colours_of(point)
    rows = tuple(
        Row(
            name=stack.name,
            colour=colours[stack.label],
            faint=stack.arm == "aa",
            at=place(measure.value),
            low=place(measure.low),
            high=place(measure.high),
            dots=tuple(spot for trial in measure.trials if (spot := place(trial.value)) is not None),
            value=value_text(measure),
            interval=interval_text(measure),
            note=measure.note,
        )
        for stack, measure in measures
    )
    ticks = tuple(Tick(_percent(step / end), f"{step:,g}") for step in steps)
    return Strip(BY_KEY[metric].title, shown.unit, rows, ticks)


def tile_rows(point: Point, metric: str) -> tuple[Row, ...]:
    """Bars of one metric from zero to the largest value, without intervals and without the A/A copy; empty where nothing was measured."""
    measures = [(stack, stack.measure(metric)) for stack in point.stacks if stack.arm == "main"]
    largest = max((measure.value for _, measure in measures if measure.value is not None), default=0.0)
    if largest <= 0:
        return ()
    colours = colours_of(point)
    return tuple(
        Row(
            name=stack.name,
            colour=colours[stack.label],
            faint=False,
            at=None if measure.value is None else round(100 * measure.value / largest, 3),
            low=None,
            high=None,
            dots=(),
            value=value_text(measure),
            interval="",
            note=measure.note,
        )
        for stack, measure in measures
    )


def ratio_strip(comparisons: Sequence[Comparison], colours: dict[str, int]) -> Strip | None:
    """Ratios with their intervals on a logarithmic axis that always holds 'equal'."""
    told = [comparison for comparison in comparisons if comparison.ratio]
    if not told:
        return None
    ends = [end for found in told for end in (found.ratio, found.low, found.high) if end]
    # An interval from two blocks can be very wide: the axis stops at a hundredfold and the number says the rest.
    low, high = max(min([1.0, *ends]), 0.01), min(max([1.0, *ends]), 100.0)
    room = max(math.log(high / low) * 0.08, math.log(1.1))
    first, last = math.log(low) - (room if low < 1 else room / 2), math.log(high) + room

    def place(value: float | None) -> float | None:
        return None if value is None else _percent(min(1.0, max(0.0, (math.log(value) - first) / (last - first))))

    rows = []
    for found in told:
        assert found.ratio is not None
        value, interval = ratio_text(found.ratio, found.low, found.high)
        colour = colours.get(found.label, 0)
        rows.append(
            Row(
                found.name, colour, False, place(found.ratio), place(found.low), place(found.high), (), f"{value}×", interval, found.outcome
            )
        )
    ticks = tuple(Tick(spot, f"{step:g}×") for step in ratio_ticks(math.exp(first), math.exp(last)) if (spot := place(step)) is not None)
    return Strip(f"times {told[0].against_name}", "×", tuple(rows), ticks, place(1.0))


def variation_strip(variation: Variation, copies: IdenticalCopies | None) -> Strip:
    """Where the spread of throughput comes from, and what two copies of one stack differ by, in percent."""
    split = variation.split
    parts: list[tuple[str, float, float | None, float | None]] = [
        ("within trials", split.within, None, None),
        ("between trials", split.between_trials, None, None),
        ("between blocks", split.between_blocks, None, None),
    ]
    if copies is not None and copies.spread is not None:
        parts.append(("between identical copies", copies.spread, copies.spread_low, copies.spread_high))
    # An interval from few pairs can be very wide: the axis ends at five times the largest value, and the number says the rest.
    largest = max((value for _, value, _, _ in parts), default=0.0)
    highest = 100 * max(min(max((high or value for _, value, _, high in parts), default=0.0), 5 * largest), 1e-4)
    steps = linear_ticks(highest)
    end = max(highest, steps[-1])

    def place(share: float | None) -> float | None:
        return None if share is None else _percent(min(1.0, share * 100 / end))

    rows = tuple(
        Row(
            name, _GREY, False, place(value), place(low), place(high), (), f"{value * 100:.1f} %",
            "" if low is None or high is None else f"{low * 100:.1f}–{high * 100:.1f} %",
        )
        for name, value, low, high in parts
    )  # fmt: skip
    return Strip("spread of throughput", "%", rows, tuple(Tick(_percent(step / end), f"{step:,g}") for step in steps))


def colours_of(point: Point) -> dict[str, int]:
    """The colour's number of each stack, the A/A copy's being that of its original."""
    main = [stack.label for stack in point.stacks if stack.arm == "main"]
    return {stack.label: main.index(stack.label.removesuffix(" (A/A)")) for stack in point.stacks}


def linear_ticks(largest: float) -> list[float]:
    """0 and round steps up to at least `largest` × 0.9, four or five of them."""
    step = 10 ** math.floor(math.log10(largest / 4))
    for factor in (1, 2, 2.5, 5, 10):
        if largest / (step * factor) <= 5:
            step *= factor
            break
    return [index * step for index in range(int(largest / step + 0.1) + 1)]


def logarithmic_ticks(low: float, high: float) -> list[float]:
    """Round values from `low` to `high`, six or seven at most."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)):
        inside = [value for power in powers for step in steps if low <= (value := step * 10.0**power) <= high]
        if len(inside) <= 7:
            break
    return inside


def ratio_ticks(low: float, high: float) -> list[float]:
    """Round ratios between `low` and `high`, 1 always among them, not too many."""
    coarse = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]
    medium = sorted({*coarse, 0.25, 0.33, 0.67, 1.5, 3.0, 4.0, 6.0, 8.0})
    fine = sorted({*medium, 0.8, 0.9, 0.95, 1.05, 1.1, 1.25})
    for ticks in (fine, medium, coarse):
        inside = [value for value in ticks if low <= value <= high]
        if len(inside) <= 7:
            break
    return inside


def _percent(share: float) -> float:
    return round(MARGIN_PERCENT + share * (100 - 2 * MARGIN_PERCENT), 2)
