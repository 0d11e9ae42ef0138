"""One load from several agents: the plan is split exactly, all begin at one moment, and what they see is put together as it comes.

Each agent's engine has some of the load's threads (`LoadPlan.part`), makes its connections, and says that it is ready. Then all are told
the same moment, each by its own clock. Its intervals are slices of the same time, and their histograms add up.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from weir.cluster.agent import HELD_S, machine
from weir.cluster.members import LOST_S, AgentLostError, Awake, Member, RemoteEngine
from weir.cluster.merge import IntervalMerger, merged_end, with_reason
from weir.engine_process import Record
from weir.generators.engine import EngineLoad, LoadListener
from weir.model.errors import GeneratorError, NoAgentLeftError, UsageError, WeirError
from weir.model.load import LoadPlan
from weir.model.records import FEWER_AGENTS, LATE_AGENT, LOST_AGENT, AgentSummary, Interval, LoadEnd, LoadEvent, LoadReady, LoadStarted

_AHEAD_NS = 100_000_000
"""From when all are ready to the start, beside the way to the farthest and back: time enough to tell them."""
_READY_WITHIN_S = 60.0
_LATE_US = 5_000.0
"""From where on intervals of an agent are not the same slice of time as the others'."""
_LOOK_EVERY_S = 0.1
_READINGS = 10
"""Of a clock that was read before."""
_ENDS_WITHIN_S = 5.0


@dataclass(slots=True)
class _Share:
    """One agent's part of a load."""

    member: Member
    plan: LoadPlan
    load: EngineLoad | None = None
    engine: RemoteEngine | None = None
    ready: LoadReady | None = None
    started: LoadStarted | None = None
    told_ns: int = 0
    """When it was to begin, by its clock."""
    end: LoadEnd | None = None
    lost: WeirError | None = None

    def start_engine(self, arguments: Sequence[str], *, on_record: Callable[[Record], None], on_end: Callable[[], None]) -> RemoteEngine:
        """A `weir.engine_process.StartEngine`."""
        self.engine = self.member.start_engine(arguments, on_record=on_record, on_end=on_end)
        return self.engine

    @property
    def heard_at(self) -> float:
        """When something of its load came here; what is done with that may take its time."""
        assert self.engine is not None
        return self.engine.heard_at

    @property
    def is_over(self) -> bool:
        """Whether nothing of its load is to come any more."""
        assert self.engine is not None
        return self.engine.has_ended or self.lost is not None

    @property
    def began_late_us(self) -> float:
        return 0.0 if self.started is None else (self.started.start_monotonic_ns - self.told_ns) / 1e3


