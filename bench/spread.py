"""Figures of several rounds as one: the median and the range."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from statistics import median


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of some rounds, with the lowest and the highest value.

    With `n` rounds the range contains the true median with probability 1 - 2 / 2^n, for any distribution (sign test):
    96.9 % for 6 rounds, 98.4 % for 7.
    """

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Returns the spread of `values`. Raises an error if there are none."""
        return cls(median(values), min(values), max(values))

    def text(self, digits: int = 0) -> str:
        """Returns the printed form: `median (low to high)`."""
        return f"{self.median:,.{digits}f} ({self.low:,.{digits}f} to {self.high:,.{digits}f})"


def confidence(rounds: int) -> float:
    """Returns the probability that the range of `rounds` values contains their true median."""
    return float(1 - 2 / 2**rounds)


def median_within(values: Sequence[float]) -> tuple[float, float]:
    """Returns two of the values that enclose the true median with at least 95 % probability, for any distribution (sign
    test). With fewer than six values these are the lowest and the highest, with a smaller probability."""
    ordered = sorted(values)
    count = len(ordered)
    below, left_out = 0.0, -1
    while 2 * (below := below + comb(count, left_out + 1) / 2**count) <= 0.05:
        left_out += 1
    left_out = max(0, left_out)
    return ordered[left_out], ordered[-1 - left_out]
