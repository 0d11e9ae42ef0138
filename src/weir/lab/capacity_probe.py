"""Searches for a server's capacity under a response-time objective, or for the knee of the server's throughput.

If weir starts the server, each search has a fresh process. A search makes several attempts. Each attempt is one load.
In a search for the capacity, the server must be idle before each attempt: an old queue would distort the attempt.
"""

import itertools
import random
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace

from weir.engine_process import pin_to_cpus
from weir.generators.engine import EngineLoad
from weir.host import Host
from weir.lab.conformance import build_check_cells
from weir.lab.jit_priority import prioritize_jit_threads
from weir.lab.placement import describe_placement, place
from weir.lab.study_run import build_stack
from weir.lab.trial_services import Services
from weir.load_spec import LoadSpec
from weir.model.errors import TargetError, UsageError
from weir.model.hdr import bytes_of_text
from weir.model.load import Arrivals, ClosedLoad, Load, LoadPlan, OpenLoad
from weir.model.load_records import LoadEnd
from weir.objective import Condition, count_missed
from weir.stacks.manifest import Stack
from weir.stats import Attempt, Goal, Knee, SearchResult, search_capacity, search_knee
from weir.study.file import Cpus

_PROBE_S = 2.0
"""Duration of the closed loop before the search. Its throughput determines the range of rates."""
_ABOVE_PROBE = 1.25
"""First upper bound of the searched rates, as a multiple of the closed loop's throughput."""
_BELOW_MOST = 1_000.0
"""Highest rate ÷ lowest rate of the search."""
_RAISES = 3
"""Maximum number of doublings of the highest rate. The rate doubles while the server meets the objective."""
_REST_S = 30.0
"""Maximum time for a server to recover from a load."""
_MIN_PROBED_RPS = 1.0
_GENERATOR_REASONS = ("busy", "ports", "slept", "stalled")
"""Kinds of verdict reasons (docs/reference/engine.md) that concern the generator and its machine."""

RunLoad = Callable[[Load, float], LoadEnd]
"""Runs a load on the server for a number of seconds."""


@dataclass(frozen=True, slots=True)
class Target:
    """The server of a search."""

    title: str
    """Name of the server on screen."""
    is_fresh: bool
    """Whether each search has a new process of the server."""
    start: Callable[[], AbstractContextManager[RunLoad]]
    """Returns a context manager for a ready server. `with` yields a function that runs a load."""


def external_target(plan: LoadPlan) -> Target:
    """Returns a target for a running server. Each attempt has its own load; `plan` has the request and options."""
    return Target(plan.title, False, lambda: nullcontext(_make_load_runner(plan)))


@contextmanager
def open_stack_target(
    stack: Stack,
    workload: str,
    *,
    warmup_s: float,
    warmup_users: int,
    timeout_s: float,
    seed: int,
    on_step: Callable[[str], None],
) -> Iterator[Target]:
    """Builds a stack and yields a target. Each search starts, checks, warms up and stops a fresh process of the stack.
    Raises UsageError if the stack does not serve the workload or CPUs are missing, TargetError if the build failed."""
    if workload not in stack.serves:
        expected = f"expected a workload that {stack.label} serves: {', '.join(stack.serves)}"
        raise UsageError(f"WORKLOAD: found {workload!r}, {expected}", hint="weir stacks list")
    planned = next(one for one in build_check_cells(stack, place(Cpus())) if one.workload.id == workload)
    placement = place(Cpus(), with_services=bool(planned.services))
    planned = replace(planned, load=LoadSpec(duration_s=1, timeout_s=timeout_s))
    for line in describe_placement(placement):
        on_step(line)
    starts = itertools.count(1)
    with pin_to_cpus(placement.control), Host() as host, Services(host, on_step) as services:
        built = build_stack(host, stack, on_step)

        @contextmanager
        def start() -> Iterator[RunLoad]:
            inputs, path = random.Random(f"{seed}/{next(starts)}"), stack.find_path(workload)
            with services.running_with_stack(built, planned, placement, "capacity", inputs=inputs) as (_, running):
                request = planned.workload.draw(running.base_url, random.Random(seed), path=path)
                plan = planned.plan(request, targets=(), duration_s=1.0, interval_s=0.1, cpus=placement.load)
                run_load = _make_load_runner(plan)
                if warmup_s:
                    with prioritize_jit_threads(running.pids):
                        run_load(ClosedLoad(warmup_users), warmup_s)
                yield run_load

        yield Target(f"{stack.label} on {workload}", True, start)


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """Objective and load of a capacity search."""

    condition: Condition
    """The response-time objective: a limit for a percentile of response times."""
    goal: Goal
    connections: int
    """Maximum number of connections of the open loop."""
    arrivals: Arrivals = "constant"


