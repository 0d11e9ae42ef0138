"""Formats the lines that JMeter prints during and after a plan: `summary +` for new samples, `summary =` for all."""

from dataclasses import dataclass

from weir.model.hdr import Hdr
from weir.model.load_records import Interval

_EVERY_S = 30
"""Seconds between two lines: at hh:mm:00 and hh:mm:30, as with JMeter's default `summariser.interval`."""


@dataclass(slots=True)
class _Figures:
    """The counts and response times of a set of requests."""

    count: int = 0
    failed: int = 0
    answered: int = 0
    """Number of requests with a whole response. Other requests have no response time."""
    sum_us: float = 0.0
    min_us: float = float("inf")
    max_us: float = 0.0

    def add(self, interval: Interval) -> None:
        self.count += interval.ok + interval.failed
        self.failed += interval.failed
        if interval.completed and interval.response_time_us.mean is not None:
            self.answered += interval.completed
            self.sum_us += interval.response_time_us.mean * interval.completed
            self.max_us = max(self.max_us, interval.response_time_us.max or 0.0)
            self.min_us = min(self.min_us, Hdr.from_text(interval.histogram).min / 1000)

    def format_line(self, kind: str, length_s: float) -> str:
        """Returns a line in JMeter's format; `kind` is + or =."""
        mean_us, min_us = (self.sum_us / self.answered, self.min_us) if self.answered else (0.0, 0.0)
        seconds = int(length_s + 0.5)
        length = f"{seconds // 3600:02d}:{seconds % 3600 // 60:02d}:{seconds % 60:02d}"
        rate = f"{self.count / length_s:6.1f}" if length_s > 0 else "******"
        times = f"Avg: {mean_us / 1000:5.0f} Min: {min_us / 1000:5.0f} Max: {self.max_us / 1000:5.0f}"
        share = self.failed / self.count if self.count else 0.0
        return f"summary {kind} {self.count:6d} in {length} = {rate}/s {times} Err: {self.failed:5d} ({share:.2%})"


class Summariser:
    """Adds up the intervals of all thread groups. `began_unix_s`: the Unix time of the first request, in seconds."""

    def __init__(self, began_unix_s: float) -> None:
        self._began_unix_s = self._since_unix_s = began_unix_s
        self._all, self._new = _Figures(), _Figures()

    def add(self, interval: Interval, ended_unix_s: float) -> list[str]:
        """Adds an interval that ended at `ended_unix_s`. Returns the lines that are due at this time."""
        self._all.add(interval)
        self._new.add(interval)
        is_due = ended_unix_s // _EVERY_S > self._since_unix_s // _EVERY_S
        return self._format_lines(ended_unix_s, is_end=False) if is_due and self._new.count else []

    def end(self, ended_unix_s: float) -> list[str]:
        return self._format_lines(ended_unix_s, is_end=True)

    def _format_lines(self, now_unix_s: float, *, is_end: bool) -> list[str]:
        new = self._new.format_line("+", now_unix_s - self._since_unix_s)
        total = self._all.format_line("=", now_unix_s - self._began_unix_s)
        is_first, has_new = self._new.count == self._all.count, self._new.count > 0
        self._new, self._since_unix_s = _Figures(), now_unix_s
        if is_end:
            return [new, total] if has_new and not is_first else [total]
        return [new] if is_first else [new, total]
