"""Tests the live view of a load: its lines, made from intervals, and the terminal after the view."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import sysconfig
import termios
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from weir.cli.terminal_progress import LiveFigures, bars, crop
from weir.model.hdr import Hdr
from weir.model.load import ClosedLoad, LoadPlan, OpenLoad, Request
from weir.model.load_records import ErrorCounts, Interval, IntervalQuantiles

Serve = Callable[..., str]

CLOSED = LoadPlan(Request("GET", "http://127.0.0.1:8000/"), ClosedLoad(64), 10.0)
OPEN = LoadPlan(Request("GET", "http://127.0.0.1:8000/"), OpenLoad(((0.0, 0.0), (10.0, 1000.0)), 8), 10.0)


def interval(
    index: int, times_ms: Sequence[float] = (), *, queued: int = 0, errors: ErrorCounts | None = None
) -> Interval:
    """Returns an interval of 0.1 s with these response times."""
    histogram = Hdr()
    for time_ms in times_ms:
        histogram.add(int(time_ms * 1e6))
    kinds = errors or ErrorCounts()
    failed = sum(kinds.occurred.values())
    return Interval(
        index=index, start_s=index / 10, end_s=(index + 1) / 10, due=0, sent=0, completed=len(times_ms), ok=len(times_ms), failed=failed,
        errors=kinds, in_flight=3, queued=queued, oldest_age_us=1500.0,
        response_time_us=IntervalQuantiles(max=max(times_ms) * 1e3 if times_ms else None), histogram=histogram.to_text(),
    )  # fmt: skip


def shown(figures: LiveFigures, width: int = 100, *, unicode: bool = True) -> list[str]:
    return ["".join(text for text, _ in line) for line in figures.lines(width, unicode=unicode)]


def test_the_view_shows_the_last_second_and_the_whole_load() -> None:
    figures = LiveFigures(CLOSED)
    for index in range(20):
        # The first second is slow, the second is fast.
        figures.take(interval(index, [50.0] * 10 if index < 10 else [1.0] * 9 + [2.0]))
    text = "\n".join(shown(figures))
    assert "2.0 s of 10 s" in text
    assert "20%" in text
    assert "100 req/s   200 answered" in text
    assert re.search(r"p50 1\.0\d ms   p90 1\.0\d ms   p99 2\.00 ms   max 2\.00 ms", text)
    assert "3 in flight   oldest waits 1.50 ms" in text
    assert "p99    █▁  up to 50.0 ms" in text
    assert "failed" not in text


def test_errors_are_shown_by_kind() -> None:
    figures = LiveFigures(CLOSED)
    figures.take(interval(0, [1.0], errors=ErrorCounts(timeout=2)))
    figures.take(interval(1, [1.0], errors=ErrorCounts(timeout=1, reset=1)))
    text = "\n".join(shown(figures))
    assert "4 failed" in text
    assert "timeout 3, reset 1" in text


def test_a_rate_over_time_is_shown_beside_what_was_reached() -> None:
    figures = LiveFigures(OPEN)
    figures.take(interval(0, [1.0] * 5, queued=7))
    text = "\n".join(shown(figures))
    assert "50 req/s of 10 requested" in text
    assert "7 queued" in text


def test_hints_say_what_the_verdict_would() -> None:
    cpu = iter([1.0, 1.95, 2.0])
    now = iter([1.0, 2.0, 3.0])
    busy = LiveFigures(CLOSED, lambda: next(cpu), lambda: next(now))
    hints = []
    for index in range(30):
        busy.take(interval(index, [1.0]))
        if index % 10 == 9:
            hints.append([line for line in shown(busy) if "!" in line])
    assert hints == [[], ["  ! generator busy, 95% of its CPU: the generator may be the limit"], []]
    waiting = LiveFigures(OPEN)
    for index in range(10):
        waiting.take(interval(index, queued=5))
    assert [line for line in shown(waiting) if "!" in line] == [
        "  ! no connection is free, so requests wait: use more connections (-c) or a lower rate",
        "  ! no response in the last second",
    ]


def test_a_generator_that_waits_by_spinning_is_not_called_busy() -> None:
    figures = LiveFigures(OPEN, iter([0.0, 1.0, 2.0]).__next__, iter([0.0, 1.0, 2.0]).__next__)
    figures.spins = True
    for index in range(20):
        figures.take(interval(index, [1.0]))
    assert not [line for line in shown(figures) if "!" in line]


@pytest.mark.parametrize("width", [60, 80, 200])
def test_what_changes_fits_the_terminal(width: int) -> None:
    figures = LiveFigures(OPEN)
    for index in range(800):
        figures.take(interval(index, [2000.0, 123.4], queued=1, errors=ErrorCounts(timeout=1)))
    assert all(len(line) <= width for line in shown(figures, width)[1:] if "!" not in line)
    assert len(shown(figures, 20)) == len(shown(figures, 200))


def test_without_unicode_the_view_is_ascii() -> None:
    figures = LiveFigures(CLOSED)
    for index in range(30):
        figures.take(interval(index, [1.0]))
    assert all(line.isascii() for line in shown(figures, unicode=False))
    assert bars([0.0, None, 1.0], "_#") == "_ #"


def test_a_line_is_cropped_and_cannot_steer_the_terminal() -> None:
    assert crop([("ab\x1b[2J", "bold"), ("cdef", "")], 7) == [("ab [2J", "bold"), ("c", "")]


def terminal(tmp_path: Path, *arguments: str, environment: dict[str, str], until: bytes) -> tuple[int, str, str]:
    """Exit status, text on the terminal, and standard output of `weir ARGUMENTS...`, interrupted after the terminal
    showed `until`."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    weir = Path(sysconfig.get_path("scripts")) / "weir"
    process = subprocess.Popen(
        [weir, *arguments],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, **environment},
    )
    os.close(theirs)
    drawn = b""
    interrupted = False
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:
            break
        drawn += part
        if until in drawn and not interrupted:
            interrupted = True
            process.send_signal(signal.SIGINT)
    out, _ = process.communicate()
    os.close(ours)
    return process.returncode, drawn.decode(), out.decode()


