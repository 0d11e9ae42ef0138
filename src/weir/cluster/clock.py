"""Estimates the offset between the monotonic clocks of two machines."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clock:
    """Another machine's monotonic clock, relative to this machine's clock."""

    offset_ns: int
    """Time of the other clock minus time of this clock."""
    error_ns: int
    """Largest possible error of the offset: half of the round-trip time of the fastest reading."""

    def theirs(self, ours_ns: int) -> int:
        """Converts a time of this clock to a time of the other clock."""
        return ours_ns + self.offset_ns

    def ours(self, theirs_ns: int) -> int:
        """Converts a time of the other clock to a time of this clock."""
        return theirs_ns - self.offset_ns

    @property
    def round_trip_ns(self) -> int:
        return 2 * self.error_ns


def estimate_clock(readings: Iterable[tuple[int, int, int]]) -> Clock:
    """Estimates another clock's offset from the fastest of several readings (Cristian, 1989). A reading has three
    times in nanoseconds: this clock before, the other clock, this clock after.

    >>> estimate_clock([(100, 5_000, 900), (1_000, 6_050, 1_100)])
    Clock(offset_ns=5000, error_ns=50)
    """
    before, theirs, after = min(readings, key=lambda reading: reading[2] - reading[0])
    return Clock(offset_ns=theirs - (before + after) // 2, error_ns=(after - before + 1) // 2)
