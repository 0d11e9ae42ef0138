"""Which trial comes next: blocks in random order, and rejected trials again in a later block. Pure."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from weir.model.run import Trial
from weir.study.study import HeadStart, PlannedCell, order_of_block

Slot = tuple[int, int, PlannedCell]
"""Block, position in the block, and cell of a trial."""


@dataclass(slots=True)
class Done:
    """Trials of a run that are finished, by cell and block."""

    accepted: set[tuple[int, int]] = field(default_factory=set)
    rejected: dict[tuple[int, int], int] = field(default_factory=dict)

    def note(self, cell_id: int, block: int, validity: str) -> None:
        """A trial has ended with this verdict."""
        if validity == "invalid":
            self.rejected[cell_id, block] = self.rejected.get((cell_id, block), 0) + 1
        else:
            self.accepted.add((cell_id, block))

    def attempts(self, cell_id: int, block: int) -> int:
        """How often a trial was tried and rejected."""
        return self.rejected.get((cell_id, block), 0)

    def has_block(self, block: int) -> bool:
        """Whether any trial of a block was tried."""
        return any(of == block for _, of in (*self.accepted, *self.rejected))


def schedule(
    cells: Sequence[PlannedCell],
    begins: Callable[[int], bool],
    seed: int,
    retries: int,
    done: Done,
    *,
    head_start: HeadStart | None = None,
    goes_on: Callable[[int, Sequence[PlannedCell]], bool] = lambda *_: True,
    has_time: Callable[[], bool] = lambda: True,
) -> Iterator[Slot]:
    """Yields block, position and cell of every trial that is still missing, block by block.

    What is rejected while this is consumed comes again in later blocks (after the last block, in rounds of its own), at most `retries`
    times. With a head start the long trials of its blocks come after the short ones of all of them.

    Args:
        cells: every cell of a block.
        begins: asked before each block, by its number from 1; the first block that does not begin ends the run.
        seed: draws the order of each block.
        retries: how often a rejected trial is tried again.
        done: what was done before, and what is done while this is consumed.
        head_start: the short trials that run first.
        goes_on: asked after the head start and after each later block, with the number of blocks and the cells that have been through
            them; False ends the run.
        has_time: asked before each trial behind the last block.
    """
    planned_blocks: list[tuple[int, list[PlannedCell]]] = []
    waiting: list[Slot] = []
    while begins(block := len(planned_blocks) + 1):
        order = order_of_block(cells, seed, block, head_start)
        rejected_before = _missing(planned_blocks, done, retries)
        planned_blocks.append((block, order))
        slots = [
            (block, position, planned)
            for position, planned in enumerate(order)
            if (planned.cell.id, block) not in done.accepted and not done.attempts(planned.cell.id, block)
        ]
        if head_start is not None and block <= head_start.blocks:
            waiting += [slot for slot in slots if slot[2].cell.id not in head_start.cell_ids]
            yield from (slot for slot in slots if slot[2].cell.id in head_start.cell_ids)
            yield from rejected_before
            if block < head_start.blocks:
                continue
            yield from _missing(planned_blocks, done, retries)
            if not goes_on(block, [planned for planned in cells if planned.cell.id in head_start.cell_ids]):
                return
            yield from waiting
        else:
            yield from slots
            yield from rejected_before
        if not goes_on(block, cells):
            return
    for _ in range(retries):
        for trial in _missing(planned_blocks, done, retries):
            if not has_time():
                return
            yield trial


def _missing(planned_blocks: Sequence[tuple[int, list[PlannedCell]]], done: Done, retries: int) -> list[Slot]:
    """Trials of these blocks that were rejected and may be tried again."""
    return [
        (block, position, planned)
        for block, order in planned_blocks
        for position, planned in enumerate(order)
        if (planned.cell.id, block) not in done.accepted and 0 < done.attempts(planned.cell.id, block) <= retries
    ]


def done_in(trials: Sequence[Trial]) -> Done:
    """What is done by these finished trials."""
    done = Done()
    for trial in trials:
        done.note(trial.cell.id, trial.block, trial.result.verdict.validity)
    return done
