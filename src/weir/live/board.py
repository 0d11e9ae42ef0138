"""Where those who measure put what they know, and the page's thread finds it.

Putting never blocks and computes nothing: a record is appended to a queue that forgets its oldest when it is full, and a few whole numbers
are added up. Facts, of which there are a few for each trial, are not forgotten. Whoever reads makes of both what viewers see; while there
is no viewer nobody reads, and a viewer who comes then sees the last `MOST_RECORDS` records of the load that goes on.
"""

import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from weir.live.control import Controls
from weir.live.facts import About, Ended, Fact, LoadBegun, Logs, Step, Totals, TrialBegun, TrialEnded
from weir.live.state import State
from weir.model.records import Interval, LoadEvent, LoadStarted, Sample

MOST_RECORDS = 1200
"""A minute of intervals and of samples, ten a second each."""
_MOST_FACTS = 20_000
"""More than any run has; a bound all the same."""


class Board:
    """What is known of what goes on.

    The methods up to `end` are for those who measure, from any of their threads; the others are for the page's one thread.

    Args:
        about: what the page is about.
        controls: what viewers may ask for; None: nothing.
        clock: seconds.
    """

    def __init__(self, about: About, controls: Controls | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.controls = controls or Controls()
        self._clock = clock
        self._facts: deque[tuple[float, Fact]] = deque(maxlen=_MOST_FACTS)
        self._records: deque[tuple[int, Interval | Sample]] = deque(maxlen=MOST_RECORDS)
        self._number = 0
        self._totals = Totals()
        self._state = State(about, self.controls.names, clock())
        self._is_news = False
        self._told_s = clock()

    def step(self, text: str) -> None:
        """Something goes on that is no trial, or happened in one."""
        self._put(Step(text))

    def begin_trial(self, trial: TrialBegun) -> None:
        """A trial, or a load, begins; its number is higher than that of the one before."""
        self._totals = Totals()
        self._put(trial)
        # After the fact: a record that carries this number comes later than it.
        self._number = trial.number

    def show_logs(self, files: Mapping[str, Path]) -> None:
        """The log files of the trial, by the name of the process."""
        self._put(Logs(dict(files)))

    def begin_load(self, started: LoadStarted) -> None:
        """The clock of the trial's load has started."""
        self._put(LoadBegun(started))

    def take_interval(self, interval: Interval) -> None:
        """What the generator saw."""
        totals = self._totals
        totals.answered += interval.completed
        if interval.failed:
            totals.failed += interval.failed
            errors = {kind: totals.errors.get(kind, 0) + count for kind, count in interval.errors.model_dump().items() if count}
            # In place of the old one, which somebody may be reading.
            totals.errors = {**totals.errors, **errors}
        self._records.append((self._number, interval))

    def take_sample(self, sample: Sample) -> None:
        """A reading of the server's processes."""
        self._records.append((self._number, sample))

    def take_event(self, event: LoadEvent) -> None:
        """Something that happened during the load."""
        self._put(Step(f"at {event.t_s:.1f} s: {event.kind}: {event.detail}"))

    def end_trial(self, ended: TrialEnded) -> None:
        """What the trial came to."""
        self._put(ended)

    def end(self, text: str) -> None:
        """It is over, and nothing comes any more."""
        self._put(Ended(text))

    def whole(self) -> dict[str, Any]:
        """Everything that is known, for a viewer who comes."""
        self._read()
        return self._state.whole(self._totals, self._clock())

    def news(self) -> dict[str, Any] | None:
        """What has changed since this was last asked; None where nothing has and the last news are younger than a second."""
        self._read()
        now_s = self._clock()
        if not self._is_news and (self._state.phase == "ended" or now_s - self._told_s < 1.0):
            return None
        self._is_news, self._told_s = False, now_s
        return self._state.news(self._totals, now_s)

    def log(self, name: str) -> Path | None:
        """A log file of the trial that goes on, by the name of its process; None where there is no such one."""
        self._read()
        return self._state.logs.files.get(name)

    @property
    def is_measuring(self) -> bool:
        """Whether a trial goes on, and with it a load that nothing should disturb."""
        self._read()
        return self._state.phase in ("starting", "load")

    @property
    def number(self) -> int:
        """Of the trial that goes on, or of the last one; 0 before the first."""
        return self._number

    def _put(self, fact: Fact) -> None:
        self._facts.append((self._clock(), fact))

    def _read(self) -> None:
        """Takes over what was put here since."""
        while self._facts:
            at_s, fact = self._facts.popleft()
            self._state.learn(fact, at_s)
            self._is_news = True
        while self._records:
            try:
                number, record = self._records.popleft()
            except IndexError:
                break
            if number > self._state.number:
                # Its trial began after the facts were read: it waits for the next time.
                self._records.appendleft((number, record))
                break
            if number == self._state.number:
                self._state.take(record)
                self._is_news = True
