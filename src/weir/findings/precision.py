"""Precision of a run's main ratios so far, for the stopping rule."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from weir import stats
from weir.findings.evidence import pair_by_block
from weir.findings.formatting import sentence_names
from weir.findings.metrics import BY_KEY
from weir.findings.points import PointNames, group_points, pair_with_baseline
from weir.model.run_types import Cell, RunInfo, Trial


@dataclass(frozen=True, slots=True)
class MainRatio:
    """The ratio of one stack to the baseline at one point, with the width of its interval."""

    name: str
    half_width: float | None
    """Relative; None without an interval."""
    spread: float | None
    """Standard deviation of the log ratio between blocks."""


def iter_main_ratios(info: RunInfo, cells: Sequence[Cell], trials: Sequence[Trial], metric: str) -> Iterator[MainRatio]:
    """Yields the ratio of every stack to the baseline at each point on a metric, without A/A copies."""
    names = sentence_names(cells)
    points = group_points(cells, trials)
    labels, seen = PointNames(cells), set[tuple[int, int]]()
    for point in points:
        for member, baseline in pair_with_baseline(point.members, info.baseline):
            # A cell that lacks a coordinate belongs to several points; each pair counts once.
            if (member.cell.id, baseline.cell.id) in seen:
                continue
            seen.add((member.cell.id, baseline.cell.id))
            where = f" at {labels.of(point)}" if len(points) > 1 else ""
            name = f"{names[member.cell.id]} ÷ {names[baseline.cell.id]}{where}"
            ratio = pair_by_block(member, baseline, BY_KEY[metric].of, info.first_look).ratio
            if ratio is None or ratio.low is None or ratio.high is None:
                yield MainRatio(name, None, None)
            else:
                # The interval is symmetric in the logarithm: its upper half is the wider one.
                yield MainRatio(name, ratio.high / ratio.value - 1, ratio.spread)


def estimate_blocks(spread: float, half_width: float) -> int:
    """Returns the blocks for an interval of ±`half_width`, from the spread of the ratios so far: n = (t·CV/h)²."""
    return stats.blocks_for_precision(spread, math.log1p(half_width))
