"""How well a run knows the ratios of its main comparisons so far: what it is stopped on."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from weir import stats
from weir.findings.evidence import pair_by_block
from weir.findings.metrics import BY_KEY
from weir.findings.points import PointNames, baseline_of, group_points
from weir.findings.words import sentence_names
from weir.model.run import Cell, RunInfo, Trial


@dataclass(frozen=True, slots=True)
class MainRatio:
    """The ratio of one stack to the baseline at one point, and how wide its interval is."""

    name: str
    half_width: float | None
    """To either side, as a share of the ratio; None where there is no interval."""
    spread: float | None
    """Standard deviation of the log ratio between blocks."""


def main_ratios(info: RunInfo, cells: Sequence[Cell], trials: Sequence[Trial], metric: str) -> Iterator[MainRatio]:
    """The ratio of every stack to the baseline, point by point, on a metric; the A/A copy is no main comparison."""
    names = sentence_names(cells)
    points = group_points(cells, trials)
    labels, seen = PointNames(cells), set[tuple[int, int]]()
    for point in points:
        baseline = baseline_of(point.members, info.baseline)
        for member in point.members:
            if baseline is None or member is baseline or member.cell.arm != "main" or (member.cell.id, baseline.cell.id) in seen:
                continue
            # Cells that lack a coordinate stand in several points; two of them are compared once.
            seen.add((member.cell.id, baseline.cell.id))
            where = f" at {labels.of(point.workload, point.load, point.coordinates)}" if len(points) > 1 else ""
            name = f"{names[member.cell.id]} ÷ {names[baseline.cell.id]}{where}"
            pairs = pair_by_block(member, baseline, BY_KEY[metric].of)
            ratio = stats.paired_ratio(pairs.values, pairs.against) if pairs.blocks else None
            if ratio is None or ratio.low is None or ratio.high is None:
                yield MainRatio(name, None, None)
            else:
                # The interval is symmetric in the logarithm: its upper half is the wider one.
                yield MainRatio(name, ratio.high / ratio.value - 1, ratio.spread)


def blocks_needed(spread: float, half_width: float) -> int:
    """How many blocks bring an interval to ±`half_width`, by the spread of its ratios so far: n = (t·CV/h)²."""
    return stats.needed_blocks(spread, math.log1p(half_width))
