"""Reads the CPU time and the memory of a running process and its descendants."""

import os
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


class ProcessUse:
    """The CPU time and the highest memory of a process and its descendants."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._readings: list[tuple[int, float]] = []
        """Pairs: a time of CLOCK_MONOTONIC in nanoseconds, and the CPU time until then in seconds."""
        self.peak_rss_bytes = 0

    def read(self, now_ns: int) -> None:
        """Adds a reading. After the process has ended, the last reading stays."""
        ticks = pages = 0
        for pid in _list_family(self._pid):
            with suppress(OSError, IndexError):
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                ticks += sum(map(int, fields[11:15]))
                pages += int(fields[21])
        if pages:
            self._readings.append((now_ns, ticks / _TICKS))
            self.peak_rss_bytes = max(self.peak_rss_bytes, pages * os.sysconf("SC_PAGE_SIZE"))

    def cpu_s(self, start_ns: int, end_ns: int) -> float:
        """Returns the CPU time between two moments. Between two readings, the CPU time rises linearly."""
        return max(0.0, self._cpu_until(end_ns) - self._cpu_until(start_ns))

    def _cpu_until(self, at_ns: int) -> float:
        after = bisect_right(self._readings, (at_ns, float("inf")))
        if after in (0, len(self._readings)):
            return self._readings[after - 1][1] if after else 0.0
        (before_ns, before_s), (after_ns, after_s) = self._readings[after - 1 : after + 1]
        return before_s + (after_s - before_s) * (at_ns - before_ns) / (after_ns - before_ns)


def _list_family(pid: int) -> Iterator[int]:
    yield pid
    with suppress(OSError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            yield from _list_family(int(child))
