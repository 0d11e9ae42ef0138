"""What `weir load` shows at a terminal while it runs: a few lines, redrawn in place from the interval records, gone at the end.

`LiveFigures` is the arithmetic and gives lines; `LiveView` is the terminal. It runs on the engine's reader thread at nice 19 and must not
take a CPU from the load: at most four redraws a second, each one write, and no library that lays out text.
"""

import contextlib
import os
import sys
import threading
import time
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Self

from weir.cli.load_text import microseconds
from weir.model import histogram
from weir.model.load import ClosedLoad, LoadPlan, OpenLoad, value_at
from weir.model.records import Interval, LoadStarted

_REFRESH_S = 0.25
_MINUTE = 60
_BUSY_SHARE = 0.85
"""As in the engine's verdict."""
_SHOWN = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
_COARSER = 8
"""Buckets of the histogram that are shown as one: to 1 %, which is finer than anybody can read while it moves."""
_BLOCKS = "▁▂▃▄▅▆▇█"
_ASCII_BLOCKS = "_.:-=+*#"
_STYLES = {"bold": "1", "dim": "2", "alarm": "31", "doubt": "33"}

Piece = tuple[str, str]
"""Text and its style: a key of `_STYLES`, or nothing."""
Line = list[Piece]


@dataclass(frozen=True, slots=True)
class Second:
    """One second of the last minute; no p99 where nothing was answered."""

    rate_rps: float
    p99_us: float | None


