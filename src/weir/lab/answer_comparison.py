"""Starts each side of a comparison once, compares their responses, and measures each side's start and warm-up."""

import http.client
import json
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from weir.engine_process import pin_to_cpus
from weir.generators.engine import EngineLoad
from weir.generators.handle import StopSwitch
from weir.host import Host
from weir.lab.monitoring import find_exit
from weir.lab.placement import place
from weir.lab.stack_process import find_exit_problems, list_process_names
from weir.lab.trial_services import Services
from weir.model.errors import TargetError
from weir.model.load import Request
from weir.model.load_observer import LoadObserver
from weir.model.load_records import Interval
from weir.stacks.answer_check import CheckAnswers
from weir.stacks.build import BuiltStack
from weir.stacks.manifest import Stack
from weir.stacks.readiness import send_request
from weir.study.study import PlannedCell, Study

_ASKED = 3
"""Number of equal requests to each side before the load. weir compares bodies only if a side's responses are equal."""
_SHOWN = 60
"""Maximum number of a body's characters in a message."""
_WARMUP_INTERVAL_S = 0.25
_MIN_WARMUP_S = 1.0
_MAX_WARMUP_S = 10.0
_STEADY_INTERVALS = 4
_STEADY = 0.05
"""Maximum relative rise of a warm server's throughput between two groups of `_STEADY_INTERVALS` intervals. A fall is
noise, because a warm-up makes a server faster."""


@dataclass(frozen=True, slots=True)
class SideAnswer:
    """One side's last response, and whether all responses of the side were equal."""

    title: str
    status: int
    body: bytes
    is_constant: bool

    @property
    def value(self) -> Any:
        """The body as a JSON value, or the body itself if it is not JSON."""
        try:
            return json.loads(self.body)
        except ValueError:
            return self.body


@dataclass(frozen=True, slots=True)
class SideCheck:
    """A side's response, the durations of its start and warm-up in seconds, and the problems at its stop."""

    answer: SideAnswer
    ready_s: float | None
    warmup_s: float
    throughput_rps: float
    """Throughput of the warm-up, in responses per second."""
    problems: tuple[str, ...]
    """Sentences about problems at the stop of the side's processes."""


def check_sides(
    study: Study,
    build: Callable[[Host, Stack], BuiltStack],
    *,
    warmup_s: float | None,
    on_step: Callable[[str], None],
    check: CheckAnswers,
) -> dict[str, SideCheck]:
    """Starts the stacks of a study one after the other. Returns a dict from stack label to result.

    `check` checks the responses of a stack before the load. `warmup_s` is the warm-up in every result; None: weir
    measures when each side's throughput is steady. Raises TargetError if a side did not start, or did not respond.
    """
    placement = place(study.file.cpus, study.file.network)
    cells = {
        planned.stack.label: planned for planned in study.cells(len(placement.stack)) if planned.cell.arm == "main"
    }
    found = {}
    with pin_to_cpus(placement.control), Host() as host, Services(host, on_step) as services:
        for label, planned in cells.items():
            stack = planned.stack
            on_step(f"{'starting' if isinstance(stack, Stack) else 'checking'} {planned.name}")
            built = build(host, stack) if isinstance(stack, Stack) else None
            placed = planned.restrict_placement(placement)
            with services.running_with_stack(
                built, planned, placed, "compare", inputs=random.Random(0), check=check
            ) as (_, running):
                request = planned.request(running.base_url)
                answer = _ask(planned, request)
                length_s, rate_rps = _warm_up(planned, request, placed.load, warmup_s)
                if built is not None and (ended := find_exit([host], list_process_names(planned.cell.replicas))):
                    problem = f"{answer.title}: the process ended {ended.how} during the warm-up"
                    raise TargetError(problem, hint=f"tail {built.log_path('compare')}")
            problems = tuple(problem for ended in running.ended for problem in find_exit_problems(ended))
            found[label] = SideCheck(answer, running.ready_s, length_s, rate_rps, problems)
    return found


def _ask(planned: PlannedCell, request: Request) -> SideAnswer:
    title = planned.name
    try:
        answers = [send_request(request, timeout_s=planned.load.timeout_s, tls=planned.tls) for _ in range(_ASKED)]
    except (OSError, http.client.HTTPException) as error:
        why = str(error) or type(error).__name__
        raise TargetError(f"{title}: no response to {request.method} {request.target}: {why}") from None
    status, body = answers[-1]
    return SideAnswer(title, status, body, all(one == answers[0] for one in answers))


def find_difference(answers: Sequence[SideAnswer]) -> str | None:
    """Returns a sentence about the first difference between the sides' responses. None: all responses are equal."""
    first, *others = answers
    for other in others:
        if other.status != first.status:
            found = [f"{one.title} responds with {one.status} {show_body(one.body)}" for one in (first, other)]
            return ", ".join(found)
        if first.is_constant and other.is_constant and first.value != other.value:
            return f"{first.title} responds with {show_body(first.body)}, {other.title} with {show_body(other.body)}"
    return None


def show_body(body: bytes) -> str:
    """Returns the beginning of a body for a message."""
    text = body.decode("utf-8", "replace")
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…") + (
        f" ({len(body):,} bytes)" if len(text) > _SHOWN else ""
    )


def _warm_up(
    planned: PlannedCell, request: Request, cpus: tuple[int, ...], wanted_s: float | None
) -> tuple[float, float]:
    """Loads a side for `wanted_s` seconds. None: loads until the throughput is steady, for at most 10 s. Returns the
    seconds until then, and responses per second. Raises TargetError if the side sends no response."""
    title = planned.name
    length_s = _MAX_WARMUP_S if wanted_s is None else wanted_s
    plan = planned.plan(request, targets=(), duration_s=length_s, interval_s=_WARMUP_INTERVAL_S, cpus=cpus)
    stop = StopSwitch()
    throughput = Throughput(stop.stop if wanted_s is None else lambda: None)
    try:
        with EngineLoad(plan.answered_to_the_end(), throughput) as load, stop.connected(load):
            summary = load.result().summary
    except TargetError as error:
        raise TargetError(f"{title}: {error.message}", hint=error.hint) from None
    if not summary.requests.completed and summary.requests.failed:
        why = next(iter(summary.verdict.reasons), f"{summary.requests.failed:,} requests failed")
        raise TargetError(f"{title}: no response under load: {why}")
    if wanted_s is not None:
        return wanted_s, summary.throughput_rps
    intervals = max(0, len(throughput.completed) - _STEADY_INTERVALS)
    return max(_MIN_WARMUP_S, intervals * _WARMUP_INTERVAL_S), summary.throughput_rps


class Throughput(LoadObserver):
    """Observer that calls `on_steady` when the throughput of a load is steady."""

    def __init__(self, on_steady: Callable[[], None]) -> None:
        self.completed: list[int] = []
        self._on_steady = on_steady

    def on_interval(self, interval: Interval) -> None:
        self.completed.append(interval.completed)
        last = self.completed[-_STEADY_INTERVALS:]
        before = self.completed[-2 * _STEADY_INTERVALS : -_STEADY_INTERVALS]
        usual = statistics.mean(before) if len(before) == _STEADY_INTERVALS else 0
        if usual and statistics.mean(last) / usual - 1 <= _STEADY:
            self._on_steady()
