"""Generates one load with several agents: splits the plan, starts all agents simultaneously and merges their records.

The engine of each agent has some of the load's threads (`LoadPlan.part`), opens its connections and reports that it is
ready. Then all engines get the same start time, converted to their own clocks. So intervals with the same index cover
the same time, and weir can add their histograms.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path

from weir.cluster.agent import HELD_S, get_machine_id
from weir.cluster.agents import CHECK_HINT, LOST_S, AgentHandle, AgentLostError, RemoteEngine, StallGuard
from weir.cluster.merge import IntervalMerger, add_reason, merge_ends
from weir.generators.engine import EngineLoad
from weir.generators.handle import LoadHandle
from weir.model.errors import GeneratorError, NoAgentLeftError, UsageError, WeirError
from weir.model.load import LoadPlan
from weir.model.load_observer import LoadObserver
from weir.model.load_records import (
    FEWER_AGENTS,
    LATE_AGENT,
    LOST_AGENT,
    AgentSummary,
    Interval,
    LoadEnd,
    LoadEvent,
    LoadReady,
    LoadStarted,
)

_AHEAD_NS = 100_000_000
"""Time between the sending of the start time to the agents and the start, in addition to the longest round trip."""
_READY_WITHIN_S = 60.0
_LATE_MS = 5.0
"""Maximum delay of an agent's start. After a longer delay, agents' intervals no longer match in time."""
_LOOK_EVERY_S = 0.1
_READINGS = 10
"""Number of readings of an agent's clock before each load."""
_ENDS_WITHIN_S = 5.0


@dataclass(slots=True)
class _Share(LoadObserver):
    """One agent's part of a load. The part passes the agent's records to the whole load."""

    whole: "SharedLoad"
    agent: AgentHandle
    plan: LoadPlan
    load: EngineLoad = field(init=False)
    engine: RemoteEngine = field(init=False)
    ready: LoadReady | None = None
    started: LoadStarted | None = None
    requested_ns: int = 0
    """Requested start of the agent, by the agent's clock."""
    end: LoadEnd | None = None

    def start_engine(self, arguments: Sequence[str], **callbacks: Callable[..., None]) -> RemoteEngine:
        """Starts the agent's engine, with the signature of `weir.engine_process.StartEngine`."""
        self.engine = self.agent.start_engine(arguments, **callbacks)
        return self.engine

    @property
    def began_late_us(self) -> float:
        return 0.0 if self.started is None else (self.started.start_monotonic_ns - self.requested_ns) / 1e3

    def result(self) -> LoadEnd:
        """Waits for the end of this part and returns the end record. Errors contain the agent's name."""
        try:
            return self.load.result()
        except AgentLostError:
            raise
        except WeirError as error:
            raise type(error)(f"{self.agent.name}: {error.message}", hint=error.hint) from None

    def summarize(self, end: LoadEnd) -> AgentSummary:
        figures = ("requests", "throughput_rps", "response_time_us", "generator")
        return AgentSummary(
            name=self.agent.name,
            **{name: getattr(end.summary, name) for name in figures},
            clock_offset_us=self.agent.clock.offset_ns / 1e3,
            clock_error_us=self.agent.clock.error_ns / 1e3,
            began_late_us=self.began_late_us,
        )

    def on_ready(self, ready: LoadReady) -> None:
        with self.whole.changed:
            self.ready = ready
            self.whole.changed.notify_all()

    def on_start(self, started: LoadStarted) -> None:
        with self.whole.changed:
            self.started = started
            self.whole.changed.notify_all()

    def on_interval(self, interval: Interval) -> None:
        self.whole.on_agent_interval(self, interval)

    def on_event(self, event: LoadEvent) -> None:
        self.whole.on_agent_event(self, event)


