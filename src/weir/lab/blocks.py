"""Runs blocks of trials one after the other, until the stopping rule ends the run."""

import importlib
import math
import random
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from weir.lab.context import RunContext, TrialContext
from weir.lab.observer import TrialStart
from weir.lab.schedule import CompletedTrials, schedule
from weir.lab.stopping_rule import describe_wide_intervals, find_stop_reason, is_narrow
from weir.lab.trial import run_trial
from weir.model.errors import UsageError
from weir.model.run_types import StopReason, Trial, TrialResult
from weir.stacks.build import BuiltStack
from weir.store import RunReader, RunWriter
from weir.study.study import INTERVAL_BLOCKS, PlannedCell, Study

if TYPE_CHECKING:
    from weir.findings.precision import Precision


def find_time_shortages(study: Study, cells: Sequence[PlannedCell]) -> list[str]:
    """Returns a sentence in a list if the time budget is shorter than one block, otherwise an empty list."""
    budget_s, block_s = study.file.method.budget_s, sum(planned.trial_s for planned in cells)
    if budget_s is None or budget_s >= block_s:
        return []
    return [
        f"{study.place}method.budget_s: found {budget_s:g}, expected at least {math.ceil(block_s)}: "
        f"one block of {len(cells)} trials takes that long"
    ]


def require_time(study: Study, cells: Sequence[PlannedCell]) -> None:
    """Raises UsageError if the study's time budget is shorter than one block."""
    for lacking in find_time_shortages(study, cells):
        raise UsageError(lacking, hint="choose a shorter load.duration_s, fewer stacks or points, or a larger budget_s")


def run_blocks(
    run: RunContext,
    cells: Sequence[PlannedCell],
    prepare_stack: Callable[[PlannedCell], BuiltStack | None],
    writer: RunWriter,
    earlier: Sequence[Trial],
    generator_limit_rps: Callable[[PlannedCell], float | None],
) -> None:
    """Runs the missing trials block by block, and records why the run ends. A block has one trial of each cell.
    `prepare_stack` returns a cell's built stack. It builds and checks each stack once. `generator_limit_rps` returns
    the generator's throughput on a null server with a cell's load."""
    # Imports this slow module before the first load. A later import would disturb the load.
    importlib.import_module("weir.stats.steady")
    method, rule = run.study.file.method, _StoppingRule(run, writer, cells, earlier)
    done = rule.done
    trials = schedule(
        cells,
        rule.should_start_block,
        method.seed,
        method.retries,
        done,
        head_start=run.study.head_start(cells),
        should_continue=rule.should_continue,
        should_retry=rule.should_retry,
    )
    for number, (block, position, planned) in enumerate(trials, start=len(earlier) + 1):
        built = prepare_stack(planned)
        attempt, total = done.rejected[planned.cell.id, block] + 1, None
        if method.last_block is not None:
            total = max((method.last_block + run.controls.extra_blocks.blocks) * len(cells), number)
        run.observer.on_trial_start(TrialStart(number, total, block, planned, rule.estimate_remaining_s()))
        trial_id = writer.begin_trial(
            planned.cell, block=block, position=position, attempt=attempt, started_unix_ns=time.time_ns()
        )
        inputs = random.Random(f"{method.seed}/{block}/{planned.cell.id}/{attempt}")
        trial = TrialContext(run, planned, built, writer, trial_id, inputs, generator_limit_rps(planned))
        try:
            result = run_trial(trial)
        except BaseException:
            writer.discard_trial(trial_id)
            raise
        writer.finish_trial(trial_id, result)
        done.note(planned.cell.id, block, result.verdict.validity)
        rule.record_trial(result, planned)
        run.observer.on_trial_end(planned, result)
    assert rule.stop is not None
    writer.note_stop(rule.stop)


