"""Observers of a run, and thread-safe controls that skip the current trial or request another block.

The run's thread calls the methods for steps and trials. The threads that read the streams of load and host call the
methods for records. An observer stores its input and returns at once.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from weir.generators.handle import LoadHandle, StopSwitch
from weir.model.load_observer import LoadObserver, LoadObservers, fan_out
from weir.model.run_types import TrialResult
from weir.study.study import PlannedCell

SKIPPED = "skipped"
"""Kind of the reason that rejects a skipped trial."""


class TrialSkippedError(Exception):
    """A viewer has skipped the current trial."""


class SkipControl:
    """Ends the current trial, which stays in the run file as rejected. `method.retries` decides on a retry."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requested = threading.Event()
        self._switch: StopSwitch | None = None
        """The stop switch of the current trial; None between trials."""

    @property
    def is_requested(self) -> bool:
        """Whether the current or the last trial is skipped."""
        return self._requested.is_set()

    def request(self) -> bool:
        """Skips the current trial. Returns False if there is none."""
        with self._lock:
            if self._switch is None:
                return False
            self._requested.set()
            self._switch.stop()
            return True

    @contextmanager
    def trial(self) -> Iterator[None]:
        """Makes the trial within the context skippable."""
        with self._lock:
            self._switch = StopSwitch()
            self._requested.clear()
        try:
            yield
        finally:
            with self._lock:
                self._switch = None

    def stops(self, load: LoadHandle) -> AbstractContextManager[None]:
        """Ends this load when the trial is skipped, or at once if the trial was skipped before."""
        assert self._switch is not None
        return self._switch.connected(load)

    def wait(self, seconds: float) -> None:
        """Waits this long, or until the trial is skipped."""
        self._requested.wait(seconds)

    def check(self) -> None:
        """Raises TrialSkippedError if the trial is skipped."""
        if self._requested.is_set():
            raise TrialSkippedError


class ExtraBlocks:
    """Blocks that a viewer requests in addition to the study's."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks = 0
        self._is_over = False

    @property
    def blocks(self) -> int:
        """Number of requested blocks so far."""
        return self._blocks

    def request(self) -> bool:
        """Requests one more block. Returns False after the last block."""
        with self._lock:
            if self._is_over:
                return False
            self._blocks += 1
            return True

    def close(self, blocks: int) -> bool:
        """Accepts no further requests. With more than `blocks` requests by now, returns False and stays open."""
        with self._lock:
            self._is_over = self._blocks == blocks
            return self._is_over


@dataclass(frozen=True, slots=True)
class RunControls:
    """The controls of one run."""

    skip: SkipControl = field(default_factory=SkipControl)
    extra_blocks: ExtraBlocks = field(default_factory=ExtraBlocks)


@dataclass(frozen=True, slots=True)
class TrialStart:
    """A trial begins."""

    number: int
    """Its number in the run, from 1."""
    total: int | None
    """Number of trials of the whole run; None if the stopping rule decides."""
    block: int
    planned: PlannedCell
    left_s: float | None
    """Remaining seconds of the run, at the pace so far; None before the first trial ends."""


class RunObserver(LoadObserver):
    """Receives the progress of one run, and the records of each trial's measured load."""

    def on_step(self, text: str) -> None:
        """Called after the run has built, checked or decided something between trials."""

    def on_trial_start(self, trial: TrialStart) -> None:
        """Called when a trial begins."""

    def on_logs(self, files: Mapping[str, Path]) -> None:
        """Called with a dict from process name to the trial's log file; each file appears when its process starts."""

    def on_trial_end(self, planned: PlannedCell, result: TrialResult) -> None:
        """Called when a trial has ended."""

    def on_answer(self, blocks: int, labels: Sequence[str]) -> None:
        """Called when the run file allows an interim answer, with the number of blocks and the stacks' labels."""


class RunObservers(LoadObservers, RunObserver):
    """Passes the progress of a run to several observers, in order."""

    def __init__(self, *observers: RunObserver | None) -> None:
        super().__init__(*observers)

    on_step = fan_out("on_step")
    on_trial_start = fan_out("on_trial_start")
    on_logs = fan_out("on_logs")
    on_trial_end = fan_out("on_trial_end")
    on_answer = fan_out("on_answer")
