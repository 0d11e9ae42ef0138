"""Break-even: the concurrency, rate or setting at which another stack becomes the better one."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from weir import stats
from weir.findings.evidence import pair_by_block
from weir.findings.formatting import amount, counted, listed, significant
from weir.findings.metrics import BY_KEY, CPU, P99, THROUGHPUT, Metric
from weir.findings.points import PointCells, find_baseline
from weir.findings.sweep import CONNECTIONS, LOADS, AxisSeries, get_axis_unit, group_by_axis
from weir.findings.types import BreakEven, Evidence
from weir.model.records import Validity
from weir.model.verdict import worst

METRICS = (THROUGHPUT, P99, CPU)
"""The metrics with a search for crossings."""


def find_break_evens(
    groups: Sequence[PointCells], names: Mapping[int, str], baseline: str | None, *, indicative: bool
) -> tuple[BreakEven, ...]:
    """Compares every stack with the baseline along each axis with at least two numbers.

    Args:
        groups: the points of the run.
        names: the short name of each cell's stack, by the cell's id.
        baseline: the label of the baseline.
        indicative: whether the run has fewer blocks than a claim needs.
    """
    found = [
        _break_even(line, label, against, key, names, indicative=indicative)
        for line in group_by_axis(groups)
        for label, against in _pairs(line, baseline)
        for key in METRICS
    ]
    return tuple(one for one in found if one is not None)


def find_break_evens_between(
    groups: Sequence[PointCells],
    names: Mapping[int, str],
    one: str,
    other: str,
    metrics: Sequence[str],
    *,
    indicative: bool,
) -> tuple[BreakEven, ...]:
    """Compares two stacks of a run, given by label, along each axis."""
    found = [
        _break_even(line, one, other, key, names, indicative=indicative) for line in group_by_axis(groups) for key in metrics
    ]  # fmt: skip
    return tuple(one for one in found if one is not None)


@dataclass(frozen=True, slots=True)
class WantedPoint:
    """A place to measure two stacks next."""

    axis: str
    """`connections` or `rate_rps`."""
    place: float
    workload: str
    coordinates: Mapping[str, str]
    labels: tuple[str, str]


def find_wanted_points(groups: Sequence[PointCells], baseline: str | None) -> list[WantedPoint]:
    """Returns the middle of each gap with a crossing on throughput that is not known well enough.

    A crossing is known well enough within ±10 %. More points do not help if its interval extends beyond both
    neighbours. Without an interval only the width of the gap counts.
    """
    wanted = []
    for line in group_by_axis(groups):
        if line.axis not in LOADS:
            continue
        first = next(iter(line.points.values()))
        for label, against in _pairs(line, baseline):
            found = stats.find_crossings(list(_log_ratios(line, label, against, BY_KEY[THROUGHPUT]).blocks.values()))
            for crossing in found.crossings if found is not None else ():
                place = round(crossing.next_place) if line.axis == CONNECTIONS else crossing.next_place
                left, right = crossing.between
                is_known = crossing.is_narrow or crossing.is_zone or right <= left * (1 + stats.NARROW) ** 2
                if not is_known and left < place < right:
                    wanted.append(WantedPoint(line.axis, place, first.workload, first.coordinates, (label, against)))
    return wanted


def _pairs(line: AxisSeries[PointCells], baseline: str | None) -> list[tuple[str, str]]:
    """Pairs every stack of a series with the baseline, by label."""
    members = [member for point in line.points.values() for member in point.members]
    against = find_baseline(members, baseline)
    if against is None:
        return []
    mine = against.cell.stack_label
    return [
        (label, mine)
        for label in dict.fromkeys(one.cell.stack_label for one in members if one.cell.arm == "main")
        if label != mine
    ]


def _break_even(
    line: AxisSeries[PointCells], label: str, against: str, key: str, names: Mapping[int, str], *, indicative: bool
) -> BreakEven | None:
    """None unless both were measured at two places."""
    metric = BY_KEY[key]
    ratios = _log_ratios(line, label, against, metric)
    crossings = stats.find_crossings(list(ratios.blocks.values()))
    if crossings is None:
        return None
    found = BreakEven(
        axis=line.axis,
        where=line.where,
        metric=key,
        label=label,
        name=names[ratios.cells[0]],
        against_label=against,
        against_name=names[ratios.cells[1]],
        places=crossings.places,
        crossings=crossings.crossings,
        probability=crossings.probability,
        blocks=crossings.blocks,
        indicative=indicative or crossings.blocks < stats.MIN_BLOCKS,
        validity=worst(ratios.validities),
        evidence=Evidence(tuple(sorted(ratios.used))),
        sentence="",
        would_change="",
    )
    return replace(found, sentence=_sentence(found, crossings, metric), would_change=_would_change(found))


@dataclass(slots=True)
class _Ratios:
    """ln(A/B) along an axis, with its evidence."""

    blocks: dict[int, dict[float, float]] = field(default_factory=dict)
    """By block and place."""
    used: set[int] = field(default_factory=set)
    """Trials."""
    validities: list[Validity] = field(default_factory=list)
    cells: tuple[int, int] = (0, 0)
    """A cell of each stack, for their names."""


def _log_ratios(line: AxisSeries[PointCells], label: str, against: str, metric: Metric) -> _Ratios:
    found = _Ratios()
    for place, point in line.points.items():
        members = {member.cell.stack_label: member for member in point.members}
        if label not in members or against not in members:
            continue
        one, other = members[label], members[against]
        found.cells = one.cell.id, other.cell.id
        pairs = pair_by_block(one, other, metric.of)
        for block, value, beside in zip(pairs.blocks, pairs.values, pairs.against, strict=True):
            found.blocks.setdefault(block, {})[place] = math.log(value / beside)
        if pairs.blocks:
            found.used |= set(pairs.evidence.used)
            found.validities.append(pairs.validity)
    return found


def _sentence(found: BreakEven, crossings: stats.Crossings, metric: Metric) -> str:
    unit = get_axis_unit(found.axis)
    measured = f"measured at {listed([amount(place) for place in found.places])} {unit}"
    where = f"On {found.where}: " if found.where else ""
    if not found.crossings:
        side = {"above": "higher", "below": "lower", "neither": "neither always higher nor lower"}[crossings.side]
        chance = ""
        if found.probability:
            chance = f"; {found.probability:.0%} of draws of blocks have a crossing somewhere"
        return (
            f"{where}on {metric.title} {found.name} is {side} than {found.against_name} everywhere ({measured}, "
            f"{counted(found.blocks, 'block')}{chance})."
        )
    parts = []
    for crossing in found.crossings:
        # The higher throughput, or the lower time, is better before a falling crossing.
        better_before = found.name if crossing.falls == metric.higher_is_better else found.against_name
        better_after = found.against_name if better_before == found.name else found.name
        at = significant(crossing.at)
        left, right = (amount(place) for place in crossing.between)
        parts.append(
            f"{better_before} is better up to {at} {unit} and {better_after} beyond ({_interval(crossing)}; nothing was measured between "
            f"{left} and {right})"
        )
    return f"{where}on {metric.title} {'; '.join(parts)} ({measured}, {counted(found.blocks, 'block')})."


def _interval(crossing: stats.Crossing) -> str:
    if not crossing.has_interval:
        return f"no interval with fewer than {stats.MIN_BLOCKS} blocks"
    low = "below all that was measured" if crossing.low is None else significant(crossing.low)
    high = "beyond all that was measured" if crossing.high is None else significant(crossing.high)
    certain = (
        ""
        if crossing.probability is None or crossing.probability >= 0.9995
        else f", crossing in {crossing.probability:.1%} of draws"
    )
    return f"95 % interval {low}–{high}{certain}"


def _would_change(found: BreakEven) -> str:
    parts = []
    wide = [crossing for crossing in found.crossings if not crossing.is_narrow]
    if found.blocks < stats.MIN_BLOCKS:
        parts.append(f"{stats.MIN_BLOCKS} blocks give an interval.")
    elif wide:
        places = listed([significant(crossing.next_place) for crossing in wide])
        parts.append(f"A point at {places} would narrow it most (refine = true in [method] places them).")
    parts.append("Another machine, another upstream or another version may cross elsewhere.")
    return " ".join(parts)
