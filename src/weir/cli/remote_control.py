"""Connects two processes of weir: the driver on one machine controls a run on another machine.

The run writes lines with its progress for the driver's page. The driver writes lines with commands to the run's
standard input. When the driver ends, this input closes, and the run ends as after Ctrl-C. The module contains the code
of both processes, because both use the same format of lines.
"""

import contextlib
import json
import queue
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from weir.cli.load_page import interrupt_weir
from weir.cli.output import say
from weir.cli.run_page import BoardObserver, Shown, run_page
from weir.engine_process import Engine
from weir.lab.observer import RunControls, RunObserver, RunObservers
from weir.model.load_observer import LoadObserver
from weir.model.load_records import Interval, LoadEvent, LoadStarted
from weir.model.observer_records import Sample
from weir.model.run_types import TrialResult
from weir.priority import lower_priority
from weir.study.study import PlannedCell

if TYPE_CHECKING:
    from weir.live import EventQueue

_MARK = "weir-live"
_FINISHED = "weir-finished"
"""The line that the run sends after each trial, as soon as the run file contains the trial."""
_MOST_WAITING = 20_000
_WRITTEN_WITHIN_S = 5.0


@cache
def _kinds() -> Mapping[str, TypeAdapter[Any]]:
    """Returns a dict from the name of each board method to the type of the method's argument."""
    from weir.live import TrialEnded, TrialStarted

    return {
        "on_step": TypeAdapter(str),
        "begin_trial": TypeAdapter(TrialStarted),
        "on_start": TypeAdapter(LoadStarted),
        "on_interval": TypeAdapter(Interval),
        "on_sample": TypeAdapter(Sample),
        "on_event": TypeAdapter(LoadEvent),
        "end_trial": TypeAdapter(TrialEnded),
    }


@contextmanager
def driven_run(controls: RunControls, *, live: bool, last_block: int | None) -> Iterator[RunObserver]:
    """Executes the driver's commands until the context ends. Yields the observer that reports to the driver.

    `live`: whether the driver shows a page. `last_block`: the study's last block, None if a stopping rule decides.
    """
    threading.Thread(target=_obey, args=(controls,), name="driver", daemon=True).start()
    if not live:
        yield _FinishedLines()
        return
    with BoardLines(sys.stderr.write) as lines:
        yield RunObservers(_FinishedLines(), BoardObserver(lines, controls, last_block))


class _FinishedLines(RunObserver):
    def on_trial_end(self, planned: PlannedCell, result: TrialResult) -> None:
        say(_FINISHED)


def _obey(controls: RunControls) -> None:
    """Executes the driver's commands until the driver ends. Then interrupts the run like Ctrl-C."""
    requests = {"skip": controls.skip.request, "extend": controls.extra_blocks.request}
    # A buffered reader would keep its lock while Python ends.
    with open(0, "rb", buffering=0, closefd=False) as commands:
        for line in commands:
            # Another version of weir may send commands that this version does not know.
            if (request := requests.get(json.loads(line).get("command"))) is not None:
                request()
    interrupt_weir()


def _queue_as(kind: str) -> Any:
    """Returns a method that queues its argument as a line of this kind. With a full queue, the line is lost."""

    def put(self: "BoardLines", value: Any) -> None:
        with contextlib.suppress(queue.Full):
            self.waiting.put_nowait((kind, value))

    return put


class BoardLines(LoadObserver):
    """An observer that sends a run's progress as lines to the driver. A full queue drops lines, and never blocks. A
    context manager: a thread calls `write` for each line, and the context's end waits for the remaining lines."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self.waiting: queue.Queue[tuple[str, Any] | None] = queue.Queue(_MOST_WAITING)
        self._thread = threading.Thread(target=self._write_lines, name="lines of the page", daemon=True)

    on_step = _queue_as("on_step")
    begin_trial = _queue_as("begin_trial")
    on_start = _queue_as("on_start")
    on_interval = _queue_as("on_interval")
    on_sample = _queue_as("on_sample")
    on_event = _queue_as("on_event")
    end_trial = _queue_as("end_trial")

    def show_logs(self, files: Mapping[str, Path]) -> None:
        """Does nothing: the driver gets the log files after the run."""

    def __enter__(self) -> "BoardLines":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.waiting.put(None)
        self._thread.join(_WRITTEN_WITHIN_S)

    def _write_lines(self) -> None:
        lower_priority()
        # A failed write means that the driver has ended. Standard input then ends, too.
        with contextlib.suppress(OSError):
            for kind, value in iter(self.waiting.get, None):
                self._write(f"{_MARK} {kind} {_kinds()[kind].dump_json(value).decode()}\n")


def take_line(board: "EventQueue", line: str) -> bool:
    """Calls the board's method for a line from `BoardLines`. Returns False for any other line."""
    if not line.startswith(f"{_MARK} "):
        return False
    # Another version of weir may send lines that this version does not know.
    with contextlib.suppress(KeyError, ValueError):
        _, kind, value = line.split(" ", 2)
        message = _kinds()[kind].validate_json(value)
        getattr(board, kind)(message)
    return True


@dataclass(slots=True)
class RunThere:
    """The driver's view of a run on another machine."""

    board: "EventQueue | None" = None
    """The board that shows the run. None: no page."""
    process: Engine | None = None
    """The process of the run. None before the run begins."""

    def begin(self, process: Engine) -> None:
        self.process = process

    def hear(self, line: str) -> bool:
        """Shows a line of the run on the page, or prints the line. Returns whether the line ends a trial."""
        is_shown = self.board is not None and take_line(self.board, line)
        if not is_shown and line != _FINISHED:
            say(line)
        return line == _FINISHED

    def send(self, command: str) -> bool:
        """Sends a command to the run. Returns False if the run has not begun."""
        if self.process is not None:
            self.process.write_line({"command": command})
        return self.process is not None


@contextmanager
def live_there(shown: Shown, *, listen: str | None, report: Path) -> Iterator[RunThere]:
    """Serves a page for a run on another machine until the context ends. `report`: path of the report after the run."""
    run = RunThere()
    buttons = partial(run.send, "skip"), partial(run.send, "extend")
    with run_page(shown, *buttons, listen=listen, report=report, is_here=False) as run.board:
        yield run
