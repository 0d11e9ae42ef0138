"""Figures of several rounds as one: the median, and how far the rounds lie apart."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of some rounds with the lowest and the highest.

    Of `n` rounds, the range from lowest to highest holds the true median with probability 1 - 2 / 2^n, whatever the distribution (the
    sign test): 96.9 % for 6 rounds, 98.4 % for 7.
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
