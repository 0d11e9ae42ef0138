"""`weir ui`: shows past runs and their reports in a browser, with a form that starts loads.

weir checks the form's fields like the flags of `weir load`. weir runs one load at a time, and saves each load in the
folder of runs. The form cannot name files: weir sends a body such as @FILE as text.
"""

import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument

from weir.cli import options
from weir.cli.load_page import announce_load, page, summarize_end
from weir.cli.load_recording import LoadRecording, choose_file, choose_interval
from weir.generators.engine import EngineLoad
from weir.generators.handle import StopSwitch
from weir.load_spec import SETTINGS, LoadSpec, read_flags
from weir.model.errors import UsageError, WeirError
from weir.model.load import LoadPlan
from weir.model.load_observer import LoadObservers
from weir.model.verdict import Reason, TrialVerdict
from weir.paths import find_free_folder

if TYPE_CHECKING:
    from weir.live import FormField, TrialEnded

_FOLDER = Path("runs")
_END_S = 10.0


def ui(
    folder: Annotated[
        Path, Argument(metavar="[FOLDER]", help="Folder of past runs, and of loads from the page.")
    ] = _FOLDER,
    listen: options.Listen = None,
) -> None:
    """Show past runs in a browser, and start and watch loads there. Ctrl-C ends the command.

    Example: weir ui runs
    """
    if not folder.is_dir() and (folder != _FOLDER or folder.exists()):
        found = "a file" if folder.exists() else "no folder"
        raise UsageError(f"FOLDER: {folder}: found {found}, expected a folder of runs", hint="weir ui runs")
    from weir.live import RunFolder

    loads = FormLoads(folder)
    with page(loads.board, listen, "weir ui has ended.", runs=RunFolder(folder)):
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            loads.close()


def form_fields() -> "list[FormField]":
    """Returns a form field for each load setting that has a label. The field for the URL is separate."""
    from weir.live import FormField

    shown = {name: setting for name, setting in SETTINGS.items() if setting.label}
    return [FormField(name, one.label, one.placeholder, name in ("headers", "body")) for name, one in shown.items()]


def parse_form(fields: Mapping[str, str]) -> LoadSpec:
    """Returns the load of a filled-in form. Raises UsageError for an unknown field or a wrong text."""
    given: dict[str, Any] = {name: text.strip() for name, text in fields.items() if text.strip()}
    url, body = given.pop("url", ""), given.pop("body", None)
    known = ["url", *(field.name for field in form_fields())]
    if unknown := sorted(set(given) - set(known)):
        raise UsageError(f"form: found a field {unknown[0]!r}, expected one of: {', '.join(known)}")
    if not url.lower().startswith(("http://", "https://")):
        expected = "expected http://HOST[:PORT]/PATH or https://..."
        raise UsageError(f"URL: found {url!r}, {expected}", hint="enter a URL such as http://127.0.0.1:8000/")
    if "headers" in given:
        given["headers"] = [line.strip() for line in given["headers"].splitlines() if line.strip()]
    # The flag's parser would read @FILE. A form must not send files of this machine.
    return replace(read_flags((url,), given), body=None if body is None else body.encode())


class FormLoads:
    """Runs the loads that users start with the live page's form. Saves each load in the folder of runs. The
    caller must call `close`."""

    def __init__(self, folder: Path) -> None:
        from weir.live import Controls, EventQueue, PageInfo

        self.board = EventQueue(PageInfo("Runs"), Controls(stop=self.stop, start=self.start, form=form_fields()))
        self._folder = folder
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._switch: StopSwitch | None = None
        """Switch that stops the running load. None: no load runs."""
        self._is_closed = False
        self._number = 0

    def start(self, fields: Mapping[str, str]) -> None:
        """Starts the load of a form. Raises UsageError if the form is wrong, a load runs, or a write fails."""
        spec = parse_form(fields)
        plan = choose_interval(spec.to_plan())
        with self._lock:
            if self._switch is not None or self._is_closed:
                problem = "found a running load, expected none: two loads would disturb each other"
                raise UsageError(problem, hint="stop the running load, or wait for its end")
            folder = find_free_folder(self._folder, "load")
            recording = LoadRecording(choose_file(str(folder)), plan, ["load", *spec.to_arguments()])
            self._number += 1
            self._switch = StopSwitch()
            announce_load(self.board, plan, self._number)
            arguments = (plan, recording, folder.name, self._switch)
            self._thread = threading.Thread(target=self._run, args=arguments, name="form load", daemon=True)
            self._thread.start()

    def stop(self) -> bool:
        """Ends the running load and keeps its result so far. Returns False if no load runs."""
        with self._lock:
            if self._switch is not None:
                self._switch.stop()
            return self._switch is not None

    def close(self) -> None:
        """Ends the running load, and waits until the file is complete. No other load starts later."""
        with self._lock:
            self._is_closed = True
            thread = self._thread
        self.stop()
        if thread is not None:
            thread.join(_END_S)

    def _run(self, plan: LoadPlan, recording: LoadRecording, name: str, switch: StopSwitch) -> None:
        try:
            ended = self._measure(plan, recording, name, switch)
        except (WeirError, OSError) as error:
            text, hint = (error.message, error.hint) if isinstance(error, WeirError) else (str(error), "")
            ended = summarize_end(TrialVerdict((Reason("load", "invalid", text, next_step=hint),)), None)
        with self._lock:
            self._switch = None
        self.board.end_trial(ended)

    def _measure(self, plan: LoadPlan, recording: LoadRecording, name: str, switch: StopSwitch) -> "TrialEnded":
        observers = LoadObservers(recording.recorder, self.board)
        with recording, EngineLoad(plan, observers) as running, switch.connected(running):
            end = running.result()
            summary = replace(end.summary, slowest=end.slowest)
            recording.finish(end, summary, None, interrupted=end.stopped == "signal")
        verdict = TrialVerdict.from_texts(summary.verdict.validity, summary.verdict.reasons)
        return summarize_end(verdict, summary, run=name)
