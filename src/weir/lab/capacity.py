"""Capacity under an objective, and the knee, searched on a server that runs: each search on a fresh process where weir starts it.

An attempt is a load of its own. Before each the server has to be at rest again: what a load beyond its capacity has left in its queues
would count against the next one.
"""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from weir.generators.engine import EngineLoad
from weir.host import Host
from weir.lab.blocks import Progress
from weir.lab.check import planned_cells
from weir.lab.compilers import compilers_first
from weir.lab.placement import place, placement_lines
from weir.lab.run import bound_to, build_stack
from weir.lab.services import Services
from weir.lab.stack import running_stack
from weir.model.errors import TargetError, UsageError
from weir.model.histogram import bytes_of_text
from weir.model.load import Arrivals, ClosedLoad, Load, LoadPlan, OpenLoad
from weir.model.records import LoadEnd
from weir.model.run import Placement
from weir.objective import Condition, missed
from weir.stacks.build import BuiltStack
from weir.stacks.manifest import Stack
from weir.stats import Attempt, Goal, Knee, Search, search_capacity, search_knee
from weir.study.cpus import Cpus
from weir.study.load import LoadTable
from weir.study.study import PlannedCell

_PROBE_S = 2.0
"""How long the closed loop runs that shows where to search."""
_ABOVE_PROBE = 1.25
"""The search begins at so many times what that answered."""
_BELOW_MOST = 1_000.0
"""The lowest rate that is tried is this part of the highest."""
_RAISES = 3
"""How often the highest rate is doubled where a server holds even that."""
_REST_S = 30.0
"""How long a server has to come to rest."""
_LEAST_PROBED_RPS = 1.0
_NOT_THE_SERVERS = ("busy", "ports", "slept", "stood_still")
"""Kinds of reasons of a load's verdict (docs/reference/engine.md) that speak of the generator and its machine."""

Ask = Callable[[Load, float], LoadEnd]
"""Puts a load on the server for so many seconds."""
Tell = Callable[[Attempt], None]


class Target(Protocol):
    """What is searched."""

    title: str
    """How it is called on screen."""
    is_fresh: bool
    """Whether each search has a process of its own."""

    def fresh(self) -> AbstractContextManager[Ask]:
        """The server, ready to be asked."""
        ...


class Server:
    """A server that is there already: `plan` is what is asked of it, but for the load and its length."""

    is_fresh = False

    def __init__(self, plan: LoadPlan) -> None:
        self.title = plan.title
        self._plan = plan

    @contextmanager
    def fresh(self) -> Iterator[Ask]:
        """The server as it is."""
        yield _asking(self._plan)


class StartedStack:
    """A stack that weir starts anew for each search, with what it needs."""

    is_fresh = True

    def __init__(
        self,
        host: Host,
        services: Services,
        built: BuiltStack,
        planned: PlannedCell,
        placement: Placement,
        *,
        prime_s: float,
        prime_users: int,
        seed: int,
    ) -> None:
        self.title = f"{planned.stack.label} on {planned.workload.id}"
        self._host = host
        self._services = services
        self._built = built
        self._planned = planned
        self._placement = placement
        self._prime_s = prime_s
        self._prime_users = prime_users
        self._seed = seed
        self._starts = 0

    @contextmanager
    def fresh(self) -> Iterator[Ask]:
        """A fresh process that has answered right and was primed."""
        self._starts += 1
        planned, log = self._planned, self._built.folder.with_name(f"{self._built.folder.name}-capacity.log")
        with (
            self._services.running(planned, self._placement, log_of=lambda name: log.with_name(f"{log.stem}-{name}.log")) as needed,
            running_stack(
                self._host,
                self._built,
                planned,
                placement=self._placement,
                logs=[log],
                inputs=random.Random(f"{self._seed}/{self._starts}"),
                timeout_s=planned.load.timeout_s,
                fields=needed.fields,
                front=needed.front,
            ) as running,
        ):
            request = planned.workload.draw(
                running.base_url, random.Random(self._seed), path=planned.stack.path_of(planned.workload.id)
            )  # fmt: skip
            ask = _asking(planned.plan(request, targets=(), duration_s=1.0, interval_s=0.1, cpus=self._placement.load))
            if self._prime_s:
                with compilers_first(running.pids):
                    ask(ClosedLoad(self._prime_users), self._prime_s)
            yield ask


