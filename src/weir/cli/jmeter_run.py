"""Runs the thread groups of a test plan, prints what JMeter prints meanwhile, and writes JMeter's files."""

import math
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from weir.cli.load_file import KeptLoad, file_of
from weir.cli.output import say
from weir.compat.jmx.jtl import write_jtl
from weir.compat.jmx.native import Native, native_of
from weir.compat.jmx.plan import TestPlan
from weir.compat.jmx.samples import Ran, Samples, samples_of
from weir.compat.jmx.summariser import Summariser, Threads, moment_text
from weir.compat.jmx.tables import aggregate_report, rows_of, summary_report
from weir.generators.engine import EngineLoad, LoadListener
from weir.model.errors import NotWrittenError, UsageError
from weir.model.load import LoadPlan, value_at
from weir.model.records import Interval, LoadEnd, LoadStarted
from weir.model.request_log import OUTCOMES, read_requests
from weir.model.text import printable

_INTERVAL_S = 1.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """The files that are to be written."""

    jtl: Path | None
    appends: bool
    """Whether rows are added to a JTL file that is there."""
    summary_report: Path | None
    aggregate_report: Path | None
    dashboard: Path | None

    @property
    def needs_requests(self) -> bool:
        """Whether every request is needed."""
        return any(path is not None for path in (self.jtl, self.summary_report, self.aggregate_report))


@dataclass(slots=True, eq=False)
class _Group:
    """One thread group."""

    native: Native
    plan: LoadPlan
    folder: Path
    kept: KeptLoad | None
    started: LoadStarted | None = None
    last: Interval | None = None
    end: LoadEnd | None = None

    @property
    def log(self) -> Path:
        return self.folder / "requests"

    @property
    def threads(self) -> Threads | None:
        """How many there are at the end of the last interval; not known of a group with timers, since who waits asks for nothing."""
        if any(sampler.delay.longest_s for sampler in self.native.group.samplers):
            return None
        if self.last is None:
            return Threads(0, 0)
        started = math.ceil(value_at(self.native.users, self.last.end_s))
        return Threads(started, 0 if self.end is not None else min(started, self.last.in_flight))


def run_plan(plan: TestPlan, wanted: Wanted, arguments: Sequence[str]) -> bool:
    """Runs a test plan; gives whether it was interrupted.

    Args:
        plan: what to run.
        wanted: the files to write.
        arguments: the command line behind `weir`, to be kept with a load.

    Raises:
        UsageError: a file cannot be written, or the engine does not take what is in the plan.
        TargetError: a server cannot be reached, or the engine died.
    """
    natives = {native.group.number: native for native in native_of(plan)}
    if wanted.dashboard is not None and len(natives) > 1:
        raise UsageError(
            f"-e: found {len(natives)} thread groups, expected one: weir's report is of one load",
            hint="weir load --out, with the command lines that weir convert jmx prints",
        )
    _refuse_unwritable(wanted)
    print("Creating summariser <summary>")
    print(f"Created the tree successfully using {plan.path}")
    print(f"Starting standalone test @ {moment_text(time.time())}", flush=True)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="weir-jmeter-")))
        console = _Console()
        ran: list[_Group] = []
        interrupted = False
        for phase in plan.phases():
            groups = [_group(natives[group.number], folder / str(group.number), wanted, arguments, stack) for group in phase]
            interrupted = _run(groups, console)
            ran += groups
            if interrupted:
                break
        for line in console.end():
            print(line)
        print(f"Tidying up ...    @ {moment_text(time.time())}")
        if wanted.needs_requests:
            samples = samples_of([_read(group) for group in ran])
            try:
                _write_files(samples, wanted)
            except OSError as error:
                raise NotWrittenError(f"{error.filename or 'a file of results'}: cannot be written: {error.strerror}") from None
        if wanted.dashboard is not None:
            _write_dashboard(ran[0], interrupted=interrupted)
        print("... end of run", flush=True)
        for group in ran:
            _say_what_differs(group, alone=len(ran) == 1)
    return interrupted


