"""Somebody who looks on while the trials of a run go on, and who may not want to see the end of one, or want to see more.

What is told comes from the threads that read the streams of load and host, between a record and the next: an onlooker keeps it for later
and returns at once. What is asked comes from a thread of the onlooker's own.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from weir.generators.engine import LoadListener
from weir.generators.running import RunningLoad
from weir.model.records import Sample

SKIPPED = "skipped"
"""The kind of the reason why such a trial is rejected."""


class TrialSkippedError(Exception):
    """The trial ends here: what a part of its load gave is of no use to anybody."""


class Skip:
    """Ends the trial that goes on. It is kept as rejected, and comes again or not as the method says."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked = threading.Event()
        self._in_trial = False
        self._load: RunningLoad | None = None

    @property
    def asked(self) -> bool:
        """Whether the trial that goes on, or the last one, is skipped."""
        return self._asked.is_set()

    def ask(self) -> bool:
        """Skips the trial that goes on; False where none does. Any thread may ask."""
        with self._lock:
            if not self._in_trial:
                return False
            self._asked.set()
            if self._load is not None:
                self._load.stop()
            return True

    @contextmanager
    def trial(self) -> Iterator[None]:
        """What goes on inside is a trial that can be skipped."""
        with self._lock:
            self._in_trial = True
            self._asked.clear()
        try:
            yield
        finally:
            with self._lock:
                self._in_trial = False

    @contextmanager
    def ends(self, load: RunningLoad) -> Iterator[None]:
        """Skipping ends this load, also where that was asked just before."""
        with self._lock:
            self._load = load
            if self._asked.is_set():
                load.stop()
        try:
            yield
        finally:
            with self._lock:
                self._load = None

    def wait(self, seconds: float) -> None:
        """Waits so long, or until the trial is skipped."""
        self._asked.wait(seconds)

    def check(self) -> None:
        """Goes on only with a trial that is not skipped.

        Raises:
            TrialSkippedError: it is.
        """
        if self._asked.is_set():
            raise TrialSkippedError


class Extension:
    """Blocks that somebody asks for on top of those that the study asks for, as long as there may be more."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks = 0
        self._is_over = False

    @property
    def blocks(self) -> int:
        """How many so far."""
        with self._lock:
            return self._blocks

    def ask(self) -> bool:
        """Asks for one more; False where the last one is over. Any thread may ask."""
        with self._lock:
            if self._is_over:
                return False
            self._blocks += 1
            return True

    def close(self, blocks: int) -> bool:
        """There are no more than these; False where there are, because they were asked for meanwhile."""
        with self._lock:
            self._is_over = self._blocks == blocks
            return self._is_over


@dataclass(frozen=True, slots=True)
class Onlooker:
    """What somebody who looks on is told of each trial, and what they may ask for."""

    on_logs: Callable[[Mapping[str, Path]], None] = lambda _: None
    """The trial's log files by the name of the process; they come to be as the processes start."""
    load: LoadListener = field(default_factory=LoadListener)
    """Of the measured load."""
    on_sample: Callable[[Sample], None] = lambda _: None
    skip: Skip = field(default_factory=Skip)
    extension: Extension = field(default_factory=Extension)