class _StoppingRule:
    """The stopping rule with its inputs: the trials so far and their durations."""

    def __init__(
        self, run: RunContext, writer: RunWriter, cells: Sequence[PlannedCell], earlier: Sequence[Trial]
    ) -> None:
        self._study, self._method = run.study, run.study.file.method
        self._observer, self._extra_blocks = run.observer, run.controls.extra_blocks
        self._writer = writer
        self._labels = {planned.cell.id: planned.name for planned in cells}
        self._cells = len(cells)
        self._block_s = sum(planned.trial_s for planned in cells)
        by_id = {planned.cell.id: planned.trial_s for planned in cells}
        # Planned seconds of all trials so far. `_done_s` has the planned seconds of the accepted trials only.
        self._planned_s = sum(by_id[trial.cell.id] for trial in earlier)
        self.done = CompletedTrials()
        for trial in earlier:
            self.done.note(trial.cell.id, trial.block, trial.result.verdict.validity)
        self._done_s = sum(by_id[cell_id] for cell_id, _ in self.done.accepted)
        self._spent_s = sum(trial.result.phases_s.get("total", 0.0) for trial in earlier)
        self._trials = self._answered_trials = len(earlier)
        self._has_responses = any(_has_responses(trial.result) for trial in earlier)
        self.stop: StopReason | None = None

    def estimate_remaining_s(self) -> float | None:
        """Returns the estimated seconds for the missing trials; None if unknown, for example before the first trial."""
        if self._method.last_block is None or not self._planned_s:
            return None
        planned_s = self._block_s * (self._method.last_block + self._extra_blocks.blocks) - self._done_s
        return max(0.0, planned_s) * self._spent_s / self._planned_s

    def record_trial(self, result: TrialResult, planned: PlannedCell) -> None:
        """Counts a finished trial. An invalid one must run again."""
        self._planned_s += planned.trial_s
        self._done_s += planned.trial_s if result.verdict.validity != "invalid" else 0.0
        self._spent_s += result.phases_s["total"]
        self._trials += 1
        self._has_responses = self._has_responses or _has_responses(result)

    def should_start_block(self, block: int) -> bool:
        """Returns whether block number `block` may start. If not, sets `stop` to the reason."""
        width = self._method.width
        precisions = self._precisions(width) if block > 1 and width is not None else []
        measured = {cell_id for cell_id, _ in self.done.accepted}
        unmeasured = next((label for cell_id, label in self._labels.items() if cell_id not in measured), "")
        while True:
            extra_blocks = self._extra_blocks.blocks
            self.stop = find_stop_reason(
                block,
                self._method,
                precisions=precisions,
                spent_s=self._spent_s,
                block_s=self._cells * self._trial_s,
                trials_in_block=self.done.has_block(block),
                extra_blocks=extra_blocks,
                unmeasured=unmeasured,
                has_responses=self._has_responses,
            )
            # If a viewer has requested another block, `close` returns False, and the rule runs again.
            if self.stop is None or self._extra_blocks.close(extra_blocks):
                break
        if precisions and self.stop is None and width is not None:
            state = describe_wide_intervals(precisions, width)
            if is_narrow(precisions, width):
                state = f"every interval is narrow enough, but the study requires {self._method.blocks} blocks"
            self._observer.on_step(f"after block {block - 1}: {state}")
        elif self.stop is not None and self.stop.rule != "blocks":
            self._observer.on_step(f"no more blocks: {self.stop.text}")
        return self.stop is None

    def should_continue(self, blocks: int, measured: Sequence[PlannedCell]) -> bool:
        """Reports an interim answer after `blocks` blocks of the cells `measured`. Returns whether the run goes on."""
        is_last = blocks == self._method.last_block and len(measured) == self._cells
        # A resumed run does not repeat an interim answer.
        if not self._study.has_interim_answers or is_last or self._trials == self._answered_trials:
            return True
        self._answered_trials = self._trials
        labels = list(dict.fromkeys(planned.stack.label for planned in measured))
        if self._study.ends_with_first_answer and blocks >= INTERVAL_BLOCKS:
            why = f"{blocks} blocks of {' and '.join(labels)}: the first answer was enough"
            self.stop = StopReason("first_answer", blocks, why)
            return False
        self._observer.on_answer(blocks, labels)
        return True

    def should_retry(self) -> bool:
        """Returns whether an invalid trial may run again after the last block."""
        if self._method.last_block is None and not self._has_responses:
            return False
        return self._method.budget_s is None or self._spent_s + self._trial_s <= self._method.budget_s

    @property
    def _trial_s(self) -> float:
        return self._spent_s / self._trials if self._trials else self._block_s / self._cells

    def _precisions(self, width: float) -> "list[Precision]":
        # A slow import: only runs with `width` need the statistics here.
        from weir.findings.precision import iter_precisions

        with RunReader(self._writer.path) as reader:
            trials, metric = reader.trials(), self._method.width_of
            return list(iter_precisions(self._writer.info, self._writer.cells, trials, metric, width))


def _has_responses(result: TrialResult) -> bool:
    return result.summary is not None and result.summary.requests.completed > 0
