"""Orders the trials within a block."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from weir.study.cells import PlannedCell


@dataclass(frozen=True, slots=True)
class HeadStart:
    """Short trials that run before the long trials. They give an early interim answer."""

    cell_ids: frozenset[int]
    """Ids of the cells with short trials."""
    blocks: int
    """Number of blocks of short trials before the first long trial."""


def order_block(
    cells: Sequence[PlannedCell], seed: int, block: int, head_start: HeadStart | None = None
) -> list[PlannedCell]:
    """Returns the cells in the order of their trials in a block. The order is random, but depends only on seed and
    block: so a resumed run has the same order. In a block of the head start, all short trials come first."""
    shuffled = list(cells)
    random.Random(f"{seed}/{block}").shuffle(shuffled)
    if head_start is not None and block <= head_start.blocks:
        # A stable sort keeps the random order within the short and within the long trials.
        shuffled.sort(key=lambda planned: planned.cell.id not in head_start.cell_ids)
    return shuffled
