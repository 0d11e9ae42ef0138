"""Which trial comes next: block by block in the study's order, with what was rejected again after a later block. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from weir.model.run import Trial
from weir.study.study import PlannedCell, order_of_block


@dataclass(slots=True)
class Done:
    """Trials of a run that are finished, by cell and block."""

    accepted: set[tuple[int, int]] = field(default_factory=set)
    rejected: dict[tuple[int, int], int] = field(default_factory=dict)

    def note(self, cell_id: int, block: int, validity: str) -> None:
        """Takes a finished trial."""
        if validity == "invalid":
            self.rejected[cell_id, block] = self.rejected.get((cell_id, block), 0) + 1
        else:
            self.accepted.add((cell_id, block))

    def attempts(self, cell_id: int, block: int) -> int:
        """How many trials of a cell in a block were rejected."""
        return self.rejected.get((cell_id, block), 0)


def schedule(cells: Sequence[PlannedCell], blocks: int, seed: int, retries: int, done: Done) -> Iterator[tuple[int, int, PlannedCell]]:
    """Block, position and cell of every trial that is still missing, block by block.

    What is rejected while this is consumed comes again in later blocks (after the last block, in rounds of its own), at most `retries`
    times.
    """
    planned_blocks = [(block, order_of_block(list(cells), seed, block)) for block in range(1, blocks + 1)]
    for block, order in planned_blocks:
        rejected_before = _missing(planned_blocks, done, retries, before=block)
        for position, planned in enumerate(order):
            if (planned.cell.id, block) not in done.accepted and not done.attempts(planned.cell.id, block):
                yield block, position, planned
        yield from rejected_before
    for _ in range(retries):
        yield from _missing(planned_blocks, done, retries, before=blocks + 1)


def _missing(
    planned_blocks: Sequence[tuple[int, list[PlannedCell]]], done: Done, retries: int, *, before: int
) -> list[tuple[int, int, PlannedCell]]:
    """Trials of blocks before `before` that were rejected and may be tried again."""
    return [
        (block, position, planned)
        for block, order in planned_blocks
        if block < before
        for position, planned in enumerate(order)
        if (planned.cell.id, block) not in done.accepted and 0 < done.attempts(planned.cell.id, block) <= retries
    ]


def done_in(trials: Sequence[Trial]) -> Done:
    """What the finished trials of a run come to."""
    done = Done()
    for trial in trials:
        done.note(trial.cell.id, trial.block, trial.result.verdict.validity)
    return done
