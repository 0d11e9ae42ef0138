"""Loads that a form of the live page starts: checked by the code that checks the flags of `weir load`, one at a time, each kept in the
folder of runs.

What comes from the form is text and nothing more: a body is never the name of a file, and the load goes to the URL that was written there.
"""

import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from weir.asked_load import FLAGS
from weir.cli.live import begin_load, came_to
from weir.cli.load_file import KeptLoad, file_of, with_kept_intervals
from weir.cli.load_model import LoadFlags, chosen_load, default_duration_s
from weir.cli.transport import several_targets
from weir.cli.values import request
from weir.generators.engine import EngineLoad, LoadListener
from weir.load_values import duration_s
from weir.model.errors import UsageError, WeirError
from weir.model.load import LoadPlan
from weir.model.records import Interval, LoadEvent, LoadStarted
from weir.model.verdict import Reason, TrialVerdict

if TYPE_CHECKING:
    from weir.live import TrialEnded

_FLAGS = {
    "connections": "-c", "users": "--users", "ramp": "--ramp", "rate": "-R", "think": "--think", "duration": "-d", "requests": "-n",
    "method": "-m", "body": "-b", "timeout": "--timeout",
}  # fmt: skip
"""The fields that are flags of `weir load`; beside them there are `url` and `headers`, one a line."""
_SCHEMES = ("http://", "https://")
_TIMEOUT = "2s"
_END_S = 10.0


def plan_of_form(fields: Mapping[str, str]) -> LoadPlan:
    """The load that a form asks for; a field that is empty was not filled in.

    Raises:
        UsageError: a field cannot be read, contradicts another, or there is no such field.
    """
    given = _filled_in(fields)
    if unknown := sorted(set(given) - {"url", "headers", *_FLAGS}):
        raise UsageError(f"form: found a field {unknown[0]!r}, expected url, headers, {', '.join(_FLAGS)}")
    url = given.get("url", "")
    if not url.lower().startswith(_SCHEMES):
        raise UsageError(f"URL: found {url!r}, expected http://HOST[:PORT]/PATH or https://...", hint="http://127.0.0.1:8000/")
    chosen = chosen_load(
        LoadFlags(
            connections=_count(given, "connections", FLAGS.connections),
            rate=given.get("rate"),
            users=given.get("users"),
            ramp=given.get("ramp"),
            think=given.get("think"),
        )
    )
    requests = _count(given, "requests", "-n/--requests")
    duration, body = given.get("duration"), given.get("body")
    asked = request(url, given.get("method") or (None if body is None else "POST"), _headers(given), None)
    plan = LoadPlan(
        targets=several_targets([url], chosen.connections, has_scenario=False),
        # Not through `values.body`, which reads @FILE: whoever fills in a form must not have this machine's files sent anywhere.
        request=asked if body is None else replace(asked, body=body.encode()),
        load=chosen,
        duration_s=default_duration_s(chosen, given.get("ramp"), requests, False)
        if duration is None
        else duration_s(duration, "-d/--duration"),
        timeout_s=duration_s(given.get("timeout", _TIMEOUT), "--timeout"),
        requests=requests,
    )
    return with_kept_intervals(plan)


def command_of_form(fields: Mapping[str, str]) -> list[str]:
    """What `weir` would be told at the prompt for the same load, without `--out`."""
    given = _filled_in(fields)
    flags = [part for name, flag in _FLAGS.items() if name in given for part in (flag, given[name])]
    return ["load", given.get("url", ""), *flags, *(part for line in _headers(given) for part in ("-H", line))]


class FormLoads:
    """The loads of one page, and the board that shows them. `close` it in any case: it ends the load that goes on.

    Args:
        folder: the folder of runs.
    """

    def __init__(self, folder: Path) -> None:
        from weir.live import About, Board, Controls

        self.board = Board(About("Runs"), Controls(stop=self.stop, start=self.start))
        self._folder = folder
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._goes_on = False
        self._running: EngineLoad | None = None
        self._is_closed = False
        self._number = 0

    def start(self, fields: Mapping[str, str]) -> None:
        """Starts the load that a form asks for.

        Raises:
            UsageError: the form is wrong, or a load goes on.
            WeirError: the load cannot be kept.
        """
        plan = plan_of_form(fields)
        with self._lock:
            if self._goes_on or self._is_closed:
                raise UsageError("a load goes on, expected none: two would disturb one another", hint="stop it, or wait for its end")
            name = self._free_name()
            kept = KeptLoad(file_of(str(self._folder / name)), plan, command_of_form(fields))
            self._number += 1
            self._goes_on = True
            begin_load(self.board, plan, self._number)
            self._thread = threading.Thread(target=self._run, args=(plan, kept, name), name="form load", daemon=True)
            self._thread.start()

    def stop(self) -> bool:
        """Ends the load that goes on, keeping what was measured; False where none does."""
        with self._lock:
            if self._running is None:
                return False
            self._running.stop()
            return True

    def close(self) -> None:
        """Ends the load that goes on and waits until it is kept; none begins any more."""
        with self._lock:
            self._is_closed = True
            thread = self._thread
        self.stop()
        if thread is not None:
            thread.join(_END_S)

    def _free_name(self) -> str:
        number = 1
        while (self._folder / f"load-{number}").exists():
            number += 1
        return f"load-{number}"

    def _run(self, plan: LoadPlan, kept: KeptLoad, name: str) -> None:
        try:
            ended = self._measure(plan, kept, name)
        except (WeirError, OSError) as error:
            text, hint = (error.message, error.hint) if isinstance(error, WeirError) else (str(error), "")
            ended = came_to(TrialVerdict((Reason("load", "invalid", text, next_step=hint),)), None)
        with self._lock:
            self._goes_on = False
        self.board.end_trial(ended)

    def _measure(self, plan: LoadPlan, kept: KeptLoad, name: str) -> "TrialEnded":
        board = self.board

        def start(started: LoadStarted) -> None:
            kept.start(started)
            board.begin_load(started)

        def take(interval: Interval) -> None:
            kept.recorder.take_interval(interval)
            board.take_interval(interval)

        def happened(event: LoadEvent) -> None:
            kept.recorder.take_event(event)
            board.take_event(event)

        with kept, EngineLoad(plan, LoadListener(on_start=start, on_interval=take, on_event=happened)) as running:
            with self._lock:
                self._running = running
                if self._is_closed:
                    running.stop()
            try:
                end = running.result()
            finally:
                with self._lock:
                    self._running = None
            summary = end.summary.model_copy(update={"slowest": end.slowest})
            kept.finish(end, summary, None, interrupted=end.stopped == "signal")
        return came_to(TrialVerdict.told(summary.verdict.validity, summary.verdict.reasons), summary, run=name)


def _filled_in(fields: Mapping[str, str]) -> dict[str, str]:
    return {name: text.strip() for name, text in fields.items() if text.strip()}


def _headers(given: Mapping[str, str]) -> list[str]:
    return [line.strip() for line in given.get("headers", "").splitlines() if line.strip()]


def _count(given: Mapping[str, str], name: str, flag: str) -> int | None:
    text = given.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()) or not 0 < int(text[:12]) < 10**9:
        raise UsageError(f"{flag}: found {text!r}, expected a whole number above 0")
    return int(text)