class LiveFigures:
    """The figures of a running load, from its intervals. Pure but for the generator's CPU time, which it is given.

    Args:
        plan: the load.
        generator_cpu_s: CPU time that the generator has used so far; None where that is not known.
        clock: seconds, for the share that this CPU time is of.
    """

    def __init__(
        self, plan: LoadPlan, generator_cpu_s: Callable[[], float | None] = lambda: None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._plan = plan
        self._generator_cpu_s = generator_cpu_s
        self._clock = clock
        self._window: deque[tuple[Interval, dict[int, int]]] = deque()
        self._counts = [0] * (histogram.BUCKETS // _COARSER)
        self._minute: deque[Second] = deque(maxlen=_MINUTE)
        self._errors: Counter[str] = Counter()
        self._answered = 0
        self._failed = 0
        self._cpu: tuple[float, float] | None = None
        self._busy: float | None = None
        self.spins = False
        """Whether the generator waits by spinning, so that its CPU time does not say how busy it is."""

    def take(self, interval: Interval) -> None:
        """Adds an interval, and drops what lies more than a second before its end."""
        counts = histogram.counts_in(histogram.bytes_of_text(interval.histogram))
        before = self._window[-1][0].end_s if self._window else 0.0
        self._window.append((interval, counts))
        for index, count in counts.items():
            self._counts[index // _COARSER] += count
        while interval.end_s - self._window[0][0].start_s > 1.0 + 1e-6 and len(self._window) > 1:
            for index, count in self._window.popleft()[1].items():
                self._counts[index // _COARSER] -= count
        self._answered += interval.completed
        self._failed += interval.failed
        if interval.failed:
            self._errors.update({kind: count for kind, count in interval.errors.model_dump().items() if count})
        if int(interval.end_s + 1e-6) > int(before + 1e-6):
            (p99,) = self._quantiles_us((0.99,))
            self._minute.append(Second(self._rate_rps(), p99))
            self._measure_generator()

    def lines(self, width: int, *, unicode: bool = True) -> list[Line]:
        """What is shown, for a terminal of `width` columns; a line may be longer and is cropped by whoever draws it."""
        if not self._window:
            return [self._title(), [("  connecting", "dim")]]
        last = self._window[-1][0]
        lines = [
            self._title(),
            self._progress(last, width, unicode=unicode),
            self._rate(last),
            self._times(width),
            self._waiting(last),
        ]
        if self._errors:
            lines.append([("  failed  ", "alarm"), (", ".join(f"{kind} {count:,}" for kind, count in self._errors.most_common()), "alarm")])
        lines += self._charts(width, unicode=unicode)
        return [*lines, *([(f"  ! {hint}", "doubt")] for hint in self._hints(last))]

    def _title(self) -> Line:
        return [(self._plan.title, "bold"), (f"  {self._plan.load.label}", "dim")]

    def _progress(self, last: Interval, width: int, *, unicode: bool) -> Line:
        plan, done, text = self._plan, last.end_s / self._plan.duration_s, f"{last.end_s:.1f} s of {self._plan.duration_s:g} s"
        if plan.requests is not None:
            done, text = (self._answered + self._failed) / plan.requests, f"{last.end_s:.1f} s, of {plan.requests:,} requests"
        elif plan.until_first_failure or (isinstance(plan.load, ClosedLoad) and plan.load.loops is not None):
            return [(f"  {last.end_s:.1f} s", "")]
        full = max(0, min(30, width - len(text) - 14))
        filled = min(full, int(done * full))
        bar = ("━" * filled, "─" * (full - filled)) if unicode else ("=" * filled, "." * (full - filled))
        return [(f"  {text}  ", ""), (bar[0], ""), (bar[1], "dim"), (f"  {min(done, 1):.0%}", "")]

    def _rate(self, last: Interval) -> Line:
        load = self._plan.load
        line: Line = [(f"  {self._rate_rps():,.0f} req/s", "bold")]
        if isinstance(load, OpenLoad) and load.session is None:
            line.append((f" of {value_at(load.rate_rps, last.end_s):,.0f} asked for", ""))
        line.append((f"   {self._answered:,} answered", ""))
        return [*line, (f"   {self._failed:,} failed", "alarm")] if self._failed else line

    def _times(self, width: int) -> Line:
        found = self._quantiles_us(tuple(_SHOWN.values()))
        shown = [f"{name} {microseconds(value)}" for name, value in zip(_SHOWN, found, strict=True)]
        shown.append(f"max {microseconds(self._longest_us() or None)}")
        text = "   ".join(shown)
        return [(f"  {text}", ""), *([("   in the last second", "dim")] if len(text) + 24 < width else [])]

    def _waiting(self, last: Interval) -> Line:
        text = f"  {last.in_flight:,} in flight"
        if isinstance(self._plan.load, ClosedLoad) and isinstance(self._plan.load.users, tuple):
            text += f" of {value_at(self._plan.load.users, last.end_s):,.0f} users"
        if isinstance(self._plan.load, OpenLoad):
            text += f"   {last.queued:,} queued"
        return [(text + f"   oldest waits {microseconds(last.oldest_age_us)}" if last.in_flight or last.queued else text, "")]

    def _charts(self, width: int, *, unicode: bool) -> list[Line]:
        room = max(10, min(_MINUTE, width - 32))
        shown = list(self._minute)[-room:]
        if len(shown) < 2:
            return []
        blocks = _BLOCKS if unicode else _ASCII_BLOCKS
        rates, times = [one.rate_rps for one in shown], [one.p99_us for one in shown]
        slowest = max((value for value in times if value is not None), default=None)
        return [
            [("  req/s  ", "dim"), (bars(rates, blocks), ""), (f"  up to {max(rates):,.0f}", "dim")],
            [("  p99    ", "dim"), (bars(times, blocks), ""), (f"  up to {microseconds(slowest)}", "dim")],
        ]

    def _hints(self, last: Interval) -> Iterable[str]:
        if self._busy is not None and self._busy >= _BUSY_SHARE and not self.spins:
            yield f"generator busy, {self._busy:.0%} of its CPU: it may be the limit"
        if isinstance(self._plan.load, OpenLoad) and all(interval.queued for interval, _ in self._window):
            yield "no connection is free: requests wait for one (-c, or a lower rate)"
        if self._spans_a_second() and not any(interval.completed for interval, _ in self._window):
            yield "nothing was answered in the last second"

    def _spans_a_second(self) -> bool:
        return self._window[-1][0].end_s - self._window[0][0].start_s > 1 - 1e-6

    def _rate_rps(self) -> float:
        span_s = self._window[-1][0].end_s - self._window[0][0].start_s
        return sum(interval.completed for interval, _ in self._window) / span_s if span_s > 0 else 0.0

    def _quantiles_us(self, shares: Sequence[float]) -> list[float | None]:
        """The smallest time within which each share of the last second's answers came."""
        up_to = list(accumulate(self._counts))
        if not up_to[-1]:
            return [None for _ in shares]
        slots = [bisect_left(up_to, share * up_to[-1] - 1e-9) for share in shares]
        return [min(histogram.highest_at(slot * _COARSER + _COARSER - 1) / 1e3, self._longest_us()) for slot in slots]

    def _longest_us(self) -> float:
        return max(interval.response_time_us.max or 0.0 for interval, _ in self._window)

    def _measure_generator(self) -> None:
        used = self._generator_cpu_s()
        if used is None:
            return
        now = self._clock()
        if self._cpu is not None and now > self._cpu[0]:
            self._busy = (used - self._cpu[1]) / (now - self._cpu[0]) / self._plan.threads
        self._cpu = (now, used)


def bars(values: Sequence[float | None], blocks: str) -> str:
    """A character for each value, from 0 to the highest of them; a space where there is none."""
    highest = max((value for value in values if value is not None), default=0.0)
    if highest <= 0:
        return "".join(" " if value is None else blocks[0] for value in values)
    return "".join(" " if value is None else blocks[round(value / highest * (len(blocks) - 1))] for value in values)


def process_cpu_s(pid: int) -> float | None:
    """CPU time of a process and all its threads; None when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            fields = stat.read().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class LiveView:
    """The lines at the terminal. A context manager that leaves nothing behind.

    The cursor rests at the end of the last line and is never hidden, so that a killed weir leaves a terminal that works.
    """

    def __init__(self, plan: LoadPlan) -> None:
        self._pid: int | None = None
        self._figures = LiveFigures(plan, lambda: None if self._pid is None else process_cpu_s(self._pid))
        self._lock = threading.Lock()
        self._lengths: list[int] = []
        self._drawn_at = 0.0
        self._ended = False
        self._colour = not os.environ.get("NO_COLOR")
        self._unicode = "utf" in (sys.stderr.encoding or "").lower()

    def start(self, started: LoadStarted) -> None:
        """The load's clock has started."""
        self._pid = started.pid
        self._figures.spins = "spin" in started.wait

    def take(self, interval: Interval) -> None:
        """Adds an interval, and redraws when that was a while ago."""
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
        """Takes the lines away. Closing twice does nothing."""
        with self._lock:
            if self._ended:
                return
            self._ended = True
            self._write(self._back(_size().columns) + "\x1b[J")

    def _draw(self) -> None:
        size = _size()
        # Room for the ^C that a terminal echoes.
        most = max(10, size.columns - 3)
        lines = [cropped(line, most) for line in self._figures.lines(size.columns, unicode=self._unicode)[: max(1, size.lines - 1)]]
        text = "\r\n".join(self._styled(line) + "\x1b[K" for line in lines)
        self._write(self._back(size.columns) + text + "\x1b[J")
        self._lengths = [sum(len(part) for part, _ in line) for line in lines]

    def _back(self, columns: int) -> str:
        """To where the drawing began, also in a terminal that has become narrower and has wrapped its lines."""
        rows = sum(max(1, -(-length // max(1, columns))) for length in self._lengths)
        return "\r" + (f"\x1b[{rows - 1}A" if rows > 1 else "")

    def _styled(self, line: Line) -> str:
        if not self._colour:
            return "".join(text for text, _ in line)
        return "".join(f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if style else text for text, style in line)

    def _write(self, text: str) -> None:
        # A terminal that is gone is no reason to end the load.
        with contextlib.suppress(OSError):
            os.write(sys.stderr.fileno(), text.encode(sys.stderr.encoding or "utf-8", "replace"))


def cropped(line: Line, width: int) -> Line:
    """A line without what does not fit, and without characters that would steer the terminal."""
    kept: Line = []
    for text, style in line:
        shown = "".join(character if character.isprintable() else " " for character in text[:width])
        kept.append((shown, style))
        width -= len(shown)
    return kept


def _size() -> os.terminal_size:
    try:
        size = os.get_terminal_size(sys.stderr.fileno())
    except OSError:
        return os.terminal_size((80, 24))
    return size if size.columns and size.lines else os.terminal_size((80, 24))
