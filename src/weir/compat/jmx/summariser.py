"""The lines that JMeter prints while a plan runs and at its end: `summary + …` of what is new, `summary = …` of all."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from weir.model.histogram import bytes_of_text, counts_in, highest_at
from weir.model.records import Interval

EVERY_S = 30
"""Of the time of day, as JMeter's `summariser.interval`."""


@dataclass(slots=True)
class Figures:
    """What came of some requests."""

    count: int = 0
    failed: int = 0
    answered: int = 0
    """That got a whole answer: of the others there is no time."""
    sum_us: float = 0.0
    min_us: float = float("inf")
    max_us: float = 0.0

    def take(self, interval: Interval) -> None:
        """Adds what ended in an interval."""
        self.count += interval.ok + interval.failed
        self.failed += interval.failed
        if interval.completed and interval.response_time_us.mean is not None:
            self.answered += interval.completed
            self.sum_us += interval.response_time_us.mean * interval.completed
            self.max_us = max(self.max_us, interval.response_time_us.max or 0.0)
            self.min_us = min(self.min_us, highest_at(min(counts_in(bytes_of_text(interval.histogram)))) / 1000)

    def line(self, kind: str, length_s: float) -> str:
        """As JMeter prints it; `kind` is + or =."""
        mean_us, min_us = (self.sum_us / self.answered, self.min_us) if self.answered else (0.0, 0.0)
        rate = f"{self.count / length_s:6.1f}" if length_s > 0 else "******"
        share = self.failed / self.count if self.count else 0.0
        return (
            f"summary {kind} {self.count:6d} in {duration_text(length_s)} = {rate}/s"
            f" Avg: {mean_us / 1000:5.0f} Min: {min_us / 1000:5.0f} Max: {self.max_us / 1000:5.0f} Err: {self.failed:5d} ({share:.2%})"
        )


class Threads(NamedTuple):
    """How many threads have begun so far, and how many of them are still there."""

    started: int
    active: int

    @property
    def finished(self) -> int:
        """How many have ended."""
        return self.started - self.active


class Summariser:
    """Adds intervals up, of one thread group or of several at once.

    Args:
        began_unix_s: when the first thread began.
    """

    def __init__(self, began_unix_s: float) -> None:
        self._began_unix_s = self._since_unix_s = began_unix_s
        self._all, self._new = Figures(), Figures()

    def take(self, interval: Interval, ended_unix_s: float, threads: Threads | None) -> list[str]:
        """Adds an interval, and gives the lines that are due at its end.

        Args:
            interval: what ended in it.
            ended_unix_s: its end, in seconds since 1970.
            threads: how many there are then, where that is known.
        """
        self._all.take(interval)
        self._new.take(interval)
        if ended_unix_s // EVERY_S == self._since_unix_s // EVERY_S or not self._new.count:
            return []
        return self._lines(ended_unix_s, threads, is_end=False)

    def end(self, ended_unix_s: float, threads: Threads | None) -> list[str]:
        """The last lines; arguments as of `take`."""
        return self._lines(ended_unix_s, threads, is_end=True)

    def _lines(self, now_unix_s: float, threads: Threads | None, *, is_end: bool) -> list[str]:
        is_first = self._new.count == self._all.count
        counts = "" if threads is None else f" Active: {threads.active} Started: {threads.started} Finished: {threads.finished}"
        lines = [] if is_end and (is_first or not self._new.count) else [self._new.line("+", now_unix_s - self._since_unix_s) + counts]
        lines += [self._all.line("=", now_unix_s - self._began_unix_s)] if is_end or not is_first else []
        self._new, self._since_unix_s = Figures(), now_unix_s
        return lines


def duration_text(length_s: float) -> str:
    """Whole seconds, rounded, as HH:MM:SS."""
    seconds = int(length_s + 0.5)
    return f"{seconds // 3600:02d}:{seconds % 3600 // 60:02d}:{seconds % 60:02d}"


def moment_text(unix_s: float) -> str:
    """A moment as JMeter prints it: 2026 Nov 22 08:24:36 UTC (1795335876655)."""
    local = datetime.fromtimestamp(unix_s, UTC).astimezone()
    return f"{local:%Y %b} {local.day} {local:%H:%M:%S %Z} ({int(unix_s * 1000)})"
