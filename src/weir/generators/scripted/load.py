"""Records the load of a tool with the user's own script: reads the tool's records until the tool ends."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from weir.generators.scripted.lines import Restarted, Started
from weir.generators.scripted.process import ToolProcess
from weir.generators.scripted.recording import Recording
from weir.generators.scripted.summary import summarize
from weir.generators.scripted.tools import PreparedTool
from weir.model.load import LONGEST_S, ClosedLoad, LoadPlan, Request
from weir.model.load_observer import LoadObserver
from weir.model.records import LoadEnd, LoadStarted

_ENDLESS_S = 86_400.0
"""Planned length of a load whose length weir does not know."""
_LONG_INTERVAL_S = 1.0


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
    """Records the tool's first test, and waits until the tool ends. Returns None if the tool started no test.

    `observe` receives the plan when the test starts, and returns the observer of the load. `tell` receives messages.
    """
    recording, observer = Recording(), LoadObserver()
    started: Started | None = None
    plan: LoadPlan | None = None
    has_restarted = False
    for number, line in process.lines():
        if isinstance(line, Started) and started is None:
            started, plan = line, build_plan(line)
            recording.begin(line.at_ns, plan.interval_s, measures_lag=line.measures_lag)
            observer = observe(plan)
            observer.on_start(
                LoadStarted(
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
            )
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
