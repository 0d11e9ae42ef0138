"""Orders trials: each block has a random order, and rejected trials run again after a later block."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from weir.study.block_order import HeadStart, order_block
from weir.study.study import PlannedCell

Slot = tuple[int, int, PlannedCell]
"""A trial: block number, position in the block, and cell."""


@dataclass(slots=True)
class CompletedTrials:
    """Finished trials of a run, by cell id and block number. `rejected` counts the rejections of each trial."""

    accepted: set[tuple[int, int]] = field(default_factory=set)
    rejected: Counter[tuple[int, int]] = field(default_factory=Counter)

    def note(self, cell_id: int, block: int, validity: str) -> None:
        if validity == "invalid":
            self.rejected[cell_id, block] += 1
        else:
            self.accepted.add((cell_id, block))

    def has_block(self, block: int) -> bool:
        """Returns whether a trial of a block has finished."""
        return any(of == block for _, of in (*self.accepted, *self.rejected))


def schedule(
    cells: Sequence[PlannedCell],
    should_start_block: Callable[[int], bool],
    seed: int,
    retries: int,
    done: CompletedTrials,
    *,
    head_start: HeadStart | None = None,
    should_continue: Callable[[int, Sequence[PlannedCell]], bool] = lambda *_: True,
    should_retry: Callable[[], bool] = lambda: True,
) -> Iterator[Slot]:
    """Yields block, position and cell of every missing trial, block by block.

    A rejected trial runs again after a later block, at most `retries` times. After the last block, retries run in
    separate rounds. `head_start` lets the short trials of the first blocks run before all long trials.

    Args:
        should_start_block: called before each block with its number from 1; False ends the run.
        done: finished trials; the caller adds each trial before it takes the next one.
        head_start: the cells with short trials, and the number of blocks; None: every block has all cells.
        should_continue: called with the number of blocks and their cells, after the head start and each later block;
            False ends the run.
        should_retry: called before each retry after the last block; False ends the run.
    """
    planned_blocks: list[tuple[int, list[PlannedCell]]] = []
    retried = range(1, retries + 1)
    waiting: list[Slot] = []
    while should_start_block(block := len(planned_blocks) + 1):
        order = order_block(cells, seed, block, head_start)
        rejected_before = _list_missing(planned_blocks, done, retried)
        planned_blocks.append((block, order))
        slots = _list_missing([(block, order)], done, range(1))
        if head_start is not None and block <= head_start.blocks:
            waiting += [slot for slot in slots if slot[2].cell.id not in head_start.cell_ids]
            yield from (slot for slot in slots if slot[2].cell.id in head_start.cell_ids)
            yield from rejected_before
            if block < head_start.blocks:
                continue
            yield from _list_missing(planned_blocks, done, retried)
            if not should_continue(block, [planned for planned in cells if planned.cell.id in head_start.cell_ids]):
                return
            yield from waiting
        else:
            yield from slots
            yield from rejected_before
        if not should_continue(block, cells):
            return
    for _ in range(retries):
        for trial in _list_missing(planned_blocks, done, retried):
            if not should_retry():
                return
            yield trial


def _list_missing(blocks: Sequence[tuple[int, list[PlannedCell]]], done: CompletedTrials, tries: range) -> list[Slot]:
    """Returns the trials of these blocks without an accepted result, if their number of rejections is in `tries`."""
    return [
        (block, position, planned)
        for block, order in blocks
        for position, planned in enumerate(order)
        if (key := (planned.cell.id, block)) not in done.accepted and done.rejected[key] in tries
    ]
