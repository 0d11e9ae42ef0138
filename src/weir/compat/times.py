"""The times of a load in their order: ranks, counts, deviations. Histograms hold them to three digits, the shortest and longest exactly."""

import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weir.model.records import Quantiles


@dataclass(frozen=True, slots=True)
class Times:
    """So many times, in nanoseconds."""

    values: tuple[int, ...]
    """Those that occur, in rising order."""
    below: tuple[int, ...]
    """How many times are at most each of them."""

    @staticmethod
    def of(counts: Mapping[int, int]) -> "Times":
        """The times with how often each one is there."""
        values = tuple(sorted(value for value, count in counts.items() if count))
        return Times(values, tuple(accumulate(counts[value] for value in values)))

    @staticmethod
    def of_each(values: "NDArray[Any]") -> "Times":
        """The times in an array."""
        # Here and below, and not above: a front end starts its load before it imports what its report needs.
        import numpy as np

        return Times.of(dict(zip(*(column.tolist() for column in np.unique(values, return_counts=True)), strict=True)))

    @staticmethod
    def recorded(histogram: str | None, quantiles: "Quantiles", *, zeros: int = 0) -> "Times":
        """The times of a histogram (base64 of HdrHistogram V2), and so many zeros.

        Args:
            histogram: of the load; None where it has none.
            quantiles: of the same times: their ends are exact, those of a bucket are not.
            zeros: times that are 0 and in no histogram.
        """
        from weir.model.histogram import bytes_of_text, recorded_in

        counts = {} if histogram is None else recorded_in(bytes_of_text(histogram))
        shortest, longest = round((quantiles.min or 0.0) * 1000), round((quantiles.max or 0.0) * 1000)
        exact: dict[int, int] = {0: zeros}
        first = next(iter(counts), None)
        for value, count in counts.items():
            # A bucket stands for its highest value: only of the first and the last is more known.
            value = shortest if value == first else min(value, longest)
            exact[value] = exact.get(value, 0) + count
        return Times.of(exact)

    @property
    def count(self) -> int:
        """How many there are."""
        return self.below[-1] if self.below else 0

    @property
    def shortest(self) -> int:
        """The first; 0 where there is none."""
        return self.values[0] if self.values else 0

    @property
    def longest(self) -> int:
        """The last; 0 where there is none."""
        return self.values[-1] if self.values else 0

    def at(self, rank: int) -> int:
        """The time at a rank, which counts from 0; the last one for any rank beyond it, and 0 where there is none."""
        return self.values[min(bisect_right(self.below, rank), len(self.values) - 1)] if self.values else 0

    def up_to(self, limit: float) -> int:
        """How many are at most `limit`."""
        index = bisect_right(self.values, limit)
        return self.below[index - 1] if index else 0

    def percentile(self, percent: float) -> int:
        """The least time that `percent` % of all take at most: nearest rank."""
        return self.at(max(0, math.ceil(percent * self.count / 100) - 1))

    @property
    def median(self) -> float:
        """The middle one, or the mean of the two in the middle; 0 where there is none."""
        return (self.at((self.count - 1) // 2) + self.at(self.count // 2)) / 2

    @property
    def mean(self) -> float:
        """The arithmetic mean; 0 where there is none."""
        return sum(value * often for value, often in self._each()) / self.count if self.count else 0.0

    @property
    def deviation(self) -> float:
        """The sample's standard deviation (n − 1); 0 of a single one."""
        if self.count < 2:
            return 0.0
        mean = self.mean
        return math.sqrt(sum(often * (value - mean) ** 2 for value, often in self._each()) / (self.count - 1))

    def _each(self) -> list[tuple[int, int]]:
        return [(value, count - before) for value, count, before in zip(self.values, self.below, (0, *self.below), strict=False)]


def answers_in(log: Path) -> "NDArray[Any]":
    """The requests in a log that got a whole answer, of whatever status."""
    from weir.model.request_log import read_requests

    requests = read_requests(log)
    return requests[requests["status"] > 0]
