"""How far the monotonic clocks of two machines are apart."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clock:
    """Another machine's monotonic clock, as read from this one."""

    offset_ns: int
    """The other clock less this one."""
    error_ns: int
    """How far the offset may be off, at most: half of the round trip in which it was read."""

    def theirs(self, ours_ns: int) -> int:
        """A moment of this machine's clock by the other one's."""
        return ours_ns + self.offset_ns

    def ours(self, theirs_ns: int) -> int:
        """A moment of the other machine's clock by this one's."""
        return theirs_ns - self.offset_ns

    @property
    def round_trip_ns(self) -> int:
        """Of the quickest reading."""
        return 2 * self.error_ns


def clock_of(readings: Iterable[tuple[int, int, int]]) -> Clock:
    """What readings of a clock say: the quickest of them, in whose round trip the other machine looked at some moment (Cristian, 1989).

    Args:
        readings: this clock before, what the other said, this clock after, in nanoseconds; at least one.

    >>> clock_of([(100, 5_000, 900), (1_000, 6_050, 1_100)])
    Clock(offset_ns=5000, error_ns=50)
    """
    before, said, after = min(readings, key=lambda reading: reading[2] - reading[0])
    return Clock(offset_ns=said - (before + after) // 2, error_ns=(after - before + 1) // 2)
