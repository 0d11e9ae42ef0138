"""`weir jmeter --engine`: runs a plan of plain thread groups with weir's engine, and prints JMeter's summary."""

import re
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from weir.cli.load_recording import LoadRecording, choose_file
from weir.cli.output import say
from weir.compat.convert.conversion import ArgumentParser
from weir.compat.jmx.jtl import write_jtl
from weir.compat.jmx.native import NativeLoad, list_native_loads
from weir.compat.jmx.read import read_plan
from weir.compat.jmx.samples import GroupLog, collect_samples, judge_redirects
from weir.compat.jmx.summariser import Summariser
from weir.compat.jmx.test_plan import ExactPlan
from weir.generators.engine import EngineLoad
from weir.model.errors import NotWrittenError, UsageError
from weir.model.load import LoadPlan
from weir.model.load_observer import LoadObserver, LoadObservers
from weir.model.load_records import Interval, LoadEnd, LoadStarted, LoadSummary
from weir.model.request_log import OUTCOMES, read_requests
from weir.model.sanitize import sanitize

_INTERVAL_S = 1.0
_HINT = "leave out --engine: JMeter itself runs the plan"


def run_on_engine(arguments: Sequence[str], out: str | None) -> bool:
    """Runs a plan with weir's engine. Returns whether the user interrupted the run. Raises UsageError if the engine
    cannot send exactly the requests of JMeter."""
    parser = ArgumentParser("weir jmeter --engine", _HINT)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("-t", "--testfile", dest="more_files", action="append", type=Path, default=[])
    parser.add_argument("-n", "--nongui", action="store_true")
    parser.add_argument("-l", "--logfile", type=Path)
    parser.add_argument("-f", "--forceDeleteResultFile", dest="empties", action="store_true")
    parser.add_argument("-J", "--jmeterproperty", dest="properties", action="append", default=[])
    parser.add_argument("-q", "--addprop", dest="property_files", action="append", type=Path, default=[])
    parser.add_argument("-j", "--jmeterlogfile", help="No effect: weir writes its messages to standard error.")
    given = parser.parse_intermixed_args(arguments)
    files = [*given.files, *given.more_files]
    if len(files) != 1:
        parser.error(f"found {len(files)} test plans, expected one: -t PLAN.jmx")
    values: dict[str, str] = {}
    for file in given.property_files:
        values |= _read_properties(file)
    for text in given.properties:
        name, _, value = text.partition("=")
        values[name.strip()] = value
    plan = read_plan(files[0], values)
    say("weir: --engine: weir's engine runs the plan, because it can send all requests of the plan exactly")
    return _run_plan(plan, given.logfile, None if out is None else choose_file(out), appends=not given.empties)


def _read_properties(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}; expected a file of properties") from None
    pairs = (re.split(r"\s*[=:]\s*", line.strip(), maxsplit=1) for line in lines if not re.match(r"\s*([#!]|$)", line))
    return {name: value[0] if value else "" for name, *value in pairs}