@dataclass(frozen=True, slots=True)
class CapacityMeasurement:
    """The result of one search, with the response times at the highest rate that met the objective."""

    search: SearchResult
    histogram: bytes | None
    """Histogram of the response times at the highest rate that met the objective; None without such a rate."""
    mean_s: float | None
    reasons: tuple[str, ...]
    """Problems of the generator at the two rates between which the capacity lies."""


def find_capacity(target: Target, wanted: SearchSettings, on_attempt: Callable[[Attempt], None]) -> CapacityMeasurement:
    """Searches once for a server's capacity. The search starts just above the throughput of a closed loop with one user
    per connection. If the server meets the objective there, weir doubles the rate. Raises TargetError if the server is
    unreachable or does not recover from a load."""
    ends: dict[float, LoadEnd] = {}
    with target.start() as run_load:
        probed = run_load(ClosedLoad(wanted.connections), _PROBE_S).summary.throughput_rps
        most = _ABOVE_PROBE * max(probed, _MIN_PROBED_RPS)

        def measure(rate_rps: float, length_s: float) -> tuple[int, int]:
            _wait_for_rest(run_load, wanted.condition)
            end = run_load(OpenLoad(rate_rps, wanted.connections, wanted.arrivals), length_s)
            intended, late = end.summary.requests.intended, count_missed(wanted.condition, end)
            if rate_rps not in ends or end.summary.duration_s >= ends[rate_rps].summary.duration_s:
                ends[rate_rps] = end
            on_attempt(Attempt(rate_rps, length_s, intended, late))
            return intended, late

        found = search_capacity(measure, wanted.goal, least=most / _BELOW_MOST, most=most)
        for _ in range(_RAISES):
            if found.upper is not None:
                break
            most *= 2
            again = search_capacity(measure, wanted.goal, least=most / 2, most=most)
            # An earlier attempt at this rate met the objective, so the rate stays the lower bound.
            found = replace(again, lower=again.lower or found.lower, attempts=(*found.attempts, *again.attempts))
    at_bounds = [ends[rate] for rate in (found.lower, found.upper) if rate is not None]
    # Other reasons do not matter: the search itself counts late and missing responses.
    verdicts = [end.summary.verdict for end in at_bounds]
    reasons_by_kind = [pair for verdict in verdicts for pair in zip(verdict.kinds, verdict.reasons, strict=False)]
    reasons = tuple(dict.fromkeys(text for kind, text in reasons_by_kind if kind in _GENERATOR_REASONS))
    if found.lower is None:
        return CapacityMeasurement(found, None, None, reasons)
    held = ends[found.lower]
    mean_us = held.summary.response_time_us.mean
    histogram = bytes_of_text(held.histograms["response_time_ns"])
    return CapacityMeasurement(found, histogram, None if mean_us is None else mean_us / 1e6, reasons)


def find_knee(target: Target, *, most_users: int, length_s: float, on_attempt: Callable[[int, float], None]) -> Knee:
    """Searches once for the knee, with closed loops of several sizes. Raises TargetError without a response."""
    with target.start() as run_load:

        def measure(users: int) -> float:
            throughput_rps = run_load(ClosedLoad(users), length_s).summary.throughput_rps
            on_attempt(users, throughput_rps)
            return throughput_rps

        return search_knee(measure, most_users=most_users)


def _make_load_runner(plan: LoadPlan) -> RunLoad:
    def run_load(load: Load, length_s: float) -> LoadEnd:
        with EngineLoad(replace(plan, load=load, duration_s=length_s)) as running:
            return running.result()

    return run_load


def _wait_for_rest(run_load: RunLoad, condition: Condition) -> None:
    """Sends single requests until a response is fast enough. Raises TargetError after `_REST_S` seconds."""
    until = time.monotonic() + _REST_S
    while True:
        end = run_load(ClosedLoad(1, requests_per_user=1), _REST_S)
        found_us = end.summary.response_time_us.max
        if found_us is not None and condition.holds(found_us):
            return
        if time.monotonic() > until:
            took = "the server did not respond" if found_us is None else f"the response took {found_us / 1e3:,.0f} ms"
            late = f"{_REST_S:g} s after the load, a single request still misses {condition.text}: {took}"
            hint = "use an objective that an idle server meets, or make the server drop requests of closed connections"
            raise TargetError(f"the server did not recover from the load: {late}", hint=hint)
