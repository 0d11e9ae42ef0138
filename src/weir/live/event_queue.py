"""The queue between the measuring threads and the page's thread. Writing never blocks and computes nothing: it appends
a record to a bounded queue, which drops its oldest when full, and increments a few counters. It keeps all facts, a few
for each trial. The reader builds the page's state from both. Without a viewer nothing is read; a new viewer sees the
last `MOST_RECORDS` records of the current load."""

import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from weir.live.actions import Controls
from weir.live.page_facts import PageInfo, Totals, TrialEnded, TrialStarted
from weir.live.state import PageState
from weir.model.load_observer import LoadObserver
from weir.model.records import Interval, LoadEvent, LoadStarted, Sample

MOST_RECORDS = 1200
"""One minute of intervals and samples at ten a second each."""
_MOST_FACTS = 20_000
"""A bound far above any run."""


class EventQueue(LoadObserver):
    """The events of a run or load. The measuring threads call the methods up to `end`; the page's one thread calls the
    others."""

    def __init__(
        self, about: PageInfo, controls: Controls | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.controls = controls or Controls()
        self._clock = clock
        self._facts: deque[tuple[Callable[[Any, float], None], Any, float]] = deque(maxlen=_MOST_FACTS)
        """Calls of the state's methods, each with a fact and its time, that the page's thread makes."""
        self._records: deque[tuple[int, Interval | Sample]] = deque(maxlen=MOST_RECORDS)
        self._number = 0
        self._totals = Totals()
        self._state = PageState(about, self.controls.names, clock())
        self._has_changes = False
        self._published_s = clock()

    def on_step(self, text: str) -> None:
        """Reports an activity outside trials, or an event of a trial."""
        self._put(self._state.add_step, text)

    def begin_trial(self, trial: TrialStarted) -> None:
        """Starts a trial or load; its number is higher than the last one's."""
        self._totals = Totals()
        self._put(self._state.begin_trial, trial)
        # Set after the fact: records with this number then follow it.
        self._number = trial.number

    def show_logs(self, files: Mapping[str, Path]) -> None:
        self._put(self._state.show_logs, dict(files))

    def on_start(self, started: LoadStarted) -> None:
        self._put(self._state.start_load, started)

    def on_interval(self, interval: Interval) -> None:
        totals = self._totals
        totals.answered += interval.completed
        if interval.failed:
            totals.failed += interval.failed
            errors = {kind: count for kind, count in interval.errors.model_dump().items() if count}
            # Replaces the old dictionary: another thread may be reading it.
            totals.errors = dict(Counter(totals.errors) + Counter(errors))
        self._records.append((self._number, interval))

    def on_sample(self, sample: Sample) -> None:
        self._records.append((self._number, sample))

    def on_event(self, event: LoadEvent) -> None:
        self.on_step(f"at {event.t_s:.1f} s: {event.kind}: {event.detail}")

    def end_trial(self, ended: TrialEnded) -> None:
        self._put(self._state.end_trial, ended)

    def end(self, text: str) -> None:
        """Reports the end; no event may follow."""
        self._put(self._state.end, text)

    def snapshot(self) -> dict[str, Any]:
        self._read()
        return self._state.snapshot(self._totals, self._clock())

    def changes(self) -> dict[str, Any] | None:
        """Returns the changes since the last call; None if nothing changed and the last changes are younger than a
        second."""
        self._read()
        now_s = self._clock()
        if not self._has_changes and (self._state.phase == "ended" or now_s - self._published_s < 1.0):
            return None
        self._has_changes, self._published_s = False, now_s
        return self._state.changes(self._totals, now_s)

    def log(self, name: str) -> Path | None:
        """Returns a log file of the current trial by process name; None if there is none."""
        self._read()
        return self._state.logs.get(name)

    @property
    def is_measuring(self) -> bool:
        """Whether a trial runs, which nothing may disturb."""
        self._read()
        return self._state.phase in ("starting", "load")

    @property
    def number(self) -> int:
        """Number of the current or last trial; 0 before the first."""
        return self._number

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
                # Its trial started after this read of the facts; keep the record for the next read.
                self._records.appendleft((number, record))
                break
            if number == self._state.number:
                self._state.add_record(record)
                self._has_changes = True
