"""What came of requests as Locust tells it: counts and milliseconds, the times of failed requests among them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from weir.compat.locust.tally import Key, Tally, together
from weir.model.histogram import at_ranks, highest_at

TOTAL = "Aggregated"
PERCENTILES = (0.50, 0.66, 0.75, 0.80, 0.90, 0.95, 0.98, 0.99, 0.999, 0.9999, 1.0)


@dataclass(frozen=True, slots=True)
class Entry:
    """Requests of one method and name, or all. What listeners of `quitting` read is named as Locust names it."""

    method: str
    name: str
    tally: Tally
    seconds: float
    """Over which its requests came."""

    @property
    def num_requests(self) -> int:
        """Failed ones too."""
        return self.tally.requests

    @property
    def num_failures(self) -> int:
        """Of them."""
        return self.tally.failed

    @property
    def fail_ratio(self) -> float:
        """The share of these."""
        return self.num_failures / self.num_requests if self.num_requests else 0.0

    @property
    def avg_response_time(self) -> float:
        """In milliseconds."""
        return self.tally.sum_ns / self.num_requests / 1e6 if self.num_requests else 0.0

    @property
    def min_response_time(self) -> float:
        """In milliseconds."""
        return self.tally.least_ns / 1e6 if self.num_requests else 0.0

    @property
    def max_response_time(self) -> float:
        """In milliseconds."""
        return self.tally.most_ns / 1e6

    @property
    def median_response_time(self) -> float:
        """In milliseconds."""
        return self.get_response_time_percentile(0.5)

    @property
    def avg_content_length(self) -> float:
        """Bytes of a body."""
        return self.tally.received_bytes / self.num_requests if self.num_requests else 0.0

    @property
    def total_rps(self) -> float:
        """Requests a second."""
        return self.num_requests / self.seconds if self.seconds else 0.0

    @property
    def total_fail_per_sec(self) -> float:
        """Failed ones."""
        return self.num_failures / self.seconds if self.seconds else 0.0

    def get_response_time_percentile(self, percent: float) -> float:
        """Milliseconds within which a share from 0 to 1 of the requests were done; 0 where there were none."""
        return self.percentiles_ms((percent,))[0]

    def percentiles_ms(self, shares: Iterable[float]) -> list[float]:
        """As `get_response_time_percentile`, of several shares, rising."""
        times = {highest_at(index): count for index, count in sorted(self.tally.times.items())}
        return [min(value, self.tally.most_ns) / 1e6 for value in at_ranks(times, shares)] if times else [0.0 for _ in shares]


@dataclass(frozen=True, slots=True)
class Failure:
    """Failures of one method and name that are told alike."""

    method: str
    name: str
    error: str
    count: int
    first_unix_s: float
    last_unix_s: float


@dataclass(slots=True)
class Figures:
    """All entries, by method and name, and all together. Also `environment.stats` of a listener of `quitting`."""

    tallies: Mapping[Key, Tally]
    seconds: float
    failures: tuple[Failure, ...] = ()
    exceptions: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """How often something was raised, by its message and its traceback."""

    @property
    def entries(self) -> dict[Key, Entry]:
        """By name and method, as Locust has them."""
        return {
            (name, method): Entry(method, name, tally, self.seconds) for (method, name), tally in sorted(self.tallies.items(), key=_by_name)
        }

    @property
    def total(self) -> Entry:
        """All of them."""
        return Entry("", TOTAL, together(self.tallies.values()), self.seconds)

    @property
    def num_requests(self) -> int:
        """All, failed ones too."""
        return self.total.num_requests

    @property
    def num_failures(self) -> int:
        """Of them."""
        return self.total.num_failures

    def get(self, name: str, method: str) -> Entry:
        """Those of one name and method."""
        return Entry(method, name, self.tallies.get((method, name), Tally()), self.seconds)

    def to_message(self) -> tuple[Any, ...]:
        """For the channel, without failures and exceptions."""
        return [(key, tally.to_message()) for key, tally in self.tallies.items()], self.seconds

    @classmethod
    def from_message(cls, tallies: Iterable[Any], seconds: float) -> "Figures":
        """The inverse of `to_message`."""
        return cls({key: Tally.from_message(values) for key, values in tallies}, seconds)


def _by_name(item: tuple[Key, Tally]) -> tuple[str, str]:
    (method, name), _ = item
    return name, method
