"""The check of `weir stacks check`. A stack must start, respond correctly to every workload, and serve a short load
without a failure. On SIGTERM, the stack must end and leave no process or file."""

import os
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

from weir.generators.engine import EngineLoad
from weir.host import Host
from weir.lab.stack_process import RunningStack, find_exit_problems
from weir.lab.trial_services import Services
from weir.load_spec import LoadSpec
from weir.model.errors import TargetError
from weir.model.load import ClosedLoad
from weir.model.load_observer import LoadObserver
from weir.model.load_records import LoadEvent
from weir.model.run_types import Cell, Placement
from weir.stacks.answer_check import WrongAnswerError, check_answers
from weir.stacks.build import BuiltStack
from weir.stacks.manifest import Stack
from weir.stacks.workload import read_workload
from weir.study.file import Method
from weir.study.study import PlannedCell

LOAD_S = 3.0
"""Duration of the load with all workloads at once."""
_CONNECTIONS = 4
"""Number of connections of each workload. The load only keeps the stack busy during checks."""
ANSWER_S = 20.0
"""Timeout of a response."""


@dataclass(frozen=True, slots=True)
class ConformanceResult:
    """Figures of a stack that passed the check."""

    ready_s: float
    answered: int
    """Number of the load's requests with a correct response."""
    compared: int
    """Number of responses that weir compared with the workload's expectation during the load."""


def build_check_cells(stack: Stack, placement: Placement) -> list[PlannedCell]:
    """Returns a cell for every workload of a stack. The cells are for checks, not for measurements."""
    settings = stack.settings(len(placement.stack))
    load, method = LoadSpec(duration_s=LOAD_S, timeout_s=ANSWER_S), Method(blocks=1, baseline=stack.label)
    cell = partial(Cell, 0, stack.id, stack.variant, load=ClosedLoad(_CONNECTIONS), settings=settings)
    return [
        PlannedCell(cell(workload=workload.id), stack, workload, load, method, services=stack.services_for(workload))
        for workload in map(read_workload, stack.serves)
    ]


def check_stack(
    host: Host, services: Services, built: BuiltStack, placement: Placement, *, seed: int
) -> ConformanceResult:
    """Starts a stack, checks its responses, loads it, and stops it. `seed` determines the inputs of the requests.
    Raises WrongAnswerError for a wrong response, TargetError for any other failure. The message names the log."""
    cells = build_check_cells(built.stack, placement)
    # The stack starts only once, with the services of all workloads.
    first = replace(cells[0], services={name: needed for planned in cells for name, needed in planned.services.items()})
    # The kernel reports written files to root only.
    watch_writes = os.geteuid() == 0
    with (
        services.running_with_stack(
            built, first, placement, "check", inputs=random.Random(seed), watch_writes=watch_writes
        ) as (needed, running),
        ThreadPoolExecutor(len(cells)) as pool,
    ):
        # A JVM loads classes at the first request of each kind. So each workload has a check before the common load.
        failed = [error for planned in cells[1:] if (error := _find_wrong_answer(planned, running, seed))]
        load = partial(_load_workload, running=running, placement=placement, seed=seed)
        loads = [] if failed else list(pool.map(load, cells))
        gone = [ended for name in needed.names if (ended := host.ended(name)) is not None]
    label = built.stack.label
    failed += [load.error for load in loads if load.error]
    problems = [error.message for error in failed]
    problems += [f"its service {ended.name} ended {ended.how}" for ended in gone]
    problems += [problem for ended in running.ended for problem in find_exit_problems(ended)]
    if problems:
        kind = WrongAnswerError if any(isinstance(error, WrongAnswerError) for error in failed) else TargetError
        log = built.folder.with_name(f"{built.folder.name}-check.log")
        raise kind(f"{label}: {'; '.join(problems)}; log: {log}", hint=f"weir stacks start {label}")
    answered, compared = (sum(getattr(load, name) for load in loads) for name in ("answered", "compared"))
    return ConformanceResult(running.ready_s or 0.0, answered, compared)


def _find_wrong_answer(planned: PlannedCell, running: RunningStack, seed: int) -> TargetError | None:
    """Returns the first wrong response to a workload; None if all responses are right."""
    path = planned.stack.find_path(planned.workload.id)
    try:
        check_answers(planned.workload, running.base_url, random.Random(seed), path=path, timeout_s=ANSWER_S)
    except TargetError as error:
        return error
    return None


@dataclass(frozen=True, slots=True)
class _WorkloadResult:
    answered: int
    compared: int
    error: TargetError | None = None


class _FirstFailures(LoadObserver):
    """Observer that stores the detail of the first event of each kind."""

    def __init__(self) -> None:
        self.details: dict[str, str] = {}

    def on_event(self, event: LoadEvent) -> None:
        self.details.setdefault(event.kind, event.detail)


def _load_workload(planned: PlannedCell, running: RunningStack, placement: Placement, seed: int) -> _WorkloadResult:
    """Loads a stack with one workload, and also sends single requests during the load. Checks every response."""
    workload, inputs = planned.workload, random.Random(f"{seed}/{planned.workload.id}")
    path = planned.stack.find_path(workload.id)
    request = workload.draw(running.base_url, inputs, path=path)
    base = replace(request, target=running.base_url)
    plan = planned.plan(base, targets=(), duration_s=LOAD_S, interval_s=0.1, cpus=placement.load)
    plan = replace(plan, expected_status=None, scenario={"requests": [workload.step(request, path=path)]})
    compared, failures = 0, _FirstFailures()
    # The load waits for the last response, so that a slow response counts, too.
    with EngineLoad(plan.answered_to_the_end(), failures) as load:
        try:
            # Some responses are wrong only sometimes. Many comparisons under load find such a response.
            while compared == 0 or not load.wait(0):
                check_answers(workload, running.base_url, inputs, path=path, timeout_s=ANSWER_S, times=1)
                compared += 1
        except TargetError as error:
            load.stop()
            return _WorkloadResult(0, compared, type(error)(f"under load: {error.message}"))
        summary = load.result().summary
    failure = None
    if summary.requests.failed:
        first = {kind: f", first: {detail}" for kind, detail in failures.details.items()}
        kinds = ", ".join(f"{kind} {count}{first.get(kind, '')}" for kind, count in summary.errors.occurred.items())
        found = f"{summary.requests.failed} of {summary.requests.intended} requests failed ({kinds})"
        kind = WrongAnswerError if summary.errors.check else TargetError
        failure = kind(f"workload {workload.id}: {found} in {LOAD_S:g} s of load")
    return _WorkloadResult(summary.requests.ok, compared, failure)