class SharedLoad:
    """A load of several agents that has been started: a `RunningLoad`.

    An agent that is lost under the load ends that; `result` then tells what the others saw, and that it is not valid.

    Args:
        members: the agents; those that are lost have no part, and `result` says so.
        plan: the whole load. Each agent has as many threads of it as `threads` says, bound as `cpus_of_agents` says. Its intervals have a
            second at most: a longer one would look like an agent that is silent.
        listener: what is called meanwhile, one call at a time.
        threads: load threads of each agent, and with that its share; None: `plan.threads` for each.

    Raises:
        UsageError: the load cannot be split, or a plan was not accepted.
        TargetError: the target could not be reached from an agent.
        GeneratorError: an agent could not do its part.
        AgentLostError: an agent was lost before the load began.
        NoAgentLeftError: all of them are.
    """

    def __init__(
        self, members: Sequence[Member], plan: LoadPlan, listener: LoadListener | None = None, *, threads: Sequence[int] | None = None
    ) -> None:
        self._missing = [member.error().message for member in members if member.lost is not None]
        if threads is not None:
            threads = [own for member, own in zip(members, threads, strict=True) if member.lost is None]
        members = [member for member in members if member.lost is None]
        if not members:
            raise NoAgentLeftError("no agent is left", hint="weir cluster check shows the nodes that are there")
        self._listener = listener or LoadListener()
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._merger = IntervalMerger(member.name for member in members)
        self._stopped_at: float | None = None
        self._failure: BaseException | None = None
        self._lost: list[str] = []
        self._begun = threading.Event()
        """Whoever listens has been told that the load begins."""
        self._finished = threading.Event()
        self._opened = ExitStack()
        self._shares = [_Share(member, part) for member, part in zip(members, split(plan, members, threads), strict=True)]
        self._interval_s = plan.interval_s
        try:
            for share in self._shares:
                share.plan = _with_files(share.plan, share.member)
            for share in self._shares:
                share.load = self._opened.enter_context(EngineLoad(share.plan, self._heard_by(share), start=share.start_engine))
            for share in self._shares:
                # For every load: the clocks of two machines drift apart.
                share.member.read_clock(_READINGS)
            self._begin()
        except BaseException:
            # Nobody waits for it any more.
            self._begun.set()
            self._opened.close()
            raise
        self._going_on = len(self._shares)
        for share in self._shares:
            threading.Thread(target=self._wait_for, args=(share,), name=f"end of {share.member.name}", daemon=True).start()
        threading.Thread(target=self._watch, name="agents' intervals", daemon=True).start()

    def stop(self) -> None:
        """Ends the load early; `result` then gives what was measured so far."""
        self._stopped_at = self._stopped_at or time.monotonic()
        for share in self._shares:
            if share.load is not None and share.lost is None:
                share.load.stop()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits for the end of the load; False when that took longer than `timeout_s`."""
        return self._finished.wait(timeout_s)

    def result(self) -> LoadEnd:
        """Waits for the end of the load and gives what it came to, all agents together.

        Raises:
            GeneratorError: no agent is left that could tell anything, or one's generator failed.
        """
        self._finished.wait()
        if self._failure is not None:
            raise self._failure
        ends = {share.member.name: share.end for share in self._shares if share.end is not None}
        if not ends:
            raise AgentLostError("; ".join(self._lost), hint="weir cluster check shows the nodes that are there")
        found = merged_end(ends, [_summary_of(share, share.end) for share in self._shares if share.end is not None])
        verdict = found.summary.verdict
        for share in self._shares:
            if share.began_late_us > _LATE_US:
                late = f"{share.member.name} began {share.began_late_us / 1e3:.1f} ms late: its intervals are other slices of time"
                verdict = with_reason(verdict, "suspect", LATE_AGENT, f"{late} (limit {_LATE_US / 1e3:g} ms)")
        for why in self._missing:
            verdict = with_reason(verdict, "suspect", FEWER_AGENTS, f"{why}: this load was made by the other {len(self._shares)}")
        for why in self._lost:
            verdict = with_reason(verdict, "invalid", LOST_AGENT, f"{why}: what it asked is in no figure")
        stopped = LOST_AGENT if self._lost else found.stopped
        return found.model_copy(update={"stopped": stopped, "summary": found.summary.model_copy(update={"verdict": verdict})})

    def close(self) -> None:
        """Ends the engines that are still there."""
        self._opened.close()

    def __enter__(self) -> "SharedLoad":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- Before the load

    def _heard_by(self, share: _Share) -> LoadListener:
        def ready(record: LoadReady) -> None:
            with self._changed:
                share.ready = record
                self._changed.notify_all()

        def started(record: LoadStarted) -> None:
            with self._changed:
                share.started = record
                self._changed.notify_all()

        def interval(record: Interval) -> None:
            self._begun.wait()
            with self._lock:
                self._tell(self._merger.take(share.member.name, record))

        def event(record: LoadEvent) -> None:
            self._begun.wait()
            with self._lock:
                told = record.model_copy(update={"detail": f"{share.member.name}: {record.detail}"})
                self._listener.on_event(told)

        return LoadListener(on_ready=ready, on_start=started, on_interval=interval, on_event=event)

    def _begin(self) -> None:
        """Waits until all are ready, and tells them when to begin."""
        self._await("ready")
        soonest = [share.member.clock.ours(share.ready.soonest_monotonic_ns) for share in self._shares if share.ready is not None]
        farthest_ns = max(share.member.clock.round_trip_ns for share in self._shares)
        start_ns = max(time.monotonic_ns(), *soonest) + _AHEAD_NS + farthest_ns

        def tell(share: _Share) -> None:
            share.told_ns = share.member.clock.theirs(start_ns)
            assert share.load is not None
            share.load.begin(share.told_ns)

        # All at once: each answers before the next is told otherwise, and the last of many would hear of it too late.
        with ThreadPoolExecutor(len(self._shares), "begin") as telling:
            list(telling.map(tell, self._shares))
        self._await("started")
        hellos = [share.started for share in self._shares if share.started is not None]
        self._listener.on_start(
            hellos[0].model_copy(
                update={
                    "threads": sum(hello.threads for hello in hellos),
                    "cpus": [],
                    "connected": sum(hello.connected for hello in hellos),
                    "start_monotonic_ns": start_ns,
                    "start_unix_ns": time.time_ns() + start_ns - time.monotonic_ns(),
                }
            )
        )
        self._begun.set()

    def _await(self, what: str) -> None:
        """Waits until every agent has said something."""
        until = time.monotonic() + _READY_WITHIN_S
        with self._changed:
            while missing := [share for share in self._shares if getattr(share, what) is None]:
                for share in missing:
                    if share.load is not None and share.load.wait(0):
                        # It has ended without it, and says why.
                        with _naming(share.member):
                            share.load.result()
                        raise GeneratorError(f"{share.member.name}: the load ended before it began")
                if time.monotonic() > until:
                    raise GeneratorError(f"{missing[0].member.name}: not {what} within {_READY_WITHIN_S:g} s")
                self._changed.wait(_LOOK_EVERY_S)

    # --- Under the load

    def _tell(self, merged: Sequence[Interval]) -> None:
        for interval in merged:
            self._listener.on_interval(interval)

    def _wait_for(self, share: _Share) -> None:
        """The life of the thread that waits for the end of a share."""
        assert share.load is not None
        try:
            with _naming(share.member):
                share.end = share.load.result()
        except AgentLostError as error:
            self._lose(share, error)
        except BaseException as error:
            with self._lock:
                self._failure = self._failure or error
            self.stop()
        with self._lock:
            try:
                self._tell(self._merger.ended(share.member.name))
            except BaseException as error:
                self._failure = self._failure or error
            self._going_on -= 1
            if not self._going_on:
                self._finished.set()

    def _watch(self) -> None:
        """Gives an agent up that tells no intervals any more, or does not end when it is told to."""
        # From when it came, which may be that much after it was made; another look would come too late.
        silent_s = min(LOST_S - HELD_S + self._interval_s, LOST_S - 2 * _LOOK_EVERY_S)
        awake = Awake(time.monotonic())
        while not self._finished.wait(_LOOK_EVERY_S):
            now, stopped_at = time.monotonic(), self._stopped_at
            awake_since = awake.look(now)
            for share in self._shares:
                if share.is_over:
                    continue
                heard_at = max(share.heard_at, awake_since)
                silence_s = now - heard_at
                if stopped_at is None and silence_s > silent_s:
                    share.member.lose(f"no interval for {silence_s:.1f} s")
                elif stopped_at is not None and now - max(stopped_at, heard_at) > _ENDS_WITHIN_S:
                    share.member.lose(f"it did not end within {_ENDS_WITHIN_S:g} s")

    def _lose(self, share: _Share, error: AgentLostError) -> None:
        with self._lock:
            share.lost = error
            if share.end is None:
                self._lost.append(error.message)
        # Without it the load is another one.
        self.stop()


@contextmanager
def _naming(member: Member) -> Iterator[None]:
    """Errors of an agent's engine say whose they are."""
    try:
        yield
    except AgentLostError:
        raise
    except WeirError as error:
        raise type(error)(f"{member.name}: {error.message}", hint=error.hint) from None


