"""Finds break-evens: the concurrency, rate or setting at which another stack becomes better."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from weir import stats
from weir.findings.evidence import Pairs, pair_by_block
from weir.findings.formatting import amount, counted, listed, significant
from weir.findings.metrics import BY_KEY, CPU, P99, THROUGHPUT, Metric
from weir.findings.point_types import Evidence
from weir.findings.points import PointCells, pair_with_baseline
from weir.findings.sweep import CONNECTIONS, LOADS, AxisSeries, get_axis_unit, group_by_axis
from weir.findings.types import BreakEven
from weir.model.verdict import worst

METRICS = (THROUGHPUT, P99, CPU)
"""The metrics for which weir finds break-evens by default."""


def find_break_evens(
    groups: Sequence[PointCells],
    names: Mapping[int, str],
    baseline: str | None,
    *,
    indicative: bool,
    between: tuple[str, str] | None = None,
    metrics: Sequence[str] = METRICS,
) -> tuple[BreakEven, ...]:
    """Finds the break-evens of stacks along each axis: the amount of load, or a setting whose values are numbers.

    `names`: a dict from cell id to the stack's short name. `indicative`: whether the run has fewer blocks than a claim
    needs. `between`: the labels of two stacks; None compares every stack with the baseline.
    """
    found = [
        _break_even(line, *pair, key, names, indicative=indicative)
        for line in group_by_axis(groups)
        for pair in ([between] if between else _pairs(line, baseline))
        for key in metrics
    ]
    return tuple(one for one in found if one is not None)


@dataclass(frozen=True, slots=True)
class WantedPoint:
    """A point at which the lab should measure two stacks next."""

    axis: str
    """`connections` or `rate_rps`."""
    place: float
    workload: str
    coordinates: Mapping[str, str]
    labels: tuple[str, str]


def find_wanted_points(groups: Sequence[PointCells], baseline: str | None) -> list[WantedPoint]:
    """Returns points to measure next: the middle of each gap between two points where the better stack changes.

    A gap needs no new point if the crossing's interval, or the gap itself, lies within ±10 % of the crossing.
    A new point does not help if the interval covers the whole gap."""
    wanted = []
    for line in group_by_axis(groups):
        if line.axis not in LOADS:
            continue
        first = next(iter(line.points.values()))
        for label, against in _pairs(line, baseline):
            found = _find_crossings(_pair_along(line, label, against, BY_KEY[THROUGHPUT]))
            for crossing in found.crossings if found is not None else ():
                place = round(crossing.next_place) if line.axis == CONNECTIONS else crossing.next_place
                left, right = crossing.between
                is_known = crossing.is_narrow or crossing.is_zone or right <= left * (1 + stats.NARROW) ** 2
                if not is_known and left < place < right:
                    wanted.append(WantedPoint(line.axis, place, first.workload, first.coordinates, (label, against)))
    return wanted


def _pairs(line: AxisSeries[PointCells], baseline: str | None) -> list[tuple[str, str]]:
    """Returns each stack of a series with the baseline: pairs of (stack's label, baseline's label)."""
    members = [member for point in line.points.values() for member in point.members]
    pairs = pair_with_baseline(members, baseline)
    labels = dict.fromkeys((one.cell.stack_label, other.cell.stack_label) for one, other in pairs)
    return [(label, against) for label, against in labels if label != against]


def _break_even(
    line: AxisSeries[PointCells], label: str, against: str, key: str, names: Mapping[int, str], *, indicative: bool
) -> BreakEven | None:
    """Returns the break-even of two stacks. None if fewer than two places on the axis have results of both stacks."""
    metric = BY_KEY[key]
    pairs = _pair_along(line, label, against, metric)
    crossings = _find_crossings(pairs)
    if crossings is None:
        return None
    by_label = {of.cell.stack_label: names[of.cell.id] for point in line.points.values() for of in point.members}
    found = BreakEven(
        axis=line.axis,
        where=line.where,
        metric=key,
        label=label,
        name=by_label[label],
        against_label=against,
        against_name=by_label[against],
        places=crossings.places,
        crossings=crossings.crossings,
        probability=crossings.probability,
        blocks=crossings.blocks,
        indicative=indicative or crossings.blocks < stats.MIN_BLOCKS,
        validity=worst(pair.validity for pair in pairs.values() if pair.blocks),
        evidence=Evidence(tuple(sorted({trial for pair in pairs.values() for trial in pair.evidence.used}))),
        sentence="",
        would_change="",
    )
    return replace(found, sentence=_sentence(found, crossings, metric), would_change=_would_change(found))


def _pair_along(line: AxisSeries[PointCells], label: str, against: str, metric: Metric) -> dict[float, Pairs]:
    """Pairs two stacks by block at each place on the axis where both stacks were measured."""
    found = {}
    for place, point in line.points.items():
        members = {member.cell.stack_label: member for member in point.members}
        if label in members and against in members:
            found[place] = pair_by_block(members[label], members[against], metric)
    return found


def _find_crossings(pairs: Mapping[float, Pairs]) -> stats.Crossings | None:
    blocks: dict[int, dict[float, float]] = {}
    for place, pair in pairs.items():
        for block, log_ratio in pair.log_ratios.items():
            blocks.setdefault(block, {})[place] = log_ratio
    return stats.find_crossings(list(blocks.values()))


def _sentence(found: BreakEven, crossings: stats.Crossings, metric: Metric) -> str:
    unit = get_axis_unit(found.axis)
    measured = f"measured at {listed([amount(place) for place in found.places])} {unit}"
    where = f"On {found.where}: " if found.where else ""
    if not found.crossings:
        side = {"above": "higher", "below": "lower", "neither": "neither higher nor lower"}[crossings.side]
        chance = f"; {found.probability:.0%} of bootstrap samples have a crossing" if found.probability else ""
        return (
            f"{where}on {metric.title} {found.name} is {side} than {found.against_name} everywhere ({measured}, "
            f"{counted(found.blocks, 'block')}{chance})."
        )
    parts = []
    for crossing in found.crossings:
        # Before a falling crossing, the higher throughput (or the lower time) is better.
        names = (found.name, found.against_name)
        before, after = names if crossing.falls == metric.higher_is_better else names[::-1]
        left, right = (amount(place) for place in crossing.between)
        parts.append(
            f"{before} is better up to {significant(crossing.at)} {unit} and {after} beyond ({_interval(crossing)}; "
            f"nothing was measured between {left} and {right})"
        )
    return f"{where}on {metric.title} {'; '.join(parts)} ({measured}, {counted(found.blocks, 'block')})."


def _interval(crossing: stats.Crossing) -> str:
    if not crossing.has_interval:
        return f"no interval with fewer than {stats.MIN_BLOCKS} blocks"
    low = "below the measured range" if crossing.low is None else significant(crossing.low)
    high = "above the measured range" if crossing.high is None else significant(crossing.high)
    chance = crossing.probability
    uncertain = "" if chance is None or chance >= 0.9995 else f", crossing in {chance:.1%} of bootstrap samples"
    return f"95 % interval {low}–{high}{uncertain}"


def _would_change(found: BreakEven) -> str:
    parts = []
    wide = [crossing for crossing in found.crossings if not crossing.is_narrow]
    if found.blocks < stats.MIN_BLOCKS:
        parts.append(f"{stats.MIN_BLOCKS} blocks give an interval.")
    elif wide:
        places = listed([significant(crossing.next_place) for crossing in wide])
        parts.append(f"A point at {places} would narrow the interval most (refine = true in [method] adds points).")
    parts.append("The break-even may differ on another machine, with another upstream or in another version.")
    return " ".join(parts)