@contextmanager
def started_stack(
    stack: Stack, workload: str, *, prime_s: float, prime_users: int, timeout_s: float, seed: int, progress: Progress
) -> Iterator[Target]:
    """A stack that is built and can be started; what was started of it ends with the context.

    Raises:
        UsageError: the stack does not serve that workload, or there are too few CPUs.
        TargetError: it cannot be built.
    """
    if workload not in stack.serves:
        raise UsageError(
            f"WORKLOAD: found {workload!r}, expected one that {stack.label} serves: {', '.join(stack.serves)}", hint="weir stacks list"
        )
    planned = next(one for one in planned_cells(stack, place(Cpus())) if one.workload.id == workload)
    placement = place(Cpus(), with_services=bool(planned.services))
    planned = replace(planned, load=LoadTable(duration_s=1, timeout_s=timeout_s))
    for line in placement_lines(placement):
        progress.on_step(line)
    with bound_to(placement.control), Host() as host, Services(host, on_step=progress.on_step) as services:
        built = build_stack(host, stack, progress)
        yield StartedStack(host, services, built, planned, placement, prime_s=prime_s, prime_users=prime_users, seed=seed)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is searched for, and how."""

    condition: Condition
    """About a percentile of response times."""
    goal: Goal
    connections: int
    """The most that the open loop may use."""
    arrivals: Arrivals = "constant"


@dataclass(frozen=True, slots=True)
class Searched:
    """One search, with the answers at the highest rate that held."""

    search: Search
    histogram: bytes | None
    """Response times there; None where no rate held."""
    mean_s: float | None
    reasons: tuple[str, ...]
    """What is wrong with the attempts at its two bounds, by the generator's own verdict."""


def search(target: Target, wanted: Wanted, tell: Tell = lambda _: None) -> Searched:
    """One search for the capacity of a server.

    The highest rate that is tried is a little more than what as many users as there are connections are answered in a closed loop; where
    the server holds that, it is doubled.

    Raises:
        TargetError: the server cannot be reached, or does not come to rest after a load.
    """
    ends: dict[float, LoadEnd] = {}
    with target.fresh() as ask:
        probed = ask(ClosedLoad(wanted.connections), _PROBE_S).summary.throughput_rps
        most = _ABOVE_PROBE * max(probed, _LEAST_PROBED_RPS)

        def measure(rate_rps: float, length_s: float) -> tuple[int, int]:
            _rest(ask, wanted.condition)
            end = ask(OpenLoad(rate_rps, wanted.connections, wanted.arrivals), length_s)
            intended = end.summary.requests.intended
            late = missed(wanted.condition, end)
            if rate_rps not in ends or end.summary.duration_s >= ends[rate_rps].summary.duration_s:
                ends[rate_rps] = end
            tell(Attempt(rate_rps, length_s, intended, late))
            return intended, late

        found = search_capacity(measure, wanted.goal, least=most / _BELOW_MOST, most=most)
        for _ in range(_RAISES):
            if found.upper is not None:
                break
            most *= 2
            again = search_capacity(measure, wanted.goal, least=most / 2, most=most)
            # What held before may not hold once more: it is a bound all the same.
            found = replace(again, lower=again.lower or found.lower, attempts=(*found.attempts, *again.attempts))
    held = None if found.lower is None else ends[found.lower]
    at_bounds = [ends[rate] for rate in (found.lower, found.upper) if rate is not None]
    return Searched(
        search=found,
        histogram=None if held is None else bytes_of_text(held.histograms["response_time_ns"]),
        mean_s=None if held is None or held.summary.response_time_us.mean is None else held.summary.response_time_us.mean / 1e6,
        reasons=tuple(dict.fromkeys(reason for end in at_bounds for reason in _reasons(end))),
    )


def find_knee(target: Target, *, most_users: int, length_s: float, tell: Callable[[int, float], None] = lambda *_: None) -> Knee:
    """One search for the knee of a server: closed loops of more and more users.

    Raises:
        TargetError: the server cannot be reached.
    """
    with target.fresh() as ask:

        def measure(users: int) -> float:
            throughput_rps = ask(ClosedLoad(users), length_s).summary.throughput_rps
            tell(users, throughput_rps)
            return throughput_rps

        return search_knee(measure, most_users=most_users)


def _asking(plan: LoadPlan) -> Ask:
    def ask(load: Load, length_s: float) -> LoadEnd:
        with EngineLoad(replace(plan, load=load, duration_s=length_s)) as running:
            return running.result()

    return ask


def _rest(ask: Ask, condition: Condition) -> None:
    """Waits until a single request is answered within the objective."""
    until = time.monotonic() + _REST_S
    while True:
        end = ask(ClosedLoad(1, loops=1), _REST_S)
        found_us = end.summary.response_time_us.max
        if found_us is not None and condition.holds(found_us):
            return
        if time.monotonic() > until:
            took = "it did not answer" if found_us is None else f"it took {found_us / 1e3:,.0f} ms"
            raise TargetError(
                f"the server did not come to rest: {_REST_S:g} s after a load a single request still misses {condition.text}: {took}",
                hint="an objective that the server holds without any load, or a server that gives up what nobody waits for",
            )


def _reasons(end: LoadEnd) -> Sequence[str]:
    """What is wrong with an attempt that is not the server's doing: that it answers late or not at all is what was looked for."""
    verdict = end.summary.verdict
    return [text for kind, text in zip(verdict.kinds, verdict.reasons, strict=False) if kind in _NOT_THE_SERVERS]