class SharedLoad(LoadHandle):
    """A running load by several agents.

    An agent that is already lost gets no part. A later loss ends the load; `result` then reports the other agents'
    measurement, with an invalid verdict.

    `plan`: the whole load, with intervals of at most one second; with longer intervals, agents would seem lost.
    `observer` receives the merged records, one call at a time. `threads`: number of each agent's load threads, which
    determines the agent's share; None: `plan.threads`.

    Raises UsageError if the load cannot be split or an engine rejected its plan, TargetError if an agent could not reach
    the target, GeneratorError if an agent failed before the start, and NoAgentLeftError if all agents are lost.
    """

    def __init__(
        self,
        agents: Sequence[AgentHandle],
        plan: LoadPlan,
        observer: LoadObserver | None = None,
        threads: Sequence[int] | None = None,
    ) -> None:
        self._missing = [agent.error().message for agent in agents if agent.lost is not None]
        threads = threads or [plan.threads] * len(agents)
        left = {agent: own for agent, own in zip(agents, threads, strict=True) if agent.lost is None}
        if not left:
            raise NoAgentLeftError("all agents are lost", hint=CHECK_HINT)
        self._observer = observer or LoadObserver()
        self.changed = threading.Condition()
        """Lock of this object. Each record wakes `_await`, which waits for the agents' records before the load."""
        self._merger = IntervalMerger(agent.name for agent in left)
        self._stopped_at: float | None = None
        self._failure: BaseException | None = None
        self._lost: list[str] = []
        self._begun, self._finished = threading.Event(), threading.Event()
        """Whether the observer has received the start, and whether all agents' parts have ended."""
        self._opened = ExitStack()
        self._shares = [_Share(self, agent, part) for agent, part in split_plan(plan, left).items()]
        self._interval_s = plan.interval_s
        try:
            for share in self._shares:
                share.plan = _with_files(share.plan, share.agent)
            for share in self._shares:
                share.load = self._opened.enter_context(EngineLoad(share.plan, share, start=share.start_engine))
            for share in self._shares:
                # Clocks drift apart, so weir reads them for every load.
                share.agent.read_clock(_READINGS)
            self._begin()
        except BaseException:
            # After this error, no caller will wait for the load.
            self._begun.set()
            self._opened.close()
            raise
        self._going_on = len(self._shares)
        for share in self._shares:
            name = f"end of {share.agent.name}"
            threading.Thread(target=self._wait_for, args=(share,), name=name, daemon=True).start()
        threading.Thread(target=self._watch, name="agents' intervals", daemon=True).start()

    def stop(self) -> None:
        self._stopped_at = self._stopped_at or time.monotonic()
        for share in self._shares:
            share.load.stop()

    def result(self) -> LoadEnd:
        """Waits for the end of the load and returns the merged result. Raises GeneratorError if an agent's generator
        failed, or if all agents are lost."""
        self._finished.wait()
        if self._failure is not None:
            raise self._failure
        ended = [(share, share.end) for share in self._shares if share.end is not None]
        if not ended:
            raise AgentLostError("; ".join(self._lost), hint=CHECK_HINT)
        parts = {share.agent.name: end for share, end in ended}
        found = merge_ends(parts, [share.summarize(end) for share, end in ended])
        verdict = found.summary.verdict
        for share in self._shares:
            if (late_ms := share.began_late_us / 1e3) > _LATE_MS:
                late = f"{share.agent.name} began {late_ms:.1f} ms late, and its intervals do not match the others"
                verdict = add_reason(verdict, "suspect", LATE_AGENT, f"{late} (limit {_LATE_MS:g} ms)")
        for why in self._missing:
            made = f"the other agents ({len(self._shares)}) generated this load"
            verdict = add_reason(verdict, "suspect", FEWER_AGENTS, f"{why}: {made}")
        for why in self._lost:
            verdict = add_reason(verdict, "invalid", LOST_AGENT, f"{why}: the figures lack the requests of this agent")
        summary = replace(found.summary, verdict=verdict)
        return replace(found, stopped=LOST_AGENT if self._lost else found.stopped, summary=summary)

    def close(self) -> None:
        self._opened.close()

    # --- Before the load

    def on_agent_interval(self, share: _Share, interval: Interval) -> None:
        """Merges an agent's interval, and passes complete intervals to the observer."""
        self._begun.wait()
        with self.changed:
            self._pass_on(self._merger.take(share.agent.name, interval))

    def on_agent_event(self, share: _Share, event: LoadEvent) -> None:
        self._begun.wait()
        with self.changed:
            self._observer.on_event(replace(event, detail=f"{share.agent.name}: {event.detail}"))

    def _begin(self) -> None:
        """Waits until all agents are ready, sends the start time, and waits until all agents have started."""
        self._await("ready")
        ready = [(share.agent.clock, share.ready) for share in self._shares if share.ready is not None]
        soonest = [clock.ours(record.soonest_monotonic_ns) for clock, record in ready]
        farthest_ns = max(share.agent.clock.round_trip_ns for share in self._shares)
        start_ns = max(time.monotonic_ns(), *soonest) + _AHEAD_NS + farthest_ns

        def send_start(share: _Share) -> None:
            share.requested_ns = share.agent.clock.theirs(start_ns)
            share.load.begin(share.requested_ns)

        # In parallel: each call waits for a reply, and in sequence the last agent would get the start time too late.
        with ThreadPoolExecutor(len(self._shares), "begin") as sending:
            list(sending.map(send_start, self._shares))
        self._await("started")
        hellos = [share.started for share in self._shares if share.started is not None]
        sums = {name: sum(getattr(hello, name) for hello in hellos) for name in ("threads", "connected")}
        begin = {"start_monotonic_ns": start_ns, "start_unix_ns": time.time_ns() + start_ns - time.monotonic_ns()}
        self._observer.on_start(replace(hellos[0], **{**sums, **begin, "cpus": []}))
        self._begun.set()

    def _await(self, what: str) -> None:
        """Waits until every agent has sent the record `what`. Raises GeneratorError if that takes too long."""
        until = time.monotonic() + _READY_WITHIN_S
        with self.changed:
            while missing := [share for share in self._shares if getattr(share, what) is None]:
                for share in missing:
                    if share.load.wait(0):
                        # The agent's part ended early. `result` raises the reason.
                        share.result()
                        raise GeneratorError(f"{share.agent.name}: the engine ended before the start of the load")
                if time.monotonic() > until:
                    raise GeneratorError(f"{missing[0].agent.name}: engine not {what} within {_READY_WITHIN_S:g} s")
                self.changed.wait(_LOOK_EVERY_S)

    # --- Under the load

    def _pass_on(self, merged: Sequence[Interval]) -> None:
        for interval in merged:
            self._observer.on_interval(interval)

    def _wait_for(self, share: _Share) -> None:
        """Waits, on a separate thread, for the end of an agent's part."""
        try:
            share.end = share.result()
        except AgentLostError as error:
            with self.changed:
                self._lost.append(error.message)
            # Without this agent, the load is not the requested load.
            self.stop()
        except BaseException as error:
            with self.changed:
                self._failure = self._failure or error
            self.stop()
        with self.changed:
            try:
                self._pass_on(self._merger.ended(share.agent.name))
            except BaseException as error:
                self._failure = self._failure or error
            self._going_on -= 1
            if not self._going_on:
                self._finished.set()

    def _watch(self) -> None:
        """Marks an agent as lost if it sends no intervals during the load, or if it does not end after `stop`."""
        # Lines may arrive HELD_S late, and the next check would be too late.
        silent_s = min(LOST_S - HELD_S + self._interval_s, LOST_S - 2 * _LOOK_EVERY_S)
        guard = StallGuard(time.monotonic())
        while not self._finished.wait(_LOOK_EVERY_S):
            now, stopped_at = time.monotonic(), self._stopped_at
            resumed_at = guard.look(now)
            for share in self._shares:
                if share.engine.has_ended or share.agent.lost is not None:
                    continue
                heard_at = max(share.engine.heard_at, resumed_at)
                silence_s = now - heard_at
                if stopped_at is None and silence_s > silent_s:
                    share.agent.lose(f"no interval for {silence_s:.1f} s")
                elif stopped_at is not None and now - max(stopped_at, heard_at) > _ENDS_WITHIN_S:
                    share.agent.lose(f"it did not end within {_ENDS_WITHIN_S:g} s")


