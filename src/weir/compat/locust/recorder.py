"""What the users of one worker measure, kept by slice of time until it is sent."""

import time
from collections.abc import Callable
from typing import Any

from weir.compat.locust.figures import Figures
from weir.compat.locust.tally import Key, Measured, Tally, add_all, together

MOST_TEXTS = 500
"""Different messages of failures or exceptions that are kept apart; those beyond are counted together."""
OTHERS = "(others)"


class Recorder:
    """Counts requests by the slice of time in which they ended.

    Args:
        clock_ns: CLOCK_MONOTONIC.
    """

    def __init__(self, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._clock_ns = clock_ns
        self._start_ns = 0
        self._interval_ns = 1
        self._slots: dict[int, dict[Key, Tally]] = {}
        self._begun: dict[int, int] = {}
        self._in_flight: dict[int, int] = {}
        self._number = self._unanswered = 0
        self._failures: dict[tuple[str, str, str], list[float]] = {}
        self._exceptions: dict[tuple[str, str], int] = {}
        self._totals: dict[Key, Tally] = {}
        self.last_ns = 0
        """When the last request ended."""

    def start(self, start_ns: int, interval_ns: int) -> None:
        """The load's clock starts then."""
        self._start_ns, self._interval_ns = start_ns, interval_ns

    def begin(self, at_ns: int) -> int:
        """A request is asked for now. Gives what `end` wants."""
        self._number += 1
        self._in_flight[self._number] = at_ns
        slot = self._slot(at_ns)
        self._begun[slot] = self._begun.get(slot, 0) + 1
        return self._number

    def end(self, number: int, *, is_answered: bool) -> None:
        """It has ended, or its user was stopped under it."""
        del self._in_flight[number]
        self._unanswered += not is_answered

    def record(self, method: str, name: str, measured: Measured, error: str = "", at_ns: int | None = None) -> None:
        """What came of a request.

        Args:
            method: of the request, or what a client of the file's own calls it.
            name: under which it is counted.
            measured: the request.
            error: of a failed one, what is told of it.
            at_ns: when it ended; None: now.
        """
        self.last_ns = self._clock_ns() if at_ns is None else at_ns
        slot = self._slot(self.last_ns)
        tallies = self._slots.setdefault(slot, {})
        tally = tallies.get((method, name))
        if tally is None:
            tally = tallies[method, name] = Tally()
        tally.record(measured)
        if measured.error is not None:
            now = time.time()
            seen = _entry(self._failures, (method, name, error), (method, name, OTHERS), lambda: [0, now, now])
            seen[0] += 1
            seen[2] = now

    def record_exception(self, message: str, trace: str) -> None:
        """Something that the file raised and did not catch."""
        key = (message, trace)
        if key not in self._exceptions and len(self._exceptions) >= MOST_TEXTS:
            key = (OTHERS, "")
        self._exceptions[key] = self._exceptions.get(key, 0) + 1

    def figures(self) -> Figures:
        """Everything that this worker has measured so far."""
        found: dict[Key, Tally] = {key: together([tally]) for key, tally in self._totals.items()}
        for tallies in self._slots.values():
            add_all(found, tallies)
        return Figures(found, max(0, self._clock_ns() - self._start_ns) / 1e9)

    def flushed(self) -> dict[str, Any]:
        """What was kept, of which nothing is kept any more: a message's content."""
        now_ns = self._clock_ns()
        through = self._slot(now_ns)
        news = {
            "through": through,
            "slots": {slot: [(*key, tally.to_message()) for key, tally in tallies.items()] for slot, tallies in self._slots.items()},
            "begun": self._begun,
            "in_flight": len(self._in_flight),
            "unanswered": self._unanswered,
            "oldest_ns": now_ns - min(self._in_flight.values()) if self._in_flight else 0,
            "failures": [(*key, *seen) for key, seen in self._failures.items()],
            "exceptions": [(*key, count) for key, count in self._exceptions.items()],
        }
        for tallies in self._slots.values():
            add_all(self._totals, tallies)
        self._slots, self._begun, self._failures, self._exceptions = {}, {}, {}, {}
        return news

    def _slot(self, at_ns: int) -> int:
        return max(0, at_ns - self._start_ns) // self._interval_ns


def _entry(seen: dict[Any, list[float]], key: Any, others: Any, new: Callable[[], list[float]]) -> list[float]:
    chosen = key if key in seen or len(seen) < MOST_TEXTS else others
    return seen.setdefault(chosen, new())