def split(plan: LoadPlan, members: Sequence[Member], threads: Sequence[int] | None = None) -> list[LoadPlan]:
    """The plan of each agent.

    Raises:
        UsageError: the load cannot be split among as many.
    """
    each = list(threads or [plan.threads] * len(members))
    of = sum(each)
    if plan.until_first_failure and len(members) > 1:
        raise UsageError("--until-failure: found with several agents, expected one: the others would not hear of the failure in time")
    if plan.request_log is not None:
        raise UsageError("a log of requests: found with agents, expected a load of this machine")
    if of > plan.load.connections:
        raise UsageError(f"found {plan.load.connections} connections for {of} load threads of all agents, expected one for each at least")
    return [
        replace(plan, threads=own, cpus=cpus, part=(sum(each[:index]), of), held=True)
        for index, (own, cpus) in enumerate(zip(each, cpus_of_agents(plan.cpus, members, each), strict=True))
    ]


def cpus_of_agents(cpus: Sequence[int], members: Sequence[Member], threads: Sequence[int]) -> list[tuple[int, ...]]:
    """The CPUs that each agent's threads are bound to, one for each, where the load is bound at all: `cpus` on this machine, and on any
    other those of its node. None where the agents of a machine have not as many: an engine with CPUs of its own waits in another way than
    one without, a server that is full answers more of it, and what agents measure is put together.
    """
    unbound: list[tuple[int, ...]] = [()] * len(members)
    if not cpus:
        return unbound
    used: dict[str, set[int]] = {}
    bound = []
    for member, own in zip(members, threads, strict=True):
        where, able = member.facts["machine"], member.facts["cpus"]
        taken = used.setdefault(where, set())
        free = [cpu for cpu in (cpus if where == machine() else able) if cpu in able and cpu not in taken]
        if len(free) < own:
            return unbound
        taken.update(free[:own])
        bound.append(tuple(free[:own]))
    return bound


def _with_files(plan: LoadPlan, member: Member) -> LoadPlan:
    """The plan with the paths that its files have on the agent's node."""

    def there(path: str | None) -> str | None:
        if path is None:
            return None
        try:
            return member.keep(Path(path))
        except OSError as error:
            raise UsageError(f"{path}: cannot be read: {error.strerror}") from None

    if plan.tls is not None:
        tls = plan.tls
        plan = replace(plan, tls=replace(tls, ca=there(tls.ca), certificate=there(tls.certificate), key=there(tls.key)))
    feeders: dict[str, dict[str, Any]] = {} if plan.scenario is None else plan.scenario.get("feeders", {})
    if plan.scenario is not None and feeders:
        moved = {name: {**feeder, "file": there(feeder["file"])} for name, feeder in feeders.items()}
        plan = replace(plan, scenario={**plan.scenario, "feeders": moved})
    return plan


def _summary_of(share: _Share, end: LoadEnd) -> AgentSummary:
    summary, clock = end.summary, share.member.clock
    return AgentSummary(
        name=share.member.name,
        requests=summary.requests,
        throughput_rps=summary.throughput_rps,
        response_time_us=summary.response_time_us,
        generator=summary.generator,
        clock_offset_us=clock.offset_ns / 1e3,
        clock_error_us=clock.error_ns / 1e3,
        began_late_us=share.began_late_us,
    )
