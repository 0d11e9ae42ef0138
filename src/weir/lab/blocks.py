"""The blocks of a run, one after the other, until the stop rule says that there are enough."""

import importlib
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from weir.generators.running import HERE, LoadFrom
from weir.host import Host
from weir.lab.onlooker import Onlooker
from weir.lab.schedule import Done, done_in, schedule
from weir.lab.services import Services
from weir.lab.stop import Precision, is_narrow, stop_before, wide
from weir.lab.trial import Bench, run_trial
from weir.model.errors import UsageError
from weir.model.run import Trial, TrialResult
from weir.model.stop import Stop
from weir.stacks.build import BuiltStack
from weir.store import RunReader, RunWriter
from weir.study.study import INTERVAL_BLOCKS, PlannedCell, Study


@dataclass(frozen=True, slots=True)
class Progress:
    """What a run tells while it goes on. Every function gets plain values and must return quickly."""

    on_step: Callable[[str], None] = lambda _: None
    """A step before the first trial (building, checking), or what a block has changed."""
    on_trial: Callable[[int, int | None, PlannedCell, int, float | None], None] = lambda *_: None
    """A trial begins: how many were done, how many there are if that is known, the cell, the block, and for how many seconds the run goes
    on from here: by the plan, at the pace so far, and None before there is one."""
    on_result: Callable[[PlannedCell, TrialResult], None] = lambda *_: None
    """A trial has ended."""
    on_answer: Callable[[int, Sequence[str]], None] = lambda *_: None
    """The run file has enough for an interim answer: after how many blocks, and the labels of the stacks that it is about."""
    onlooker: Onlooker = field(default_factory=Onlooker)
    """Who looks on while a trial goes on."""


def time_shortages(study: Study, cells: Sequence[PlannedCell]) -> list[str]:
    """A sentence where the budget has no room for a block."""
    budget_s, block_s = study.file.method.budget_s, sum(planned.trial_s for planned in cells)
    if budget_s is None or budget_s >= block_s:
        return []
    return [
        f"{study.path}: method.budget_s: found {budget_s:g}, expected at least {math.ceil(block_s)}: "
        f"one block of {len(cells)} trials takes that long"
    ]


def require_time(study: Study, cells: Sequence[PlannedCell]) -> None:
    """Checks that the budget has room for a block.

    Raises:
        UsageError: it has not.
    """
    for lacking in time_shortages(study, cells):
        raise UsageError(lacking, hint="a shorter load.duration_s, fewer stacks or points, or a larger budget_s")


def run_blocks(
    host: Host,
    services: Services,
    study: Study,
    folder: Path,
    cells: Sequence[PlannedCell],
    ready: Callable[[PlannedCell], BuiltStack | None],
    writer: RunWriter,
    earlier: Sequence[Trial],
    ceiling_rps: Callable[[PlannedCell], float | None],
    progress: Progress,
    load_from: LoadFrom = HERE,
) -> None:
    """Runs what is missing of a run, block by block, and notes why it ends.

    Args:
        host: starts and stops the stacks.
        services: what the stacks need.
        study: the study.
        folder: the run folder.
        cells: every cell of a block.
        ready: gives the built stack of a cell, and builds and checks it if nobody has yet.
        writer: the run file.
        earlier: finished trials of a run that goes on.
        ceiling_rps: what the generator reaches on a null server with the load of a cell.
        progress: what is told meanwhile.
        load_from: where weir's own loads come from.
    """
    # What looks for a steady state is loaded now, and not beside the first load.
    importlib.import_module("weir.stats.steady")
    method = study.file.method
    done = done_in(earlier)
    rule = _Rule(study, writer, cells, done, earlier, progress)
    extension = progress.onlooker.extension
    trials = schedule(
        cells,
        rule.begins,
        method.seed,
        method.retries,
        done,
        head_start=study.head_start(cells),
        goes_on=rule.goes_on,
        has_time=rule.has_time,
    )
    for number, (block, position, planned) in enumerate(trials, start=len(earlier)):
        built = ready(planned)
        attempt = done.attempts(planned.cell.id, block) + 1
        total = None if method.last_block is None else max((method.last_block + extension.blocks) * len(cells), number + 1)
        progress.on_trial(number, total, planned, block, rule.left_s(extension.blocks))
        bench = Bench(
            host=host,
            services=services,
            placement=planned.placed(writer.info.placement),
            load=planned.load,
            method=planned.method,
            folder=folder,
            ceiling_rps=ceiling_rps(planned),
            objectives=study.objectives,
            onlooker=progress.onlooker,
            load_from=load_from,
        )
        began = time.monotonic()
        trial_id = writer.begin_trial(planned.cell, block=block, position=position, attempt=attempt, started_unix_ns=time.time_ns())
        try:
            seed = f"{method.seed}/{block}/{planned.cell.id}/{attempt}"
            result = run_trial(bench, planned, built, writer, trial_id, seed=seed)
        except BaseException:
            writer.discard_trial(trial_id)
            raise
        writer.finish_trial(trial_id, result)
        done.note(planned.cell.id, block, result.verdict.validity)
        rule.spent(time.monotonic() - began, planned, is_done=result.verdict.validity != "invalid")
        progress.on_result(planned, result)
    assert rule.stop is not None
    writer.note_stop(rule.stop)


