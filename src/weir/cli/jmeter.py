"""`weir jmeter`: runs a JMeter test plan with weir's engine, and prints JMeter's report."""

import re
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer
from typer import Argument, Option
from typer.core import TyperCommand

from weir.cli.load_recording import LoadRecording, choose_file
from weir.cli.output import say
from weir.compat.jmx.jtl import AGGREGATE_COLUMNS, SUMMARY_COLUMNS, summarize_labels, write_jtl, write_report
from weir.compat.jmx.native import NativeLoad, list_native_loads
from weir.compat.jmx.read import read_plan
from weir.compat.jmx.samples import GroupLog, Samples, collect_samples, judge_redirects
from weir.compat.jmx.summariser import Summariser
from weir.compat.jmx.test_plan import ExactPlan
from weir.generators.engine import EngineLoad
from weir.model.errors import ExitCode, NotWrittenError, UsageError
from weir.model.load import LoadPlan
from weir.model.load_observer import LoadObserver, LoadObservers
from weir.model.records import Interval, LoadEnd, LoadStarted, LoadSummary
from weir.model.request_log import OUTCOMES, read_requests
from weir.model.sanitize import sanitize

_INTERVAL_S = 1.0
_HINT = "weir jmeter --help"
_NOT_OFFERED = {
    option: reason
    for options, reason in {
        "-E -H -P -N -u -a --proxyScheme --proxyHost --proxyPort --nonProxyHosts": "requests go directly to the server",
        "-r -R -s -X --runremote --remotestart --server --remoteexit": "weir has no remote servers",
        "-S -i -d --systemPropertyFile --jmeterlogconf --homedir": "weir runs no Java",
        "-g --reportonly": "weir audit reads JTL files",
        "-v": "weir --version",
    }.items()
    for option in options.split()
}
_PROPERTY = "NAME=VALUE"


