"""Runs the thread groups of a test plan, prints JMeter's lines meanwhile, and writes JMeter's files."""

import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from weir.cli.load_recording import LoadRecording, choose_file
from weir.cli.output import say
from weir.compat.jmx.native import NativeLoad, list_native_loads
from weir.compat.jmx.samples import GroupLog, Samples, collect_samples
from weir.compat.jmx.summariser import Summariser
from weir.compat.jmx.tables import AGGREGATE_COLUMNS, SUMMARY_COLUMNS, summarize_labels, write_jtl, write_report
from weir.compat.jmx.test_plan import TestPlan
from weir.generators.engine import EngineLoad
from weir.model.errors import NotWrittenError, UsageError
from weir.model.load import LoadPlan
from weir.model.load_observer import LoadObserver, LoadObservers
from weir.model.records import Interval, LoadEnd, LoadStarted, LoadSummary
from weir.model.request_log import OUTCOMES, read_requests
from weir.model.sanitize import sanitize

_INTERVAL_S = 1.0


@dataclass(frozen=True, slots=True)
class Outputs:
    """The files to write."""

    jtl: Path | None
    appends: bool
    """Whether rows are added to an existing JTL file."""
    summary_report: Path | None
    aggregate_report: Path | None
    dashboard: Path | None

    @property
    def sample_files(self) -> list[Path]:
        """The files that need the log of all requests."""
        return [path for path in (self.jtl, self.summary_report, self.aggregate_report) if path is not None]


class _Console:
    """Prints the summariser's lines. Intervals come from several loads, each on a thread of its own."""

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


def run_plan(plan: TestPlan, outputs: Outputs, arguments: Sequence[str]) -> bool:
    """Runs a test plan. Returns whether it was interrupted. `arguments` follow `weir` on the command line.

    Raises:
        UsageError: a file cannot be written, or the engine refuses the plan.
        TargetError: a server cannot be reached, or the engine died.
    """
    natives = {native.group.number: native for native in list_native_loads(plan)}
    if outputs.dashboard is not None and len(natives) > 1:
        raise UsageError(
            f"-e: found {len(natives)} thread groups, expected one: weir's report is of one load",
            hint="weir load --out, with the command lines that weir convert jmx prints",
        )
    for path in outputs.sample_files:
        # Now, and not after the load.
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
            groups = [
                _prepare_group(natives[group.number], folder / str(group.number), outputs, arguments, stack, console)
                for group in phase
            ]
            ran += zip(groups, _run(groups), strict=True)
            interrupted = any(end.stopped == "signal" for _, end in ran)
            if interrupted:
                break
        console.end()
        if outputs.sample_files:
            logs = [(one, read_requests(Path(one.plan.request_log or ""))) for one, _ in ran]
            samples = collect_samples([GroupLog(one.native, one.start_unix_ns, log) for one, log in logs])
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


def _prepare_group(
    native: NativeLoad, folder: Path, outputs: Outputs, arguments: Sequence[str], stack: ExitStack, console: _Console
) -> _Group:
    folder.mkdir()
    for name, content in native.files.items():
        (folder / name).write_text(content, encoding="utf-8")
    plan, recording = native.load_plan(folder), None
    if outputs.dashboard is not None:
        recording = stack.enter_context(LoadRecording(choose_file(str(outputs.dashboard)), plan, arguments))
    else:
        plan = replace(plan, interval_s=_INTERVAL_S)
    if outputs.sample_files:
        plan = replace(plan, request_log=str(folder / "requests"))
    return _Group(native, plan, recording, console)


def _run(groups: Sequence[_Group]) -> list[LoadEnd]:
    """Runs thread groups at the same time."""
    with ExitStack() as stack:
        loads = []
        for group in groups:
            observers = LoadObservers(group, group.recording.recorder if group.recording else None)
            loads.append(stack.enter_context(EngineLoad(group.plan, observers)))
        return [load.result_or_stop(*loads) for load in loads]


def _write_files(samples: Samples, outputs: Outputs) -> None:
    if outputs.jtl is not None:
        with outputs.jtl.open("a" if outputs.appends else "w", newline="", encoding="utf-8") as file:
            write_jtl(samples, file, with_header=file.tell() == 0)
    rows = summarize_labels(samples)
    for path, columns in ((outputs.summary_report, SUMMARY_COLUMNS), (outputs.aggregate_report, AGGREGATE_COLUMNS)):
        if path is not None:
            path.write_text(write_report(columns, rows), encoding="utf-8")


def _write_dashboard(group: _Group, end: LoadEnd) -> None:
    # Here and not above: findings take as long to import as all else, which no other plan needs.
    from weir.findings import of_run
    from weir.report import write_html
    from weir.store import RunReader

    assert group.recording is not None
    group.recording.finish(end, end.summary, None, interrupted=end.stopped == "signal")
    with RunReader(group.recording.path) as reader:
        write_html(reader, of_run(reader), group.recording.path.with_name("index.html"))


def _report_differences(native: NativeLoad, summary: LoadSummary, *, alone: bool) -> None:
    """Prints the verdict on a thread group, the differences from JMeter, and the native command."""
    name = "" if alone else f"{native.group.name}: "
    lines = list(summary.verdict.lines)
    if redirects := sum(count for status, count in summary.status.items() if status.startswith("3")):
        lines.append(f"{redirects} answers are redirects, which JMeter would have followed")
    if summary.errors.reset or summary.errors.protocol:
        failed = f"a request that failed without a whole answer ({', '.join(OUTCOMES[3:5])})"
        lines.append(f"the elapsed time of {failed} ends with what is known of it")
    if unanswered := summary.requests.unanswered:
        lines.append(f"{unanswered} requests were in flight when the load was stopped: they are no samples")
    if native.plan.tls is not None:
        lines.append("any certificate of the server is trusted, as JMeter does")
    lines.append(f"the same natively: {native.command} (weir convert jmx prints the scenario)")
    for line in lines:
        say(sanitize(f"weir: {name}{line}"))
