"""Computes charts of CPU time or memory against p99. A stack's path has a spot for each amount of load. Positions are
in percent, as in `interval_plot.py`. A template draws the SVG."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from weir.findings import RunFindings
from weir.findings.formatting import amount, significant
from weir.findings.metrics import CPU, MEMORY, P99
from weir.findings.point_types import Point, StackFindings
from weir.findings.points import format_where
from weir.report.curve_series import alike_but_for_load
from weir.report.interval_plot import Tick, assign_colours, linear_ticks, logarithmic_ticks
from weir.report.number_format import display

_TITLES = {CPU: ("CPU seconds per million requests", "s"), MEMORY: ("memory", "MB")}
_MARGIN_PERCENT = 5.0
"""Space at all edges of the chart, so that a spot at an edge and its text are completely visible."""
_CLOSE_PERCENT = 4.0
"""Minimum distance between two spots with texts on one path. A closer spot has no text."""
_LETTER_PERCENT, _LINE_PERCENT = 1.7, 5.0
"""Approximate width and height of a letter, in percent of a chart of usual size."""
_NAMED_LEFT_PERCENT = 62.0
"""If a path's last spot is right of this position, the path's name is left of the spot."""


@dataclass(frozen=True, slots=True)
class Spot:
    """The position of one stack at one amount of load, in percent from the left and from the top."""

    x: float
    y: float
    words: str
    """The amount of load; empty if the chart has only one amount, or if there is no room."""
    p99_ms: float
    cost: float


@dataclass(frozen=True, slots=True)
class Path:
    """A stack's spots, sorted by load and joined by a line."""

    name: str
    colour: int
    spots: tuple[Spot, ...]
    is_named_below: bool
    """Whether the path's name is below the last spot. Another path's name is then above."""

    @property
    def is_named_left(self) -> bool:
        """Whether the path's name is to the left of the last spot: on the right, it would leave the chart."""
        return self.spots[-1].x > _NAMED_LEFT_PERCENT

    @property
    def steps(self) -> list[tuple[Spot, Spot]]:
        return list(zip(self.spots, self.spots[1:], strict=False))


@dataclass(frozen=True, slots=True)
class Plane:
    """A chart of one cost (CPU time or memory) against p99."""

    title: str
    unit: str
    where: str
    paths: tuple[Path, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    sentence: str


def build_planes(findings: RunFindings) -> list[Plane]:
    """Returns charts for each set of points that differ only in the amount of load. A chart needs two stacks."""
    groups = alike_but_for_load(findings.points)
    planes = [
        _plane(points, metric, format_where(points[0].workload, points[0].coordinates) if len(groups) > 1 else "")
        for points in groups
        for metric in (CPU, MEMORY)
    ]
    return list(filter(None, planes))


def _plane(points: Sequence[Point], metric: str, where: str) -> Plane | None:
    points = sorted(points, key=lambda point: point.amount or 0.0)
    colours = assign_colours(*points)
    found: dict[str, list[tuple[Point, StackFindings, float, float]]] = {}
    for point in points:
        for stack in point.stacks:
            p99, cost = stack.measure(P99).value, stack.measure(metric).value
            if stack.arm == "main" and p99 and cost is not None:
                spot = (point, stack, p99 * display(P99).scale, cost * display(metric).scale)
                found.setdefault(stack.label, []).append(spot)
    if len(found) < 2:
        return None
    times = [p99 for spots in found.values() for _, _, p99, _ in spots]
    costs = [cost for spots in found.values() for _, _, _, cost in spots]
    low, high = min(times) / 1.3, max(times) * 1.3
    steps = linear_ticks(max(costs) or 1.0)
    top = max(max(costs), steps[-1]) or 1.0

    def x(p99: float) -> float:
        return _inside(math.log(p99 / low) / math.log(high / low))

    def y(cost: float) -> float:
        return _inside(1 - cost / top)

    several = len(points) > 1
    paths: list[Path] = []
    for label, spots in found.items():
        drawn: list[Spot] = []
        for point, _, p99, cost in spots:
            at_x, at_y = x(p99), y(cost)
            last = next((spot for spot in reversed(drawn) if spot.words), None)
            far = last is None or math.hypot(at_x - last.x, at_y - last.y) > _CLOSE_PERCENT
            words = amount(point.amount) if several and far and point.amount is not None else ""
            drawn.append(Spot(at_x, at_y, words, p99, cost))
        above = Path(spots[0][1].name, colours[label], tuple(drawn), is_named_below=False)
        # Several amounts of load need the space below.
        lies_on_another = not several and any(_overlap(above, other) for other in paths)
        paths.append(replace(above, is_named_below=lies_on_another))
    title, unit = _TITLES[metric]
    x_ticks = tuple(Tick(x(step), f"{step:,g}") for step in logarithmic_ticks(low, high))
    y_ticks = tuple(Tick(y(step), f"{step:,g}") for step in steps)
    return Plane(title, unit, where, tuple(paths), x_ticks, y_ticks, _sentence(paths, unit))


def _overlap(one: Path, other: Path) -> bool:

    def box(path: Path) -> tuple[float, float, float]:
        """Returns the left edge, right edge and top edge of a path's name."""
        last, width = path.spots[-1], _LETTER_PERCENT * (len(path.name) + 2)
        left = last.x - width if path.is_named_left else last.x
        return left, left + width, last.y + (_LINE_PERCENT if path.is_named_below else -_LINE_PERCENT)

    (left, right, top), (other_left, other_right, other_top) = box(one), box(other)
    return right >= other_left and other_right >= left and abs(top - other_top) < _LINE_PERCENT


def _sentence(paths: Sequence[Path], unit: str) -> str:
    """Returns a sentence: the stack with the lowest p99, and the stack with the lowest cost."""
    fastest = min(paths, key=lambda path: min(spot.p99_ms for spot in path.spots))
    cheapest = min(paths, key=lambda path: min(spot.cost for spot in path.spots))
    best = min(fastest.spots, key=lambda spot: spot.p99_ms)
    least = min(cheapest.spots, key=lambda spot: spot.cost)
    text = f"{fastest.name} has the lowest p99 ({significant(best.p99_ms)} ms, with {significant(best.cost)} {unit})"
    if fastest is cheapest:
        return f"{text} and the lowest cost ({significant(least.cost)} {unit})."
    cost = f"{significant(least.cost)} {unit}, with a p99 of {significant(least.p99_ms)} ms"
    return f"{text}, and {cheapest.name} has the lowest cost ({cost})."


def _inside(share: float) -> float:
    return round(_MARGIN_PERCENT + min(1.0, max(0.0, share)) * (100 - 2 * _MARGIN_PERCENT), 3)