def split_plan(plan: LoadPlan, threads: Mapping[AgentHandle, int]) -> dict[AgentHandle, LoadPlan]:
    """Returns each agent's part of `plan`, by its number of load threads. Raises UsageError if no split is possible."""
    firsts, of = accumulate(threads.values(), initial=0), sum(threads.values())
    if plan.until_first_failure and len(threads) > 1:
        late = "the other agents would learn of the failure too late"
        raise UsageError(f"--until-failure: found several agents, expected one: {late}")
    if plan.request_log is not None:
        raise UsageError("request log: found together with agents, expected a load from this machine")
    if of > plan.load.connections:
        found = f"found {plan.load.connections} connections for {of} load threads of all agents"
        raise UsageError(f"{found}, expected at least one connection for each thread")
    return {
        agent: replace(plan, threads=threads[agent], cpus=cpus, part=(first, of), held=True)
        for first, (agent, cpus) in zip(firsts, assign_cpus(plan.cpus, threads).items(), strict=False)
    }


def assign_cpus(cpus: Sequence[int], threads: Mapping[AgentHandle, int]) -> dict[AgentHandle, tuple[int, ...]]:
    """Returns the CPUs of each agent, one per load thread. An agent on this machine gets CPUs from `cpus`, an agent on
    another machine any CPUs there. If `cpus` is empty or an agent lacks CPUs, no agent gets own CPUs: an engine with
    own CPUs gets more responses from a saturated server, so weir must not mix both kinds."""
    if not cpus:
        return dict.fromkeys(threads, ())
    used: dict[str, set[int]] = {}
    bound = {}
    for agent, own in threads.items():
        where, able = agent.facts["machine"], agent.facts["cpus"]
        taken = used.setdefault(where, set())
        free = [cpu for cpu in (cpus if where == get_machine_id() else able) if cpu in able and cpu not in taken]
        if len(free) < own:
            return dict.fromkeys(threads, ())
        taken.update(free[:own])
        bound[agent] = tuple(free[:own])
    return bound


def _with_files(plan: LoadPlan, agent: AgentHandle) -> LoadPlan:
    """Sends the plan's files to the agent. Returns the plan with the files' paths on the agent's node."""

    def there(path: str | None) -> str | None:
        if path is None:
            return None
        try:
            return agent.send_file(Path(path))
        except OSError as error:
            raise UsageError(f"{path}: cannot be read: {error.strerror}") from None

    if plan.tls is not None:
        tls = plan.tls
        plan = replace(plan, tls=replace(tls, ca=there(tls.ca), certificate=there(tls.certificate), key=there(tls.key)))
    if plan.scenario is not None and (feeders := plan.scenario.get("feeders")):
        moved = {name: {**feeder, "file": there(feeder["file"])} for name, feeder in feeders.items()}
        plan = replace(plan, scenario={**plan.scenario, "feeders": moved})
    return plan
