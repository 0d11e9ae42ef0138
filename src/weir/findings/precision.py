"""Computes the current precision of a run's main ratios, for the stopping rule."""

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
class Precision:
    """The current precision of one main comparison's ratio."""

    name: str
    """The names of both stacks, and the point if the run has several points. Example: 'Sanic ÷ Flask'."""
    half_width: float | None
    """Relative half width of the interval; None without an interval."""
    blocks_needed: int | None
    """Estimated total number of blocks for the wanted width of the interval: n = (t·CV/h)²."""


def iter_precisions(
    info: RunInfo, cells: Sequence[Cell], trials: Sequence[Trial], metric: str, wanted_half_width: float
) -> Iterator[Precision]:
    """Yields the precision of each stack's ratio to the baseline on `metric` at each point. Leaves out A/A copies."""
    names = sentence_names(cells)
    points = group_points(cells, trials)
    labels, seen = PointNames(cells), set[tuple[int, int]]()
    for point in points:
        for member, baseline in pair_with_baseline(point.members, info.baseline):
            # A cell without a coordinate belongs to several points. Each pair of cells counts once.
            if (member.cell.id, baseline.cell.id) in seen:
                continue
            seen.add((member.cell.id, baseline.cell.id))
            where = f" at {labels.of(point)}" if len(points) > 1 else ""
            name = f"{names[member.cell.id]} ÷ {names[baseline.cell.id]}{where}"
            ratio = pair_by_block(member, baseline, BY_KEY[metric], info.first_look).ratio
            if ratio is None or ratio.low is None or ratio.high is None:
                yield Precision(name, None, None)
                continue
            log_width, spread = math.log1p(wanted_half_width), ratio.spread
            blocks = None if spread is None else stats.blocks_for_precision(spread, log_width)
            # The interval is symmetric in the logarithm, so its upper half is wider.
            yield Precision(name, ratio.high / ratio.value - 1, blocks)
