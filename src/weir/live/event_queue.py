"""The queue between the measuring threads and the page's thread. The queue contains records (intervals and samples) and
facts (such as the start of a trial). A write never blocks: it appends one record or fact and increments a few counters.
A full queue drops the oldest record, but no fact. The page's thread builds the page's state from records and facts, and
reads nothing without viewers. A new viewer sees the last `MOST_RECORDS` records of the load."""

import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from weir.live.actions import Controls
from weir.live.page_facts import PageInfo, Totals, TrialEnded, TrialStarted
from weir.live.state import PageState
from weir.model.load_observer import LoadObserver
from weir.model.load_records import Interval, LoadEvent, LoadStarted
from weir.model.observer_records import Sample

MOST_RECORDS = 1200
"""Maximum number of unread records: one minute with ten intervals and ten samples a second."""
_MOST_FACTS = 20_000
"""Maximum number of unread facts, far above the number in any run."""


class EventQueue(LoadObserver):
    """The records and facts of a run or load. Measuring threads call the methods from `on_step` to `end`. Only the
    page's thread calls the methods below `end`, from `snapshot` to `is_measuring`."""

    def __init__(
        self, about: PageInfo, controls: Controls | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.controls = controls or Controls()
        self._clock = clock
        self._facts: deque[tuple[Callable[[Any, float], None], Any, float]] = deque(maxlen=_MOST_FACTS)
        """Unread facts as (method of the page's state for the fact, fact, time in seconds)."""
        self._records: deque[tuple[int, Interval | Sample]] = deque(maxlen=MOST_RECORDS)
        self.number = 0
        """Number of the current or last trial; 0 before the first trial."""
        self._totals = Totals()
        self._state = PageState(about, self.controls.names, clock())
        self._has_changes = False
        self._published_s = clock()

    def on_step(self, text: str) -> None:
        """Adds a line about an activity outside trials, or about an event during a trial."""
        self._put(self._state.add_step, text)

    def begin_trial(self, trial: TrialStarted) -> None:
        """Begins a trial or load. The number of `trial` must be higher than the number of the last trial."""
        self._totals = Totals()
        self._put(self._state.begin_trial, trial)
        # The number changes only after the fact is in the queue. So records with the new number follow the fact.
        self.number = trial.number

    def show_logs(self, files: Mapping[str, Path]) -> None:
        self._put(self._state.show_logs, dict(files))

    def on_start(self, started: LoadStarted) -> None:
        self._put(self._state.start_load, started)

    def on_interval(self, interval: Interval) -> None:
        totals = self._totals
        totals.answered += interval.completed
        if interval.failed:
            totals.failed += interval.failed
            # Replaces the dictionary, because another thread may read the old dictionary.
            totals.errors = dict(Counter(totals.errors) + Counter(interval.errors.occurred))
        self._records.append((self.number, interval))

    def on_sample(self, sample: Sample) -> None:
        self._records.append((self.number, sample))

    def on_event(self, event: LoadEvent) -> None:
        self.on_step(f"at {event.t_s:.1f} s: {event.kind}: {event.detail}")

    def end_trial(self, ended: TrialEnded) -> None:
        self._put(self._state.end_trial, ended)

    def end(self, text: str) -> None:
        """Adds the end of the run or load. `text` tells viewers how it ended. No event may follow."""
        self._put(self._state.end, text)

    def snapshot(self) -> dict[str, Any]:
        self._read()
        return self._state.snapshot(self._totals, self._clock())

    def changes(self) -> dict[str, Any] | None:
        """Returns the changes since the last call; None without changes. A run's elapsed time changes each second."""
        self._read()
        now_s = self._clock()
        if not self._has_changes and (self._state.phase == "ended" or now_s - self._published_s < 1.0):
            return None
        self._has_changes, self._published_s = False, now_s
        return self._state.changes(self._totals, now_s)

    def log(self, name: str) -> Path | None:
        """Returns the log file of the process `name` in the current trial; None if this process has no log."""
        self._read()
        return self._state.logs.get(name)

    @property
    def is_measuring(self) -> bool:
        """Whether a trial is starting or running. No computation may disturb a trial."""
        self._read()
        return self._state.phase in ("starting", "load")

    def _put(self, apply: Callable[[Any, float], None], fact: Any) -> None:
        self._facts.append((apply, fact, self._clock()))

    def _read(self) -> None:
        while self._facts:
            apply, fact, at_s = self._facts.popleft()
            apply(fact, at_s)
            self._has_changes = True
        while self._records:
            try:
                number, record = self._records.popleft()
            except IndexError:
                break
            if number > self._state.number:
                # The record's trial started after this read of the facts. The record waits for the next read.
                self._records.appendleft((number, record))
                break
            if number == self._state.number:
                self._state.add_record(record)
                self._has_changes = True