class _Console:
    """Prints the summariser's lines. Intervals come from several loads, each on a thread of its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._groups: list[_Group] = []
        self._summariser: Summariser | None = None
        self._last_unix_s = 0.0

    def take(self, group: _Group, interval: Interval) -> None:
        assert group.started is not None
        began_unix_s = group.started.start_unix_ns / 1e9
        with self._lock:
            group.last = interval
            if group not in self._groups:
                self._groups.append(group)
            if self._summariser is None:
                self._summariser = Summariser(began_unix_s + group.native.begins_s)
            self._last_unix_s = max(self._last_unix_s, began_unix_s + interval.end_s)
            for line in self._summariser.take(interval, self._last_unix_s, self._threads()):
                print(line, flush=True)

    def end(self) -> list[str]:
        return [] if self._summariser is None else self._summariser.end(self._last_unix_s, self._threads())

    def _threads(self) -> Threads | None:
        known = [threads for group in self._groups if (threads := group.threads) is not None]
        if len(known) < len(self._groups):
            return None
        return Threads(sum(threads.started for threads in known), sum(threads.active for threads in known))


def _group(native: Native, folder: Path, wanted: Wanted, arguments: Sequence[str], stack: ExitStack) -> _Group:
    folder.mkdir()
    for name, content in native.files.items():
        (folder / name).write_text(content, encoding="utf-8")
    plan = native.load_plan(folder)
    if wanted.dashboard is not None:
        kept = stack.enter_context(KeptLoad(file_of(str(wanted.dashboard)), plan, arguments))
    else:
        kept, plan = None, replace(plan, interval_s=_INTERVAL_S)
    group = _Group(native, plan, folder, kept)
    return replace(group, plan=replace(plan, request_log=str(group.log))) if wanted.needs_requests else group


def _run(groups: Sequence[_Group], console: _Console) -> bool:
    """Runs thread groups at the same time."""
    with ExitStack() as stack:
        running = [stack.enter_context(EngineLoad(group.plan, _listener(group, console))) for group in groups]
        stopped = False
        for group, load in zip(groups, running, strict=True):
            try:
                group.end = load.result()
            except KeyboardInterrupt:
                stopped = True
                for other in running:
                    other.stop()
                group.end = load.result()
    return stopped or any(group.end is not None and group.end.stopped == "signal" for group in groups)


def _listener(group: _Group, console: _Console) -> LoadListener:
    def start(record: LoadStarted) -> None:
        group.started = record
        if group.kept is not None:
            group.kept.start(record)

    def take(interval: Interval) -> None:
        console.take(group, interval)
        if group.kept is not None:
            group.kept.recorder.take_interval(interval)

    return LoadListener(on_start=start, on_interval=take)


def _read(group: _Group) -> Ran:
    assert group.started is not None
    return Ran(group.native, group.started.start_unix_ns, read_requests(group.log))


def _refuse_unwritable(wanted: Wanted) -> None:
    """What cannot be written is said before the load, not after it."""
    for path in (wanted.jtl, wanted.summary_report, wanted.aggregate_report):
        if path is None:
            continue
        try:
            path.open("a").close()
        except OSError as error:
            raise UsageError(f"{path}: cannot be written: {error.strerror}") from None


def _write_files(samples: Samples, wanted: Wanted) -> None:
    if wanted.jtl is not None:
        with wanted.jtl.open("a" if wanted.appends else "w", newline="", encoding="utf-8") as file:
            write_jtl(samples, file, with_header=file.tell() == 0)
    rows = rows_of(samples)
    if wanted.summary_report is not None:
        wanted.summary_report.write_text(summary_report(rows), encoding="utf-8")
    if wanted.aggregate_report is not None:
        wanted.aggregate_report.write_text(aggregate_report(rows), encoding="utf-8")


def _write_dashboard(group: _Group, *, interrupted: bool) -> None:
    # Here and not above: findings take as long to import as all else, which no other plan needs.
    from weir.findings import of_load
    from weir.report import write_load_html
    from weir.store import RunReader

    assert group.kept is not None
    assert group.end is not None
    group.kept.finish(group.end, group.end.summary, None, interrupted=interrupted)
    with RunReader(group.kept.path) as reader:
        write_load_html(reader, of_load(reader), group.kept.path.with_name("index.html"))


def _say_what_differs(group: _Group, *, alone: bool) -> None:
    """The verdict on one thread group, what JMeter would have done otherwise, and the native way."""
    assert group.end is not None
    summary, native = group.end.summary, group.native
    name = "" if alone else f"{native.group.name}: "
    lines = list(summary.verdict.lines)
    redirects = sum(count for status, count in summary.status.items() if 300 <= int(status) < 400)
    if redirects:
        lines.append(f"{redirects} answers are redirects, which JMeter would have followed")
    if summary.errors.reset or summary.errors.protocol:
        lines.append(
            f"the elapsed time of a request that failed without a whole answer ({', '.join(OUTCOMES[3:5])}) ends with what is known of it"
        )
    if summary.requests.unanswered:
        lines.append(f"{summary.requests.unanswered} requests were in flight when the load was stopped: they are no samples")
    if native.plan.tls is not None:
        lines.append("any certificate of the server is trusted, as JMeter does")
    lines.append(f"the same natively: {native.command} (weir convert jmx prints the scenario)")
    for line in lines:
        say(printable(f"weir: {name}{line}"))
