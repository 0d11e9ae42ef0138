"""Which trial comes next: blocks in random order, and rejected trials again in a later block. Pure."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from weir.model.run import Trial
from weir.study.study import PlannedCell, order_of_block


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
    has_time: Callable[[], bool] = lambda: True,
) -> Iterator[tuple[int, int, PlannedCell]]:
    """Block, position and cell of every trial that is still missing, block by block.

    What is rejected while this is consumed comes again in later blocks (after the last block, in rounds of its own), at most `retries`
    times.

    Args:
        cells: every cell of a block.
        begins: asked before each block, by its number from 1; the first block that does not begin ends the run.
        seed: draws the order of each block.
        retries: how often a rejected trial is tried again.
        done: what was done before, and what is done while this is consumed.
        has_time: asked before each trial behind the last block.
    """
    planned_blocks: list[tuple[int, list[PlannedCell]]] = []
    while begins(block := len(planned_blocks) + 1):
        order = order_of_block(list(cells), seed, block)
        rejected_before = _missing(planned_blocks, done, retries)
        planned_blocks.append((block, order))
        for position, planned in enumerate(order):
            if (planned.cell.id, block) not in done.accepted and not done.attempts(planned.cell.id, block):
                yield block, position, planned
        yield from rejected_before
    for _ in range(retries):
        for trial in _missing(planned_blocks, done, retries):
            if not has_time():
                return
            yield trial


def _missing(planned_blocks: Sequence[tuple[int, list[PlannedCell]]], done: Done, retries: int) -> list[tuple[int, int, PlannedCell]]:
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
