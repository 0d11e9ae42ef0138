"""Observers of a run, and thread-safe controls that skip the current trial or request another block.

The run's thread calls an observer's methods for steps and trials. Other threads, which read the records of generator
and host, call the methods for records. Each method must return at once, so that no thread waits.
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
    """Error that ends the current trial after a viewer has skipped it."""


class SkipControl:
    """Ends the current trial at a viewer's request. The run file has the trial as rejected; weir may retry it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requested = threading.Event()
        self._switch: StopSwitch | None = None
        """The stop switch of the current trial; None between trials."""

    @property
    def is_requested(self) -> bool:
        """Whether a viewer has skipped the current trial; between trials, the last trial."""
        return self._requested.is_set()

    def request(self) -> bool:
        """Skips the current trial. Returns False if no trial runs."""
        with self._lock:
            if self._switch is None:
                return False
            self._requested.set()
            self._switch.stop()
            return True

    @contextmanager
    def trial(self) -> Iterator[None]:
        """Context manager: viewers may skip the trial in the `with` block."""
        with self._lock:
            self._switch = StopSwitch()
            self._requested.clear()
        try:
            yield
        finally:
            with self._lock:
                self._switch = None

    def stops(self, load: LoadHandle) -> AbstractContextManager[None]:
        """Returns a context manager that ends `load` when a viewer skips the trial, or at once after a skip."""
        assert self._switch is not None
        return self._switch.connected(load)

    def wait(self, seconds: float) -> None:
        """Waits this number of seconds, or until a viewer skips the trial."""
        self._requested.wait(seconds)

    def check(self) -> None:
        """Raises TrialSkippedError if a viewer has skipped the trial."""
        if self._requested.is_set():
            raise TrialSkippedError


class ExtraBlocks:
    """Blocks that viewers request in addition to the study's blocks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.blocks = 0
        """Number of blocks that viewers have requested so far."""
        self._is_over = False

    def request(self) -> bool:
        """Requests one more block. Returns False if the run no longer accepts requests."""
        with self._lock:
            if self._is_over:
                return False
            self.blocks += 1
            return True

    def close(self, blocks: int) -> bool:
        """Refuses all later requests if the number of requested blocks is `blocks`. For another number, returns False,
        and requests remain possible."""
        with self._lock:
            self._is_over = self.blocks == blocks
            return self._is_over


@dataclass(frozen=True, slots=True)
class RunControls:
    """Controls for the viewers of a run."""

    skip: SkipControl = field(default_factory=SkipControl)
    extra_blocks: ExtraBlocks = field(default_factory=ExtraBlocks)


@dataclass(frozen=True, slots=True)
class TrialStart:
    """Facts about a trial that starts."""

    number: int
    """Number of the trial in the run, from 1."""
    total: int | None
    """Number of trials of the whole run; None if the stopping rule determines this number."""
    block: int
    planned: PlannedCell
    left_s: float | None
    """Estimated remaining seconds of the run; None if unknown, for example before the first trial ends."""


class RunObserver(LoadObserver):
    """Observer of one run: receives the run's progress, and the records of each measured load."""

    def on_step(self, text: str) -> None:
        """Called before a step between trials, such as a build or a check. `text` describes the step."""

    def on_trial_start(self, trial: TrialStart) -> None:
        """Called when a trial begins."""

    def on_logs(self, files: Mapping[str, Path]) -> None:
        """Called with a dict from process name to the trial's log file. A file appears when its process starts."""

    def on_trial_end(self, planned: PlannedCell, result: TrialResult) -> None:
        """Called when a trial has ended."""

    def on_answer(self, blocks: int, labels: Sequence[str]) -> None:
        """Called after `blocks` blocks with an interim answer about the stacks `labels`."""


class RunObservers(LoadObservers, RunObserver):
    """Observer that passes the progress of a run to several observers, in order."""

    def __init__(self, *observers: RunObserver | None) -> None:
        super().__init__(*observers)

    on_step = fan_out("on_step")
    on_trial_start = fan_out("on_trial_start")
    on_logs = fan_out("on_logs")
    on_trial_end = fan_out("on_trial_end")
    on_answer = fan_out("on_answer")
