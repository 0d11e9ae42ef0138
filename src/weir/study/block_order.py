"""The order of the trials within a block."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from weir.study.cells import PlannedCell


@dataclass(frozen=True, slots=True)
class HeadStart:
    """Short trials that run before the long ones, so that a first answer comes soon."""

    cell_ids: frozenset[int]
    """Cells whose trials are short."""
    blocks: int
    """Blocks of short trials before the first long trial."""


def order_block(
    cells: Sequence[PlannedCell], seed: int, block: int, head_start: HeadStart | None = None
) -> list[PlannedCell]:
    """Returns the cells in the order of a block. The order is random, but the same for the same seed and block, so that
    a resumed run keeps its order. In a block of a head start the short trials come first, then the long trials. Both
    groups are in random order."""
    shuffled = list(cells)
    random.Random(f"{seed}/{block}").shuffle(shuffled)
    if head_start is not None and block <= head_start.blocks:
        # A stable sort keeps the random order on both sides.
        shuffled.sort(key=lambda planned: planned.cell.id not in head_start.cell_ids)
    return shuffled
