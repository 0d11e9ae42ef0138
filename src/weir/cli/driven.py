"""A run that the weir of another machine drives: what its live page is told goes there in lines, and what its buttons ask for comes back.

Both ends are here, so that the words of the lines are in one place. A run that is driven ends in order when its standard input closes:
whoever drives it is gone then.
"""

import contextlib
import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from weir.cli.live import page, stop_button, told_the_end
from weir.cli.live_run import Shown, told_too
from weir.cli.output import say
from weir.engine_process import Engine
from weir.lab.blocks import Progress
from weir.lab.onlooker import Extension, Skip
from weir.model.records import Interval, LoadEvent, LoadStarted, Sample
from weir.model.run import TrialResult
from weir.study.study import PlannedCell

if TYPE_CHECKING:
    from weir.live import Board, TrialBegun, TrialEnded

_MARK = "weir-live"
_FINISHED = "weir-finished"
"""Says that a trial was finished, and is in the run file."""
_SKIP = {"command": "skip"}
_EXTEND = {"command": "extend"}
_MOST_WAITING = 20_000
_WRITER_NICE = 19
_WRITTEN_WITHIN_S = 5.0


@cache
def _kinds() -> Mapping[str, TypeAdapter[Any]]:
    """What a board is told, by its method."""
    from weir.live import TrialBegun, TrialEnded

    return {
        "step": TypeAdapter(str),
        "begin_trial": TypeAdapter(TrialBegun),
        "begin_load": TypeAdapter(LoadStarted),
        "take_interval": TypeAdapter(Interval),
        "take_sample": TypeAdapter(Sample),
        "take_event": TypeAdapter(LoadEvent),
        "end_trial": TypeAdapter(TrialEnded),
    }


# --- Where the run is


@contextmanager
def driven_run(progress: Progress, *, live: bool, last_block: int | None) -> Iterator[Progress]:
    """A run while what is inside goes on; gives the progress that tells whoever drives it, and whoever was told before.

    Args:
        progress: who was told before.
        live: whether there is a page to tell.
        last_block: None where nobody knows.
    """
    skip, extension = Skip(), Extension()
    threading.Thread(target=_obey, args=(skip, extension, threading.get_ident()), name="driver", daemon=True).start()
    before = progress.on_result

    def finished(planned: PlannedCell, result: TrialResult) -> None:
        before(planned, result)
        say(_FINISHED)

    progress = replace(progress, on_result=finished)
    if not live:
        yield progress
        return
    with BoardLines(sys.stderr.write) as lines:
        yield told_too(progress, lines, skip, extension, last_block)


def _obey(skip: Skip, extension: Extension, main: int) -> None:
    """The life of the thread that hears the driver."""
    # Without a buffer, whose lock this thread would hold when Python ends.
    with open(0, "rb", buffering=0, closefd=False) as commands:
        for line in commands:
            command = json.loads(line)
            if command == _SKIP:
                skip.ask()
            elif command == _EXTEND:
                extension.ask()
    signal.pthread_kill(main, signal.SIGTERM)


class BoardLines:
    """A board on another machine. As with one of this machine putting never blocks and computes nothing, and where too much waits it is
    left out. A context manager: in the end it writes what waits.

    Args:
        write: takes a line at a time.
    """

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._waiting: queue.Queue[tuple[str, Any] | None] = queue.Queue(_MOST_WAITING)
        self._thread = threading.Thread(target=self._write_lines, name="lines of the page", daemon=True)

    def step(self, text: str) -> None:
        """As `Board`."""
        self._put("step", text)

    def begin_trial(self, trial: "TrialBegun") -> None:
        """As `Board`."""
        self._put("begin_trial", trial)

    def show_logs(self, files: Mapping[str, Path]) -> None:
        """They are on this machine, and stay here until the run is over."""

    def begin_load(self, started: LoadStarted) -> None:
        """As `Board`."""
        self._put("begin_load", started)

    def take_interval(self, interval: Interval) -> None:
        """As `Board`."""
        self._put("take_interval", interval)

    def take_sample(self, sample: Sample) -> None:
        """As `Board`."""
        self._put("take_sample", sample)

    def take_event(self, event: LoadEvent) -> None:
        """As `Board`."""
        self._put("take_event", event)

    def end_trial(self, ended: "TrialEnded") -> None:
        """As `Board`."""
        self._put("end_trial", ended)

    def __enter__(self) -> "BoardLines":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._waiting.put(None)
        self._thread.join(_WRITTEN_WITHIN_S)

    def _put(self, kind: str, value: Any) -> None:
        with contextlib.suppress(queue.Full):
            self._waiting.put_nowait((kind, value))

    def _write_lines(self) -> None:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _WRITER_NICE)
        # Nobody reads any more where it cannot be written: the end of the input says so too.
        with contextlib.suppress(OSError):
            for kind, value in iter(self._waiting.get, None):
                self._write(f"{_MARK} {kind} {_kinds()[kind].dump_json(value).decode()}\n")


# --- Where the page is


def take_run_line(line: str) -> bool:
    """Says what a driven run says; gives whether that was that a trial was finished."""
    if line == _FINISHED:
        return True
    say(line)
    return False


def take_line(board: "Board", line: str) -> bool:
    """Tells a board what a line of `BoardLines` says; False where it is no such line."""
    if not line.startswith(f"{_MARK} "):
        return False
    # Another version of weir may say something else, of which this page shows nothing.
    with contextlib.suppress(KeyError, ValueError):
        _, kind, value = line.split(" ", 2)
        known = _kinds()[kind].validate_json(value)
        getattr(board, kind)(known)
    return True


@dataclass(slots=True)
class RunThere:
    """A run on another machine, as this one hears of it."""

    hear: Callable[[str], bool] = take_run_line
    """Takes a line that it says; gives whether that was that a trial was finished."""
    process: Engine | None = None
    """It, while it goes on."""

    def begin(self, process: Engine) -> None:
        """It runs."""
        self.process = process

    def skip(self) -> bool:
        """Has it reject the trial that goes on; False where there is no run."""
        if self.process is None:
            return False
        self.process.write_line(_SKIP)
        return True

    def extend(self) -> bool:
        """Has it go on for one more block; False where there is no run."""
        if self.process is None:
            return False
        self.process.write_line(_EXTEND)
        return True


@contextmanager
def live_there(shown: Shown, *, listen: str | None, report: Path) -> Iterator[RunThere]:
    """A page here of a run on another machine, while what is inside goes on.

    Args:
        shown: what the page is about.
        listen: `--listen`.
        report: where the run's report will be.
    """
    from weir.live import About, Board, Controls

    run = RunThere()
    extend = run.extend if shown.last_block is not None else None
    board = Board(About(shown.title, shown.question), Controls(stop=stop_button(), skip=run.skip, extend=extend))

    def hear(line: str) -> bool:
        return not take_line(board, line) and take_run_line(line)

    run.hear = hear
    with page(board, listen, is_busy=False), told_the_end(board, f"The run is over. Its report: {report.resolve()}"):
        yield run