class _Rule:
    """The stop rule with what it has to know: the trials so far, from the run file, and what they took."""

    def __init__(
        self, study: Study, writer: RunWriter, cells: Sequence[PlannedCell], done: Done, earlier: Sequence[Trial], progress: Progress
    ) -> None:
        self._study = study
        self._method = study.file.method
        self._writer = writer
        self._cells = len(cells)
        self._block_s = sum(planned.trial_s for planned in cells)
        by_id = {planned.cell.id: planned.trial_s for planned in cells}
        # By the plan: what the trials so far were to take, and those of them that count.
        self._planned_s = sum(by_id[trial.cell.id] for trial in earlier)
        self._done_s = sum(by_id[cell_id] for cell_id, _ in done.accepted)
        self._done = done
        self._progress = progress
        self._planned_trial_s = self._block_s / len(cells)
        self._spent_s = sum(trial.result.phases_s.get("total", 0.0) for trial in earlier)
        self._trials = self._trials_answered = len(earlier)
        self.stop: Stop | None = None

    def left_s(self, blocks_asked_for: int) -> float | None:
        """How long the trials that are missing take; None before any trial, or if nobody knows how many there will be."""
        if self._method.last_block is None or not self._planned_s:
            return None
        planned_s = self._block_s * (self._method.last_block + blocks_asked_for) - self._done_s
        return max(0.0, planned_s) * self._spent_s / self._planned_s

    def spent(self, length_s: float, planned: PlannedCell, *, is_done: bool) -> None:
        """A trial of a cell took so long; it may have to be tried again."""
        self._planned_s += planned.trial_s
        self._done_s += planned.trial_s if is_done else 0.0
        self._spent_s += length_s
        self._trials += 1

    def begins(self, block: int) -> bool:
        """Whether a block begins; where it does not, `stop` says why."""
        precisions = self._precisions() if block > 1 and self._method.width is not None else []
        extension = self._progress.onlooker.extension
        while True:
            asked_for = extension.blocks
            self.stop = stop_before(
                block,
                self._method,
                precisions=precisions,
                spent_s=self._spent_s,
                block_s=self._cells * self._trial_s,
                trials_in_block=self._done.has_block(block),
                asked_for=asked_for,
            )
            # Who asks for one more just now is told that it comes, or that it is too late.
            if self.stop is None or extension.close(asked_for):
                break
        if precisions and self.stop is None and self._method.width is not None:
            enough = is_narrow(precisions, self._method.width)
            state = f"narrow enough; the study asks for {self._method.blocks} blocks" if enough else wide(precisions, self._method.width)
            self._progress.on_step(f"after block {block - 1}: {state}")
        elif self.stop is not None and self.stop.rule != "blocks":
            self._progress.on_step(f"no further block: {self.stop.text}")
        return self.stop is None

    def goes_on(self, blocks: int, measured: Sequence[PlannedCell]) -> bool:
        """Tells of an interim answer after so many blocks of these cells; returns whether the run goes on after it."""
        is_last = blocks == self._method.last_block and len(measured) == self._cells
        # A resumed run repeats no answer.
        if not self._study.has_interim_answers or is_last or self._trials == self._trials_answered:
            return True
        self._trials_answered = self._trials
        labels = list(dict.fromkeys(planned.stack.label for planned in measured))
        if self._study.ends_with_first_answer and blocks >= INTERVAL_BLOCKS:
            self.stop = Stop("first_answer", blocks, f"{blocks} blocks of {' and '.join(labels)}: the first answer was enough")
            return False
        self._progress.on_answer(blocks, labels)
        return True

    def has_time(self) -> bool:
        """Whether the budget has room for a trial more."""
        return self._method.budget_s is None or self._spent_s + self._trial_s <= self._method.budget_s

    @property
    def _trial_s(self) -> float:
        return self._spent_s / self._trials if self._trials else self._planned_trial_s

    def _precisions(self) -> list[Precision]:
        # statistics take a while to load: only runs that are stopped on width need it here.
        from weir.findings.precision import blocks_needed, main_ratios

        width = self._method.width
        assert width is not None
        with RunReader(self._writer.path) as reader:
            found = main_ratios(self._writer.info, self._writer.cells, reader.trials(), self._method.width_of)
            return [Precision(one.name, one.half_width, None if one.spread is None else blocks_needed(one.spread, width)) for one in found]
