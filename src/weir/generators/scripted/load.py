"""Records the load of a tool with the user's own script: reads the tool's records until the tool ends."""

import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from weir.generators.handle import LoadHandle
from weir.generators.scripted.lines import Restarted, Started
from weir.generators.scripted.process import ToolProcess
from weir.generators.scripted.recording import Recording
from weir.generators.scripted.summary import summarize
from weir.generators.scripted.tools import PreparedTool, prepare_script
from weir.model.errors import GeneratorError
from weir.model.load import LONGEST_S, ClosedLoad, LoadPlan, Request
from weir.model.load_observer import LoadObserver
from weir.model.load_records import LoadEnd, LoadStarted

_ENDLESS_S = 86_400.0
"""Planned length of a load whose length weir does not know."""
_LONG_INTERVAL_S = 1.0
_END_S = 10.0


class Recorded(NamedTuple):
    """A recorded load."""

    plan: LoadPlan
    """The plan with the highest number of users."""
    start_ns: int
    """The start of the load by CLOCK_MONOTONIC."""
    end: LoadEnd


def record(
    process: ToolProcess,
    tool: PreparedTool,
    observe: Callable[[LoadPlan], LoadObserver],
    tell: Callable[[str], None] = lambda _: None,
) -> Recorded | None:
    """Records the tool's first test, and waits until the tool ends. Returns None if the tool started no test. `observe`
    receives the plan when the test starts, and returns the observer of the load. `tell` receives messages."""
    recording, observer = Recording(), LoadObserver()
    started: Started | None = None
    plan: LoadPlan | None = None
    has_restarted = False
    for number, line in process.lines():
        if isinstance(line, Started) and started is None:
            started, plan = line, build_plan(line)
            recording.begin(line.at_ns, plan.interval_s, measures_lag=line.measures_lag)
            observer = observe(plan)
            begun = LoadStarted(
                version=line.version,
                pid=line.pid,
                backend=tool.name,
                wait="",
                threads=line.processes,
                cpus=[],
                connected=0,
                start_monotonic_ns=line.at_ns,
                start_unix_ns=line.unix_ns,
            )
            observer.on_start(begun)
        elif isinstance(line, Restarted) and not has_restarted:
            has_restarted = True
            tell("weir: Locust has started another test: weir records only the first test")
        for interval in recording.take(number, line):
            observer.on_interval(interval)
    if started is None or plan is None:
        return None
    for interval in recording.finish():
        observer.on_interval(interval)
    if recording.users:
        plan = replace(plan, load=ClosedLoad(float(recording.users)))
    stopped = "complete" if recording.duration_s < plan.duration_s else "duration"
    end = summarize(
        recording,
        started,
        target=plan.title,
        stopped="signal" if process.is_interrupted else stopped,
        clock=tool.clock,
        pauses_s=tool.measure_pauses(started.at_ns, started.at_ns + round(recording.duration_s * 1e9)),
    )
    observer.on_end(end)
    return Recorded(plan, started.at_ns, end)


def build_plan(started: Started) -> LoadPlan:
    """Returns the plan of a test, as far as the tool reports the plan at the start of the test."""
    hosts, users = started.hosts or started.files, float(max(started.users, 1))
    ramp_s = users / started.spawn_rate
    has_ramp = ramp_s > 1 and not started.has_shape
    duration_s = min(started.run_time_s or _ENDLESS_S, LONGEST_S)
    requests = [{"name": name, "weight": weight} for name, weight in started.tasks]
    return LoadPlan(
        request=Request("GET", hosts[0]),
        targets=tuple(hosts) if len(hosts) > 1 else (),
        load=ClosedLoad(((0.0, 0.0), (ramp_s, users)) if has_ramp else users),
        duration_s=duration_s,
        # The clients in the script have their own timeouts, or no timeout.
        timeout_s=duration_s,
        interval_s=_LONG_INTERVAL_S if duration_s > 60 else 0.1,
        threads=started.processes,
        scenario={"script": ", ".join(started.files), "requests": requests},
    )


class ScriptedLoad(LoadHandle):
    """A running load of a tool with the script `plan.script`, on the CPUs `plan.cpus`. The load ends with the script,
    or after `plan.duration_s`. The tool writes to `folder`. Raises UsageError if the tool or a plugin is missing."""

    def __init__(self, tool: str, plan: LoadPlan, observer: LoadObserver | None = None, *, folder: Path) -> None:
        self._plan, self._log = plan, folder.resolve() / "output.txt"
        self._log.parent.mkdir(parents=True, exist_ok=True)
        self._resources = ExitStack()
        self._finished, self._is_stopped = threading.Event(), False
        self._end: LoadEnd | None = None
        self._failure: Exception | None = None
        try:
            own = self._resources.enter_context(TemporaryDirectory(prefix=f"weir-{tool}-"))
            prepared = prepare_script(tool, plan, self._log.parent, Path(own))
            output = self._resources.enter_context(self._log.open("wb"))
            process = ToolProcess(
                prepared.command,
                prepared.source,
                environment=prepared.environment,
                folder=self._log.parent,
                output=output,
                cpus=plan.cpus,
            )
            self._process = self._resources.enter_context(process)
        except BaseException:
            self._resources.close()
            raise
        self.pid = self._process.pid
        self._reader = threading.Thread(
            target=self._read, args=(prepared, observer or LoadObserver()), name=tool, daemon=True
        )
        self._reader.start()

    def stop(self) -> None:
        self._is_stopped = True
        self._process.stop()

    def result(self) -> LoadEnd:
        self._finished.wait()
        if self._failure is not None:
            raise self._failure
        assert self._end is not None
        return self._end

    def close(self) -> None:
        if not self._finished.is_set():
            self._process.stop()
            self._finished.wait(_END_S)
        self._resources.close()
        self._reader.join()

    def _read(self, tool: PreparedTool, observer: LoadObserver) -> None:
        deadline = threading.Timer(self._plan.duration_s, self._process.stop)
        deadline.daemon = True

        def observe(_: LoadPlan) -> LoadObserver:
            deadline.start()
            return observer

        try:
            found = record(self._process, tool, observe)
            if found is None:
                raise self._error(tool)
            stopped = "signal" if self._is_stopped else "duration" if self._process.is_interrupted else "complete"
            self._end = replace(found.end, stopped=stopped)
        except Exception as error:
            self._failure = error
        finally:
            deadline.cancel()
            self._finished.set()

    def _error(self, tool: PreparedTool) -> GeneratorError:
        problem = getattr(tool.source, "problem", "") or "the script sent no request"
        printed = select_error_lines(self._log.read_text(errors="replace"))
        found = f"{tool.name}: {problem}, exit code {self._process.exit_code}; the tool's output: {self._log}"
        return GeneratorError("\n  ".join([found, *printed]))


def select_error_lines(output: str) -> list[str]:
    """Returns the lines of a tool's output that best explain its failure: three lines from the first one with "error",
    or the last three. JMeter prints fifteen lines about its own classes after the reason."""
    lines = [line for line in output.splitlines() if line.strip()]
    first = next((number for number, line in enumerate(lines) if "error" in line.lower()), len(lines) - 3)
    return lines[max(0, first) :][:3]