def test_a_terminal_is_clean_after_ctrl_c(tmp_path: Path, serve: Serve) -> None:
    status, drawn, out = terminal(
        tmp_path,
        *("load", f"http://{serve('null')}/", "-d", "1h"),
        environment={"TERM": "xterm", "NO_COLOR": "", "PYTHONIOENCODING": "utf-8"},
        until=b"up to",
    )
    assert status == 130
    assert "req/s" in out
    assert "\x1b[1m" in drawn
    # The last drawing moves to the first line of the view and clears the screen from there.
    assert re.search(r"\r\x1b\[\d+A\x1b\[J$", drawn)
    assert "\x1b[?25l" not in drawn


def test_no_color_is_honoured(tmp_path: Path, serve: Serve) -> None:
    load = ("load", f"http://{serve('null')}/", "-d", "1h")
    _, drawn, _ = terminal(tmp_path, *load, environment={"TERM": "xterm", "NO_COLOR": "1"}, until=b"in flight")
    assert not re.search(r"\x1b\[\d*m", drawn)


def test_nothing_is_drawn_without_a_terminal_or_on_a_dumb_one(tmp_path: Path, serve: Serve) -> None:
    url = f"http://{serve('null')}/"
    command = [str(Path(sysconfig.get_path("scripts")) / "weir"), "load", url, "-d", "300ms"]
    # A busy machine makes the generator stand still, and weir says so in a line.
    assert b"\x1b[" not in subprocess.run(command, capture_output=True, check=True).stderr
    code = "import os, pty, sys; status = pty.spawn(sys.argv[1:]); sys.exit(os.waitstatus_to_exitcode(status))"
    done = subprocess.run(
        [sys.executable, "-c", code, *command],
        capture_output=True,
        check=True,
        env={**os.environ, "TERM": "dumb"},
        stdin=subprocess.DEVNULL,
    )
    assert b"\x1b[" not in done.stdout
