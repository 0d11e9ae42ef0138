"""What workers report, brought together: intervals as soon as every worker has passed them, and figures of all so far. Pure."""

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from weir.compat.locust.figures import Failure, Figures
from weir.compat.locust.tally import Key, Tally, add_all, together
from weir.model import histogram
from weir.model.records import ErrorCounts, Interval, IntervalQuantiles

WINDOW_S = 10.0
"""What Locust calls current."""
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}


@dataclass(slots=True)
class WorkerUse:
    """What a worker has used, and how far it has reported."""

    through: int = 0
    """Slots before this one are whole."""
    users: int = 0
    in_flight: int = 0
    unanswered: int = 0
    """Requests under which users were stopped."""
    oldest_ns: int = 0
    cpu_s: float = 0.0
    peak_rss_bytes: int = 0
    ended_ns: int | None = None
    """When its users were done, CLOCK_MONOTONIC."""
    is_lost: bool = False
    """Whether it died."""


@dataclass(slots=True)
class _Slot:
    begun: int = 0
    tallies: dict[Key, Tally] = field(default_factory=dict)


class Gathered:
    """The load of all workers so far.

    Args:
        workers: how many there are.
        interval_s: how long a slot is.
    """

    def __init__(self, workers: int, interval_s: float) -> None:
        self.workers = [WorkerUse() for _ in range(workers)]
        self._interval_s = interval_s
        self._slots: dict[int, _Slot] = {}
        self._closed = 0
        self._window: deque[tuple[int, dict[Key, Tally]]] = deque()
        self.tallies: dict[Key, Tally] = {}
        self._failures: dict[tuple[str, str, str], Failure] = {}
        self._exceptions: Counter[tuple[str, str]] = Counter()

    @property
    def users(self) -> int:
        """Users that there are now."""
        return sum(worker.users for worker in self.workers)

    def figures(self, seconds: float) -> Figures:
        """Everything so far."""
        return Figures(self.tallies, seconds, tuple(self._failures.values()), self._exceptions)

    def current(self) -> Figures:
        """The last ten seconds."""
        recent: dict[Key, Tally] = {key: Tally() for key in self.tallies}
        for _, tallies in self._window:
            add_all(recent, tallies)
        return Figures(recent, max(len(self._window) * self._interval_s, 1e-9))

    def take(self, worker: int, news: Mapping[str, Any]) -> Iterator[Interval]:
        """What a worker has to report. Gives the intervals that are whole now."""
        use = self.workers[worker]
        for name in ("through", "users", "in_flight", "unanswered", "oldest_ns", "cpu_s"):
            setattr(use, name, news[name])
        for index, rows in news["slots"].items():
            slot = self._slots.setdefault(max(index, self._closed), _Slot())
            add_all(slot.tallies, {(method, name): Tally.from_message(values) for method, name, values in rows})
        for index, begun in news["begun"].items():
            self._slots.setdefault(max(index, self._closed), _Slot()).begun += begun
        for method, name, error, count, first, last in news["failures"]:
            before = self._failures.get((method, name, error))
            if before is not None:
                count, first, last = count + before.count, min(first, before.first_unix_s), max(last, before.last_unix_s)
            self._failures[method, name, error] = Failure(method, name, error, int(count), first, last)
        for message, trace, count in news["exceptions"]:
            self._exceptions[message, trace] += count
        return self._whole()

    def lose(self, worker: int) -> Iterator[Interval]:
        """A worker has died: nobody waits for it any more."""
        use = self.workers[worker]
        use.is_lost = True
        use.unanswered += use.in_flight
        use.users = use.in_flight = 0
        return self._whole()

    def rest(self, end_s: float) -> Iterator[Interval]:
        """The intervals up to the end, whole or not."""
        while self._slots or self._closed * self._interval_s < end_s - 1e-9:
            yield self._close(end_s)

    def _whole(self) -> Iterator[Interval]:
        alive = [worker.through for worker in self.workers if not worker.is_lost]
        while alive and self._closed < min(alive):
            yield self._close(None)

    def _close(self, end_s: float | None) -> Interval:
        index = self._closed
        slot = self._slots.pop(index, _Slot())
        self._closed += 1
        add_all(self.tallies, slot.tallies)
        self._window.append((index, slot.tallies))
        while len(self._window) * self._interval_s > WINDOW_S + 1e-9:
            self._window.popleft()
        start_s = index * self._interval_s
        natural_s = start_s + self._interval_s
        return self._interval(index, start_s, natural_s if end_s is None or end_s <= start_s else min(end_s, natural_s), slot)

    def _interval(self, index: int, start_s: float, end_s: float, slot: _Slot) -> Interval:
        tally = together(slot.tallies.values())
        return Interval(
            index=index,
            start_s=start_s,
            end_s=end_s,
            due=slot.begun,
            sent=slot.begun,
            completed=tally.completed,
            ok=tally.ok,
            failed=tally.failed,
            errors=ErrorCounts(**tally.errors),
            in_flight=sum(worker.in_flight for worker in self.workers),
            oldest_age_us=max(worker.oldest_ns for worker in self.workers) / 1e3,
            bytes_sent=tally.sent_bytes,
            bytes_received=tally.received_bytes,
            response_time_us=_quantiles(tally),
            histogram=histogram.text_of_bytes(histogram.encoded(tally.response)),
        )


def _quantiles(tally: Tally) -> IntervalQuantiles:
    if not tally.completed:
        return IntervalQuantiles()
    values = {histogram.highest_at(index): count for index, count in sorted(tally.response.items())}
    found = histogram.at_ranks(values, _QUANTILES.values())
    mean_ns = sum(value * count for value, count in values.items()) / tally.completed
    return IntervalQuantiles(
        mean=mean_ns / 1e3,
        max=tally.most_answered_ns / 1e3,
        **{name: min(value, tally.most_answered_ns) / 1e3 for name, value in zip(_QUANTILES, found, strict=True)},
    )