class Command(TyperCommand):
    """A parser that reports wrong flags with JMeter's messages. The exit code is 2; JMeter itself exits with 0."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            option = getattr(error, "option_name", None)
            if option is None:
                raise
            if option in _NOT_OFFERED:
                found = f"{option}: found a JMeter option that weir does not support"
                raise UsageError(f"{found}: {_NOT_OFFERED[option]}", hint=_HINT) from None
            missing = "requires an argument" in str(getattr(error, "message", ""))
            print(f"Error: {'Missing argument to option' if missing else 'Unknown option'} {option}", file=sys.stderr)
            print(f"  try: {_HINT}", file=sys.stderr)
            raise typer.Exit(ExitCode.USAGE) from None


def jmeter(
    plan: Annotated[Path | None, Argument(metavar="PLAN.jmx", help="Test plan to run. Alternative to -t.")] = None,
    testfile: Annotated[Path | None, Option("-t", "--testfile", help="Test plan to run.")] = None,
    nongui: Annotated[bool, Option("-n", "--nongui", help="No effect: weir has no GUI.")] = False,
    logfile: Annotated[
        Path | None, Option("-l", "--logfile", help="Write a row for each sample to this JTL file (CSV).")
    ] = None,
    force_delete: Annotated[
        bool, Option("-f", "--forceDeleteResultFile", help="Empty the JTL file first. Default: append new rows.")
    ] = False,
    properties: Annotated[
        list[str] | None,
        Option("-J", "--jmeterproperty", metavar=_PROPERTY, help="Value of ${__P(NAME)}. Example: -Jthreads=20."),
    ] = None,
    global_properties: Annotated[
        list[str] | None,
        Option("-G", "--globalproperty", metavar=_PROPERTY, help="Same effect as -J: weir has no remote servers."),
    ] = None,
    property_files: Annotated[
        list[Path] | None, Option("-q", "--addprop", help="File of NAME=VALUE properties. -J overrides the file.")
    ] = None,
    propfile: Annotated[Path | None, Option("-p", "--propfile", help="Like -q, but -q overrides this file.")] = None,
    system_properties: Annotated[
        list[str] | None, Option("-D", "--systemproperty", metavar=_PROPERTY, help="Ignored: weir runs no Java.")
    ] = None,
    jmeter_log: Annotated[
        str | None, Option("-j", "--jmeterlogfile", help="Ignored: weir writes its messages to standard error.")
    ] = None,
    log_levels: Annotated[list[str] | None, Option("-L", "--loglevel", help="Ignored: weir has no log levels.")] = None,
    dashboard: Annotated[
        bool,
        Option("-e", "--reportatendofloadtests", help="Write weir's HTML report to -o. Only for one thread group."),
    ] = False,
    dashboard_folder: Annotated[
        Path | None, Option("-o", "--reportoutputfolder", help="New folder for the report of -e.")
    ] = None,
    summary_report: Annotated[
        Path | None, Option("--summary-report", help="Write JMeter's summary report to this CSV file.")
    ] = None,
    aggregate_report: Annotated[
        Path | None, Option("--aggregate-report", help="Write JMeter's aggregate report to this CSV file.")
    ] = None,
) -> None:
    """Run a JMeter test plan, and print a report in JMeter's format.

    Standard output has JMeter's report. Standard error has weir's verdict and the differences from JMeter. The exit
    code is 0 after a complete run, even if requests failed.

    Example: weir jmeter -n -t plan.jmx -l samples.jtl -Jthreads=20
    """
    if (plan is None) == (testfile is None):
        raise UsageError("Non-GUI runs require a test plan: found " + ("none" if plan is None else "two"), hint=_HINT)
    if dashboard != (dashboard_folder is not None):
        raise UsageError("-e and -o FOLDER: found only one flag, expected both or neither", hint=_HINT)
    path = plan or testfile
    assert path is not None
    if not path.is_file():
        print(f"An error occurred: The file {path.absolute()} doesn't exist or can't be opened")
        raise typer.Exit(1)
    values: dict[str, str] = {}
    for file in [*([propfile] if propfile else []), *(property_files or [])]:
        values |= _read_properties(file)
    for text in [*(global_properties or []), *(properties or [])]:
        name, _, value = text.partition("=")
        values[name.strip()] = value
    if system_properties:
        say(f"weir: -D{system_properties[0]}: ignored: weir runs no Java")
    read = read_plan(path, values)
    outputs = _Outputs(logfile, not force_delete, summary_report, aggregate_report, dashboard_folder)
    if _run_plan(read, outputs):
        raise typer.Exit(ExitCode.INTERRUPTED)


def _read_properties(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}; expected a file of properties") from None
    pairs = (re.split(r"\s*[=:]\s*", line.strip(), maxsplit=1) for line in lines if not re.match(r"\s*([#!]|$)", line))
    return {name: value[0] if value else "" for name, *value in pairs}


@dataclass(frozen=True, slots=True)
class _Outputs:
    """Paths of the files that the user's flags request."""

    jtl: Path | None
    appends: bool
    """Whether weir adds rows to an existing JTL file."""
    summary_report: Path | None
    aggregate_report: Path | None
    dashboard: Path | None

    @property
    def sample_files(self) -> list[Path]:
        """Returns the paths of the files that weir makes from the log of all requests."""
        return [path for path in (self.jtl, self.summary_report, self.aggregate_report) if path is not None]


class _Console:
    """A printer of JMeter's summariser lines. Several threads call this object: each load has a thread."""

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


def _run_plan(plan: ExactPlan, outputs: _Outputs) -> bool:
    """Runs a test plan. Returns whether the user interrupted the run."""
    natives = {native.group.number: native for native in list_native_loads(plan)}
    if outputs.dashboard is not None and len(natives) > 1:
        raise UsageError(
            f"-e: found {len(natives)} thread groups, expected one: weir's report shows a single load",
            hint="run weir convert jmx, and add --out to each command line",
        )
    for path in outputs.sample_files:
        # weir checks the files now, because an error after the load would lose the samples.
        try:
            path.open("a").close()
        except OSError as error:
            raise UsageError(f"{path}: cannot be written: {error.strerror}") from None
    print("Creating summariser <summary>", flush=True)
    console = _Console()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="weir-jmeter-")))
        ran: list[tuple[_Group, LoadEnd]] = []
        interrupted = False
        for phase in plan.phases():
            loads = [(natives[group.number], folder / str(group.number)) for group in phase]
            groups = [_prepare_group(*load, outputs, stack, console) for load in loads]
            ran += zip(groups, _run(groups), strict=True)
            interrupted = any(end.stopped == "signal" for _, end in ran)
            if interrupted:
                break
        console.end()
        ran = [(group, judge_redirects(group.native, end, _read_log(group))) for group, end in ran]
        if outputs.sample_files:
            logs = [(one, _read_log(one)) for one, _ in ran]
            samples = collect_samples(
                [GroupLog(one.native, one.start_unix_ns, log) for one, log in logs if log is not None]
            )
            try:
                _write_files(samples, outputs)
            except OSError as error:
                name = error.filename or "a file of results"
                raise NotWrittenError(f"{name}: cannot be written: {error.strerror}") from None
        if outputs.dashboard is not None:
            _write_dashboard(*ran[0])
        print("... end of run", flush=True)
        for group, end in ran:
            _report_differences(group.native, end.summary, alone=len(ran) == 1)
    return interrupted


