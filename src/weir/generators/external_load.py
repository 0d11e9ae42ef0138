"""Runs a load with an external tool: starts, watches and ends the tool, and reads the tool's report. A host process
starts the tool, in namespaces if this machine allows namespaces. The host measures the tool's CPU time and memory, and
ends all processes of the tool, even if weir is killed."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from weir.generators.external_tool import Tool
from weir.generators.handle import LoadHandle
from weir.generators.normalize import build_load_end, compute_cpu_fraction
from weir.host import Ended, Host
from weir.model.errors import GeneratorError, NotWrittenError, TargetError, UsageError
from weir.model.load import LoadPlan
from weir.model.load_observer import LoadObserver
from weir.model.load_records import GeneratorUse, LoadEnd, LoadStarted
from weir.model.reported_result import ReportedResult

OUTPUT = "output.txt"
"""Name of the file with a tool's output, in the tool's folder."""
_NAME = "generator"
_END_GRACE_S = 15.0
"""Maximum time, in seconds, from the end of a load to the end of the tool's program."""
_LOOK_S = 0.05
"""Interval between two checks of the load's start and deadline, in seconds."""
_SHOWN_LINES = 3


class ExternalLoad(LoadHandle):
    """A running load of an external tool on the CPUs `plan.cpus`. The observer receives only `on_start`, on a separate
    thread. The tool's files are in `folder`, its output in `output.txt`. Raises UsageError if the tool is missing or
    does not support this load, GeneratorError if the tool cannot start, and NotWrittenError if the disk is full."""

    reported_result: ReportedResult
    """The tool's report, with the rounding of each figure. Available after `result` has returned."""

    def __init__(self, tool: Tool, plan: LoadPlan, observer: LoadObserver | None = None, *, folder: Path) -> None:
        self._tool, self._plan, self._observer = tool, plan, observer or LoadObserver()
        self._log = folder.resolve() / OUTPUT
        program = tool.require()
        reason = tool.unsupported_reason(plan)
        if reason is not None:
            raise UsageError(f"generator = {tool.name!r}: {reason}")
        try:
            self._log.parent.mkdir(parents=True, exist_ok=True)
            self._log.write_bytes(b"")
            arguments = tool.build_arguments(plan, self._log.parent)
        except OSError as error:
            message = f"{error.filename}: cannot be written: {error.strerror}"
            raise NotWrittenError(message, hint="check the space left on the disk") from None
        self._version = tool.version()
        self._end: LoadEnd | None = None
        self._failure: Exception | None = None
        self._stopped = False
        self._deadline_s = time.monotonic() + tool.start_up_s + plan.duration_s + plan.timeout_s + _END_GRACE_S
        self._finished = threading.Event()
        self._host = Host()
        try:
            self._started_ns = time.monotonic_ns()
            environment = {**tool.build_environment(plan), "HOME": str(self._log.parent)}
            command, folder = [str(program), *arguments], self._log.parent
            started = self._host.start(
                _NAME, command, tier=_NAME, cwd=folder, env=environment, log=self._log, cpus=plan.cpus
            )
        except TargetError as error:
            self._host.close()
            raise GeneratorError(f"{tool.name}: {program}: {error.message}", hint=error.hint) from None
        self.pid = started.pid
        self._watcher = threading.Thread(target=self._watch, name=tool.name, daemon=True)
        self._watcher.start()

    def stop(self) -> None:
        """Ends the load early. `result` then returns the tool's report of the requests so far."""
        if self._finished.is_set() or self._stopped:
            return
        self._stopped = True
        self._deadline_s = time.monotonic() + _END_GRACE_S
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGINT)

    def result(self) -> LoadEnd:
        """Waits for the end of the load, and returns the tool's report. A figure that is missing in the report is None,
        empty or 0. Raises GeneratorError if the tool failed, did not end, or wrote an unreadable report."""
        self._finished.wait()
        if self._failure is not None:
            raise self._failure
        assert self._end is not None
        return self._end

    def close(self) -> None:
        self._host.close()
        self._watcher.join()

    def _watch(self) -> None:
        try:
            begun_ns, spent_s = self._await_beginning()
            ended = self._await_end()
            load_s = (time.monotonic_ns() - begun_ns) / 1e9
            cpu_s = ended.cpu_user_s + ended.cpu_system_s - spent_s
            threads, cpus = self._tool.count_threads(self._plan), len(self._plan.cpus) or os.cpu_count() or 1
            generator = GeneratorUse(
                version=self._version,
                cpu_fraction=compute_cpu_fraction(cpu_s, load_s, threads, cpus),
                peak_rss_bytes=ended.peak_rss_bytes,
                threads=threads,
                cpus=list(self._plan.cpus),
                clock=self._tool.clock,
            )
            stopped = "signal" if self._stopped else "duration" if self._plan.requests is None else "complete"
            self.reported_result = self._read_report()
            self._end = build_load_end(self._plan, self.reported_result, generator, load_s=load_s, stopped=stopped)
        except Exception as error:
            self._failure = error
        finally:
            self._finished.set()

    def _await_beginning(self) -> tuple[int, float]:
        """Waits for the load's start. Returns the start time, and the program's CPU time before the start. Without a
        start marker, the load starts with the program."""
        begun_ns, spent_s, start_marker = self._started_ns, 0.0, self._tool.start_marker.encode()
        for _ in self._while_it_runs() if start_marker else ():
            if start_marker in self._log.read_bytes():
                begun_ns = time.monotonic_ns()
                spent_s = _cpu_s(self.pid)
                break
        started_unix_ns = time.time_ns() - (time.monotonic_ns() - begun_ns)
        threads, cpus = self._tool.count_threads(self._plan), list(self._plan.cpus)
        started = LoadStarted(
            version=self._version,
            pid=self.pid,
            backend=self._tool.name,
            wait="",
            threads=threads,
            cpus=cpus,
            connected=0,
            start_monotonic_ns=begun_ns,
            start_unix_ns=started_unix_ns,
        )
        self._observer.on_start(started)
        return begun_ns, spent_s

    def _await_end(self) -> Ended:
        """Waits for the program's end, and returns the exit status and the resource usage. Raises GeneratorError if the
        program failed, or if weir had to kill it."""
        for _ in self._while_it_runs():
            pass
        ended = self._host.ended(_NAME)
        if ended is None:
            self._host.stop(_NAME, grace_s=0.0)
            hung = f"the program did not end after a load of {self._plan.duration_s:g} s"
            raise self._error(f"{'the program ignored the stop signal' if self._stopped else hung}, and weir killed it")
        if not self._stopped and ended.exit_code != 0:
            raise self._error(f"the program ended {ended.how}")
        return ended

    def _while_it_runs(self) -> Iterator[None]:
        """Yields at short intervals until the program has ended or the deadline has passed."""
        while time.monotonic() < self._deadline_s and self._host.wait_ended(_NAME, _LOOK_S) is None:
            yield

    def _read_report(self) -> ReportedResult:
        try:
            return self._tool.read(self._log.read_text(errors="replace"), self._log.parent)
        except (ValueError, LookupError, TypeError, AttributeError, OSError) as error:
            stopped = "weir stopped the program; " if self._stopped else ""
            why = f"{error} is missing" if isinstance(error, KeyError) else f"{error}"
            raise self._error(f"{stopped}weir cannot read the tool's report: {why}") from None

    def _error(self, problem: str) -> GeneratorError:
        printed = self._log.read_text(errors="replace").strip().splitlines()[-_SHOWN_LINES:]
        return GeneratorError("\n  ".join([f"{self._tool.name}: {problem}; the tool's output: {self._log}", *printed]))


def _cpu_s(process_group: int) -> float:
    """Returns the CPU time of a process group so far, including ended child processes, in seconds. Reads /proc: on a
    busy machine, the host's reports come too late."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        # A process may end during this loop.
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[2]) == process_group:
                ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")
