"""Shows the progress of a load at a terminal: a few lines, which weir redraws in place and removes at the end.

`LiveFigures` computes the lines, and `LiveView` draws the lines. Both run on the engine's reader thread, at nice 19.
Both save CPU for the load: at most four redraws a second, one write for each redraw, no layout library such as rich.
"""

import contextlib
import os
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Self

from weir.cli.load_summary import microseconds
from weir.model.hdr import Hdr
from weir.model.load import ClosedLoad, LoadPlan, OpenLoad, value_at
from weir.model.load_observer import LoadObserver
from weir.model.load_records import BUSY_FRACTION, LIVE_PERCENTILES, Interval, LoadStarted

_REFRESH_S = 0.25
_MINUTE = 60
_BLOCKS = "▁▂▃▄▅▆▇█"
_ASCII_BLOCKS = "_.:-=+*#"
_STYLES = {"bold": "1", "dim": "2", "alarm": "31", "doubt": "33"}

Line = list[tuple[str, str]]
"""A line as a list of pieces. Each piece is a text and a style: a key of `_STYLES`, or empty."""


class LiveFigures:
    """The figures of a running load, computed from its intervals. `generator_cpu_s` returns the generator's CPU time so
    far, or None if unknown. `clock` returns the current time."""

    def __init__(
        self,
        plan: LoadPlan,
        generator_cpu_s: Callable[[], float | None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._plan, self._generator_cpu_s, self._clock = plan, generator_cpu_s, clock
        self._window: deque[tuple[Interval, Hdr]] = deque()
        self._last_second = Hdr()
        self._minute: deque[tuple[float, float | None]] = deque(maxlen=_MINUTE)
        """For each second: requests per second, and p99 in µs. p99 is None for a second without responses."""
        self._errors: Counter[str] = Counter()
        self._answered = self._failed = 0
        self._cpu: tuple[float, float] | None = None
        self._busy: float | None = None
        self.spins = False
        """Whether the generator spins while it waits. If so, the CPU time does not show how busy the generator is."""

    def take(self, interval: Interval) -> None:
        """Adds an interval. Keeps only intervals within the last second before the end of `interval`."""
        times = Hdr.from_text(interval.histogram).coarsen()
        before = self._window[-1][0].end_s if self._window else 0.0
        self._window.append((interval, times))
        self._last_second.merge(times)
        while interval.end_s - self._window[0][0].start_s > 1.0 + 1e-6 and len(self._window) > 1:
            self._last_second.remove(self._window.popleft()[1])
        self._answered += interval.completed
        self._failed += interval.failed
        if interval.failed:
            self._errors += Counter(interval.errors.occurred)
        if int(interval.end_s + 1e-6) > int(before + 1e-6):
            (p99,) = self._quantiles_us((0.99,))
            self._minute.append((self._rate_rps(), p99))
            self._measure_generator()

    def lines(self, width: int, *, unicode: bool = True) -> list[Line]:
        """Returns the lines for a terminal of `width` columns. The caller must crop lines that are too long."""
        if not self._window:
            return [self._title(), [("  connecting", "dim")]]
        last = self._window[-1][0]
        progress = self._progress(last, width, unicode=unicode)
        lines = [self._title(), progress, self._rate(last), self._times(width), self._waiting(last)]
        if kinds := ", ".join(f"{kind} {count:,}" for kind, count in self._errors.most_common()):
            lines.append([(f"  failed  {kinds}", "alarm")])
        lines += self._charts(width, unicode=unicode)
        return [*lines, *([(f"  ! {hint}", "doubt")] for hint in self._hints(last))]

    def _title(self) -> Line:
        return [(self._plan.title, "bold"), (f"  {self._plan.load.label}", "dim")]

    def _progress(self, last: Interval, width: int, *, unicode: bool) -> Line:
        plan = self._plan
        if plan.requests is not None:
            done = (self._answered + self._failed) / plan.requests
            text = f"{last.end_s:.1f} s, of {plan.requests:,} requests"
        elif plan.ends_by_itself:
            return [(f"  {last.end_s:.1f} s", "")]
        else:
            done, text = last.end_s / plan.duration_s, f"{last.end_s:.1f} s of {plan.duration_s:g} s"
        full = max(0, min(30, width - len(text) - 14))
        filled = min(full, int(done * full))
        bar = ("━" * filled, "─" * (full - filled)) if unicode else ("=" * filled, "." * (full - filled))
        return [(f"  {text}  ", ""), (bar[0], ""), (bar[1], "dim"), (f"  {min(done, 1):.0%}", "")]

    def _rate(self, last: Interval) -> Line:
        load = self._plan.load
        line: Line = [(f"  {self._rate_rps():,.0f} req/s", "bold")]
        if isinstance(load, OpenLoad) and load.session is None:
            line.append((f" of {value_at(load.rate_rps, last.end_s):,.0f} requested", ""))
        line.append((f"   {self._answered:,} answered", ""))
        return [*line, (f"   {self._failed:,} failed", "alarm")] if self._failed else line

    def _times(self, width: int) -> Line:
        found = [*self._quantiles_us(tuple(LIVE_PERCENTILES.values())), self._longest_us() or None]
        text = "   ".join(
            f"{name} {microseconds(one)}" for name, one in zip((*LIVE_PERCENTILES, "max"), found, strict=True)
        )
        return [(f"  {text}", ""), *([("   in the last second", "dim")] if len(text) + 24 < width else [])]

    def _waiting(self, last: Interval) -> Line:
        text = f"  {last.in_flight:,} in flight"
        load = self._plan.load
        if isinstance(load, ClosedLoad) and isinstance(load.users, tuple):
            text += f" of {value_at(load.users, last.end_s):,.0f} users"
        if isinstance(load, OpenLoad):
            text += f"   {last.queued:,} queued"
        if last.in_flight or last.queued:
            text += f"   oldest waits {microseconds(last.oldest_age_us)}"
        return [(text, "")]

    def _charts(self, width: int, *, unicode: bool) -> list[Line]:
        room = max(10, min(_MINUTE, width - 32))
        shown = list(self._minute)[-room:]
        if len(shown) < 2:
            return []
        blocks = _BLOCKS if unicode else _ASCII_BLOCKS
        rates, times = [rate for rate, _ in shown], [p99 for _, p99 in shown]
        slowest = max((value for value in times if value is not None), default=None)
        return [
            [("  req/s  ", "dim"), (bars(rates, blocks), ""), (f"  up to {max(rates):,.0f}", "dim")],
            [("  p99    ", "dim"), (bars(times, blocks), ""), (f"  up to {microseconds(slowest)}", "dim")],
        ]

    def _hints(self, last: Interval) -> Iterable[str]:
        if self._busy is not None and self._busy >= BUSY_FRACTION and not self.spins:
            yield f"generator busy, {self._busy:.0%} of its CPU: the generator may be the limit"
        if isinstance(self._plan.load, OpenLoad) and all(interval.queued for interval, _ in self._window):
            yield "no connection is free, so requests wait: use more connections (-c) or a lower rate"
        if self._span_s() > 1 - 1e-6 and not self._rate_rps():
            yield "no response in the last second"

    def _span_s(self) -> float:
        return self._window[-1][0].end_s - self._window[0][0].start_s

    def _rate_rps(self) -> float:
        span_s = self._span_s()
        return sum(interval.completed for interval, _ in self._window) / span_s if span_s > 0 else 0.0

    def _quantiles_us(self, shares: Sequence[float]) -> list[float | None]:
        """Returns quantiles, in microseconds, of the last second's response times."""
        if not self._last_second.counts:
            return [None for _ in shares]
        return [min(value / 1e3, self._longest_us()) for value in self._last_second.quantiles(shares)]

    def _longest_us(self) -> float:
        return max(interval.response_time_us.max or 0.0 for interval, _ in self._window)

    def _measure_generator(self) -> None:
        if (used := self._generator_cpu_s()) is None:
            return
        now = self._clock()
        if self._cpu is not None and now > self._cpu[0]:
            self._busy = (used - self._cpu[1]) / (now - self._cpu[0]) / self._plan.threads
        self._cpu = (now, used)


def bars(values: Sequence[float | None], blocks: str) -> str:
    """Returns one character per value, on a scale from 0 to the highest value. None becomes a space."""
    highest = max((value for value in values if value is not None), default=0.0) or 1.0
    return "".join(" " if value is None else blocks[round(value / highest * (len(blocks) - 1))] for value in values)


def process_cpu_s(pid: int) -> float | None:
    """Returns the CPU time of all threads of a process. Returns None if the process has ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            fields = stat.read().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class LiveView(LoadObserver):
    """An observer that draws a load's figures at a terminal. A context manager: the end removes the lines. The cursor
    stays visible at the end of the last line, so a kill of weir leaves a usable terminal."""

    def __init__(self, plan: LoadPlan) -> None:
        self._pid: int | None = None
        self._figures = LiveFigures(plan, lambda: None if self._pid is None else process_cpu_s(self._pid))
        self._lock = threading.Lock()
        self._lengths: list[int] = []
        self._drawn_at = 0.0
        self._ended = False
        self._colour = not os.environ.get("NO_COLOR")
        self._unicode = "utf" in (sys.stderr.encoding or "").lower()

    def on_start(self, started: LoadStarted) -> None:
        self._pid = started.pid
        self._figures.spins = "spin" in started.wait

    def on_interval(self, interval: Interval) -> None:
        with self._lock:
            self._figures.take(interval)
            now = time.monotonic()
            if not self._ended and now - self._drawn_at >= _REFRESH_S:
                self._drawn_at = now
                self._draw()

    def __enter__(self) -> Self:
        with self._lock:
            self._draw()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Removes the lines from the terminal. A second call does nothing."""
        with self._lock:
            if not self._ended:
                self._write(self._back(_size().columns) + "\x1b[J")
            self._ended = True

    def _draw(self) -> None:
        size = _size()
        # The terminal echoes ^C in two columns.
        most = max(10, size.columns - 3)
        all_lines = self._figures.lines(size.columns, unicode=self._unicode)
        lines = [crop(line, most) for line in all_lines[: max(1, size.lines - 1)]]
        text = "\r\n".join(self._styled(line) + "\x1b[K" for line in lines)
        self._write(self._back(size.columns) + text + "\x1b[J")
        self._lengths = [sum(len(part) for part, _ in line) for line in lines]

    def _back(self, columns: int) -> str:
        """Returns the codes that move the cursor to the first line, even if the terminal has become narrower."""
        rows = sum(max(1, -(-length // max(1, columns))) for length in self._lengths)
        return "\r" + (f"\x1b[{rows - 1}A" if rows > 1 else "")

    def _styled(self, line: Line) -> str:
        return "".join(
            f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if style and self._colour else text for text, style in line
        )

    def _write(self, text: str) -> None:
        # A closed terminal must not end the load.
        with contextlib.suppress(OSError):
            os.write(sys.stderr.fileno(), text.encode(sys.stderr.encoding or "utf-8", "replace"))


def crop(line: Line, width: int) -> Line:
    """Cuts a line to `width` columns, and replaces control characters by spaces."""
    cut: Line = []
    for text, style in line:
        cut.append(("".join(one if one.isprintable() else " " for one in text[:width]), style))
        width -= len(cut[-1][0])
    return cut


def _size() -> os.terminal_size:
    with contextlib.suppress(OSError):
        size = os.get_terminal_size(sys.stderr.fileno())
        if size.columns and size.lines:
            return size
    return os.terminal_size((80, 24))