def _prepare_group(native: NativeLoad, folder: Path, outputs: _Outputs, stack: ExitStack, console: _Console) -> _Group:
    folder.mkdir()
    for name, content in native.files.items():
        (folder / name).write_text(content, encoding="utf-8")
    plan, recording = native.load_plan(folder), None
    if outputs.dashboard is not None:
        recording = stack.enter_context(LoadRecording(choose_file(str(outputs.dashboard)), plan, sys.argv[1:]))
    else:
        plan = replace(plan, interval_s=_INTERVAL_S)
    if outputs.sample_files or native.mixes_redirects:
        plan = replace(plan, request_log=str(folder / "requests"))
    return _Group(native, plan, recording, console)


def _read_log(group: _Group) -> Any:
    """Returns the request log of a thread group; None without a log."""
    return None if group.plan.request_log is None else read_requests(Path(group.plan.request_log))


def _run(groups: Sequence[_Group]) -> list[LoadEnd]:
    """Runs the loads of thread groups at the same time, and returns the results."""
    with ExitStack() as stack:
        loads = []
        for group in groups:
            observers = LoadObservers(group, group.recording.recorder if group.recording else None)
            loads.append(stack.enter_context(EngineLoad(group.plan, observers)))
        return [load.result_or_stop(*loads) for load in loads]


def _write_files(samples: Samples, outputs: _Outputs) -> None:
    if outputs.jtl is not None:
        with outputs.jtl.open("a" if outputs.appends else "w", newline="", encoding="utf-8") as file:
            write_jtl(samples, file, with_header=file.tell() == 0)
    rows = summarize_labels(samples)
    for path, columns in ((outputs.summary_report, SUMMARY_COLUMNS), (outputs.aggregate_report, AGGREGATE_COLUMNS)):
        if path is not None:
            path.write_text(write_report(columns, rows), encoding="utf-8")


def _write_dashboard(group: _Group, end: LoadEnd) -> None:
    # A late import: findings take long to import, and no other plan needs them.
    from weir.findings import of_run
    from weir.report import write_html
    from weir.store import RunReader

    assert group.recording is not None
    group.recording.finish(end, end.summary, None, interrupted=end.stopped == "signal")
    with RunReader(group.recording.path) as reader:
        write_html(reader, of_run(reader), group.recording.path.with_name("index.html"))


def _report_differences(native: NativeLoad, summary: LoadSummary, *, alone: bool) -> None:
    """Prints the verdict on a thread group, the differences from JMeter, and the same load's `weir load` command."""
    name = "" if alone else f"{native.group.name}: "
    lines = list(summary.verdict.lines)
    if summary.errors.reset or summary.errors.protocol:
        failed = f"a request that failed without a whole response ({', '.join(OUTCOMES[3:5])})"
        lines.append(f"the elapsed time of {failed} ends at the last known time")
    if unanswered := summary.requests.unanswered:
        lines.append(f"{unanswered} requests were in flight at the end of the load: the samples omit them")
    if native.plan.tls is not None:
        lines.append("weir trusts any certificate of the server, as JMeter does")
    lines.append(f"the same with weir load: {native.command} (weir convert jmx prints the scenario)")
    for line in lines:
        say(sanitize(f"weir: {name}{line}"))
