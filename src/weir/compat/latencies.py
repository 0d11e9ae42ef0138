"""The sorted times of a load, for the reports of other tools. Times from a histogram have three significant digits."""

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weir.model.load_records import LoadEnd

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TICKS = 5
"""Number of lines of the percentile spectrum for each halving of the distance to 100 %."""


@dataclass(frozen=True, slots=True)
class Times:
    """Sorted times in nanoseconds. Without times, every figure is 0."""

    values: tuple[int, ...]
    """The distinct times, in ascending order."""
    below: tuple[int, ...]
    """For each of `values`: the number of measured times that are at most this value."""

    @property
    def count(self) -> int:
        return self.below[-1] if self.below else 0

    @property
    def shortest(self) -> int:
        return self.values[0] if self.values else 0

    @property
    def longest(self) -> int:
        return self.values[-1] if self.values else 0

    @property
    def median(self) -> float:
        """The middle time, or the mean of the two middle times."""
        return (self.at((self.count - 1) // 2) + self.at(self.count // 2)) / 2

    @property
    def mean(self) -> float:
        return sum(value * count for value, count in self._counts()) / self.count if self.count else 0.0

    @property
    def deviation(self) -> float:
        """The sample's standard deviation (n − 1); 0 for a single time."""
        if self.count < 2:
            return 0.0
        mean = self.mean
        return math.sqrt(sum(count * (value - mean) ** 2 for value, count in self._counts()) / (self.count - 1))

    def at(self, rank: int) -> int:
        """Returns the time at a rank. Ranks start at 0. A rank beyond the last time gives the longest time."""
        return self.values[min(bisect_right(self.below, rank), len(self.values) - 1)] if self.values else 0

    def percentile(self, percent: float) -> int:
        """Returns the nearest-rank percentile: the shortest time that at most 100 − `percent` % of the times exceed."""
        return self.at(max(0, math.ceil(percent * self.count / 100) - 1))

    def count_up_to(self, limit: float) -> int:
        index = bisect_right(self.values, limit)
        return self.below[index - 1] if index else 0

    def _counts(self) -> list[tuple[int, int]]:
        steps = zip(self.below, (0, *self.below), strict=False)
        return [(value, now - before) for value, (now, before) in zip(self.values, steps, strict=True)]


def sort_counts(counts: Mapping[int, int]) -> Times:
    """Returns the sorted times. `counts` maps each time to its number of occurrences."""
    values = tuple(sorted(value for value, count in counts.items() if count))
    return Times(values, tuple(accumulate(counts[value] for value in values)))


def sort_array(values: "NDArray[Any]") -> Times:
    """Returns the sorted times in an array."""
    # Imported late: a front end starts its load before it imports the modules for its report.
    import numpy as np

    return sort_counts(dict(zip(*(column.tolist() for column in np.unique(values, return_counts=True)), strict=True)))


def read_times(end: LoadEnd, clock: str, *, zeros: int = 0) -> Times:
    """Returns the times of a clock (see `weir.model.records.CLOCKS`) from the histogram at the end of a load. The
    histogram has no times of 0. `zeros` is the number of times of 0."""
    from weir.model.hdr import Hdr

    histogram, quantiles = end.histograms.get(f"{clock}_ns"), getattr(end.summary, f"{clock}_us")
    counts = {} if histogram is None else Hdr.from_text(histogram).by_value()
    shortest, longest = round((quantiles.min or 0.0) * 1000), round((quantiles.max or 0.0) * 1000)
    exact: dict[int, int] = {0: zeros}
    first = next(iter(counts), None)
    for value, count in counts.items():
        # A bucket counts as its highest value. The shortest and the longest time are exact.
        value = shortest if value == first else min(value, longest)
        exact[value] = exact.get(value, 0) + count
    return sort_counts(exact)


def list_spectrum(times: Times) -> Iterator[tuple[int, float, int]]:
    """Yields the lines of the percentile spectrum: a time, a share, and how many times are at most this time.

    The time in a line is a percentile: at least this share of all times are shorter than this time, or equal. Shares
    approach 1: after every five lines, the distance from the share to 1 has halved.
    """
    percent = 0.0
    for value, seen in zip(times.values, times.below, strict=True):
        while percent <= 100 * seen / times.count:
            yield value, percent / 100, seen
            halvings = int(math.log2(100 / (100 - percent)))
            percent += 100 / (_TICKS * 2 ** (halvings + 1))
            if seen == times.count:
                break
    yield times.longest, 1.0, times.count


def read_answers(log: Path) -> "NDArray[Any]":
    """Returns the requests in a log that got a whole response with any status."""
    from weir.model.request_log import read_requests

    requests = read_requests(log)
    return requests[requests["status"] > 0]