class _Console:
    """Prints JMeter's summariser lines. Each load calls this object from its own thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._summariser: Summariser | None = None
        self._last_unix_s = 0.0

    def add(self, group: "_Group", interval: Interval) -> None:
        began_unix_s = group.start_unix_ns / 1e9
        with self._lock:
            if self._summariser is None:
                self._summariser = Summariser(began_unix_s + group.native.begins_s)
            self._last_unix_s = max(self._last_unix_s, began_unix_s + interval.end_s)
            for line in self._summariser.add(interval, self._last_unix_s):
                print(line, flush=True)

    def end(self) -> None:
        for line in [] if self._summariser is None else self._summariser.end(self._last_unix_s):
            print(line)


@dataclass(eq=False)
class _Group(LoadObserver):
    """One thread group and its load."""

    native: NativeLoad
    plan: LoadPlan
    recording: LoadRecording | None
    console: _Console
    start_unix_ns: int = 0

    def on_start(self, started: LoadStarted) -> None:
        self.start_unix_ns = started.start_unix_ns

    def on_interval(self, interval: Interval) -> None:
        self.console.add(self, interval)


def _run_plan(plan: ExactPlan, jtl: Path | None, run_file: Path | None, *, appends: bool) -> bool:
    """Runs a test plan. Returns whether the user interrupted the run. `appends`: adds rows to an existing JTL file."""
    natives = {native.group.number: native for native in list_native_loads(plan)}
    if run_file is not None and len(natives) > 1:
        found = f"--out: found {len(natives)} thread groups, expected one: a run file has a single load"
        raise UsageError(found, hint=_HINT)
    if jtl is not None:
        # weir checks the file before the load, because a later error would lose the samples.
        try:
            jtl.open("a").close()
        except OSError as error:
            raise UsageError(f"{jtl}: cannot be written: {error.strerror}") from None
    print("Creating summariser <summary>", flush=True)
    console = _Console()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="weir-jmeter-")))
        ran: list[tuple[_Group, LoadEnd]] = []
        interrupted = False
        for phase in plan.phases():
            loads = [(natives[group.number], folder / str(group.number)) for group in phase]
            groups = [_prepare_group(*load, run_file, stack, console, is_logged=jtl is not None) for load in loads]
            ran += zip(groups, _run(groups), strict=True)
            interrupted = any(end.stopped == "signal" for _, end in ran)
            if interrupted:
                break
        console.end()
        ran = [(group, judge_redirects(group.native, end, _read_log(group))) for group, end in ran]
        if jtl is not None:
            logs = [(one, _read_log(one)) for one, _ in ran]
            samples = collect_samples(
                [GroupLog(one.native, one.start_unix_ns, log) for one, log in logs if log is not None]
            )
            try:
                with jtl.open("a" if appends else "w", newline="", encoding="utf-8") as file:
                    write_jtl(samples, file, with_header=file.tell() == 0)
            except OSError as error:
                raise NotWrittenError(f"{jtl}: cannot be written: {error.strerror}") from None
        for group, end in ran:
            if group.recording is not None:
                group.recording.finish(end, end.summary, None, interrupted=interrupted)
        print("... end of run", flush=True)
        for group, end in ran:
            _report_differences(group.native, end.summary, alone=len(ran) == 1)
        if run_file is not None:
            say(f"to print the result again: weir report {run_file}")
    return interrupted


def _prepare_group(
    native: NativeLoad, folder: Path, run_file: Path | None, stack: ExitStack, console: _Console, *, is_logged: bool
) -> _Group:
    folder.mkdir()
    for name, content in native.files.items():
        (folder / name).write_text(content, encoding="utf-8")
    plan, recording = native.load_plan(folder), None
    if run_file is not None:
        recording = stack.enter_context(LoadRecording(run_file, plan, sys.argv[1:]))
    else:
        plan = replace(plan, interval_s=_INTERVAL_S)
    if is_logged or native.mixes_redirects:
        plan = replace(plan, request_log=str(folder / "requests"))
    return _Group(native, plan, recording, console)


def _read_log(group: _Group) -> Any:
    """Returns the request log of a thread group; None if the group has no log."""
    return None if group.plan.request_log is None else read_requests(Path(group.plan.request_log))


def _run(groups: Sequence[_Group]) -> list[LoadEnd]:
    """Runs the loads of thread groups at the same time, and returns the results."""
    with ExitStack() as stack:
        loads = []
        for group in groups:
            observers = LoadObservers(group, group.recording.recorder if group.recording else None)
            loads.append(stack.enter_context(EngineLoad(group.plan, observers)))
        return [load.result_or_stop(*loads) for load in loads]


def _report_differences(native: NativeLoad, summary: LoadSummary, *, alone: bool) -> None:
    """Prints the verdict on a thread group, the differences from JMeter, and the equivalent `weir load` command."""
    name = "" if alone else f"{native.group.name}: "
    lines = list(summary.verdict.lines)
    if summary.errors.reset or summary.errors.protocol:
        failed = f"a request without a whole response ({', '.join(OUTCOMES[3:5])})"
        lines.append(f"the elapsed time of {failed} ends at the request's last known event")
    if unanswered := summary.requests.unanswered:
        lines.append(f"{unanswered} requests were in flight at the end of the load: the samples omit them")
    if native.plan.tls is not None:
        lines.append("weir trusts any certificate of the server, as JMeter does")
    lines.append(f"the same with weir load: {native.command} (weir convert jmx prints the scenario)")
    for line in lines:
        say(sanitize(f"weir: {name}{line}"))
