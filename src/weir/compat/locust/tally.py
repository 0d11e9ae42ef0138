"""Requests of one method and name, counted: what workers send for each slice of time and what their parent adds up.

Times are in nanoseconds and counted in the buckets of `weir.model.histogram`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from weir.model.histogram import HIGHEST_NS, index_of

Key = tuple[str, str]
"""Method and name."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One request, ended."""

    service_ns: int
    """From the moment the user's code asked for it to its last byte, or to its failure."""
    lag_ns: int = 0
    """How much later that was than the user wanted: for so long the user's greenlet waited for the worker."""
    error: str | None = None
    """What went wrong, a key of `ErrorCounts`; None: nothing."""
    status: int = 0
    """Of the answer; 0 where there is none."""
    sent_bytes: int = 0
    """Of its body."""
    received_bytes: int = 0
    """Of the answer's body."""

    @property
    def response_ns(self) -> int:
        """From the moment the user wanted it."""
        return self.lag_ns + self.service_ns

    @property
    def is_answered(self) -> bool:
        """Whether a whole answer came, right or wrong."""
        return self.error in (None, "check")


@dataclass(slots=True)
class Tally:
    """Requests, counted."""

    ok: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    statuses: dict[int, int] = field(default_factory=dict)
    response: dict[int, int] = field(default_factory=dict)
    """Response times of those that got a whole answer, by bucket; `service` and `lag` likewise."""
    service: dict[int, int] = field(default_factory=dict)
    lag: dict[int, int] = field(default_factory=dict)
    broken: dict[int, int] = field(default_factory=dict)
    """How long those took that got none. Locust puts them among the response times; weir's clocks do not."""
    sum_ns: int = 0
    """Of the times of all of them, as `least_ns` and `most_ns`."""
    least_ns: int = HIGHEST_NS
    most_ns: int = 0
    most_answered_ns: int = 0
    """The longest response time of those with a whole answer."""
    sent_bytes: int = 0
    received_bytes: int = 0

    @property
    def failed(self) -> int:
        """That got no right answer."""
        return sum(self.errors.values())

    @property
    def requests(self) -> int:
        """All of them."""
        return self.ok + self.failed

    @property
    def completed(self) -> int:
        """That got a whole answer."""
        return self.ok + self.errors.get("check", 0)

    @property
    def times(self) -> Mapping[int, int]:
        """The times of all of them, as Locust counts."""
        return Counter(self.response) + Counter(self.broken) if self.broken else self.response

    def record(self, measured: Measured) -> None:
        """Counts one more."""
        took_ns = min(measured.response_ns, HIGHEST_NS)
        if measured.error is None:
            self.ok += 1
        else:
            _count(self.errors, measured.error)
        if measured.is_answered:
            if measured.status:
                _count(self.statuses, measured.status)
            _count(self.response, index_of(took_ns))
            _count(self.service, index_of(min(measured.service_ns, HIGHEST_NS)))
            _count(self.lag, index_of(min(measured.lag_ns, HIGHEST_NS)))
            self.most_answered_ns = max(self.most_answered_ns, took_ns)
        else:
            _count(self.broken, index_of(took_ns))
        self.sum_ns += took_ns
        self.least_ns = min(self.least_ns, took_ns)
        self.most_ns = max(self.most_ns, took_ns)
        self.sent_bytes += measured.sent_bytes
        self.received_bytes += measured.received_bytes

    def add(self, other: "Tally") -> None:
        """Counts those of another as well."""
        self.ok += other.ok
        for name in ("errors", "statuses", "response", "service", "lag", "broken"):
            mine = getattr(self, name)
            for key, count in getattr(other, name).items():
                mine[key] = mine.get(key, 0) + count
        self.sum_ns += other.sum_ns
        self.least_ns = min(self.least_ns, other.least_ns)
        self.most_ns = max(self.most_ns, other.most_ns)
        self.most_answered_ns = max(self.most_answered_ns, other.most_answered_ns)
        self.sent_bytes += other.sent_bytes
        self.received_bytes += other.received_bytes

    def to_message(self) -> tuple[Any, ...]:
        """For the channel."""
        return tuple(getattr(self, name) for name in _NAMES)

    @classmethod
    def from_message(cls, values: Iterable[Any]) -> Self:
        """The inverse of `to_message`."""
        return cls(*values)


_NAMES = tuple(one.name for one in fields(Tally))


def together(tallies: Iterable[Tally]) -> Tally:
    """All of them as one."""
    found = Tally()
    for one in tallies:
        found.add(one)
    return found


def add_all(to: dict[Key, Tally], tallies: Mapping[Key, Tally]) -> None:
    """Counts tallies by method and name."""
    for key, tally in tallies.items():
        if key not in to:
            to[key] = Tally()
        to[key].add(tally)


def _count(counts: dict[Any, int], key: Any) -> None:
    counts[key] = counts.get(key, 0) + 1
