"""Figures of several rounds as one: the median, and how far the rounds lie apart."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from statistics import median


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of some rounds with the lowest and the highest.

    Of `n` rounds, the range from lowest to highest holds the true median with probability 1 - 2 / 2^n, whatever the
    distribution (the sign test): 96.9 % for 6 rounds, 98.4 % for 7.
    """

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """The spread of `values`, of which there must be one at least."""
        return cls(median(values), min(values), max(values))

    def text(self, digits: int = 0) -> str:
        """As it is printed: `median (low to high)`."""
        return f"{self.median:,.{digits}f} ({self.low:,.{digits}f} to {self.high:,.{digits}f})"


def confidence(rounds: int) -> float:
    """The probability that the range of `rounds` values holds their true median."""
    return float(1 - 2 / 2**rounds)


def median_within(values: Sequence[float]) -> tuple[float, float]:
    """The two of these values between which their true median lies with a probability of 95 % at least, whatever the
    distribution (the sign test): with fewer than six rounds the lowest and the highest, and less than that.
    """
    ordered = sorted(values)
    count = len(ordered)
    below, left_out = 0.0, -1
    while 2 * (below := below + comb(count, left_out + 1) / 2**count) <= 0.05:
        left_out += 1
    left_out = max(0, left_out)
    return ordered[left_out], ordered[-1 - left_out]
