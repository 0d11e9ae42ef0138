"""What `weir stacks check` holds a stack to.

It starts, answers every workload right, carries a short load without one failure, and ends when it is told to with no process and no file
left behind.
"""

import os
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from weir.generators.engine import EngineLoad, LoadListener
from weir.host import Host
from weir.lab.services import Services
from weir.lab.stack import RunningStack, how_not_to_end, running_stack
from weir.model.errors import TargetError
from weir.model.load import ClosedLoad
from weir.model.records import LoadEvent
from weir.model.run import Cell, Placement
from weir.stacks.build import BuiltStack
from weir.stacks.check import WrongAnswerError, check_answers
from weir.stacks.manifest import Stack
from weir.stacks.workload import read_workload
from weir.study.load import LoadTable
from weir.study.method import Method
from weir.study.study import PlannedCell

LOAD_S = 3.0
"""How long it is loaded, with all its workloads at once."""
_CONNECTIONS = 4
"""Of each workload's load: a stack is asked right answers while it has something to do, not measured."""
ANSWER_S = 20.0
"""How long an answer may take."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A stack that passed."""

    ready_s: float
    answered: int
    """Requests of the load."""
    compared: int
    """Answers that were held against their workloads while it was loaded."""


def planned_cells(stack: Stack, placement: Placement) -> list[PlannedCell]:
    """A cell for every workload of a stack, without anything measured in mind."""
    settings = stack.settings(len(placement.stack))
    load, method = LoadTable(duration_s=LOAD_S, timeout_s=ANSWER_S), Method(blocks=1, baseline=stack.label)
    return [
        PlannedCell(
            Cell(0, stack.id, stack.variant, workload.id, ClosedLoad(_CONNECTIONS), settings=settings),
            stack,
            workload,
            load,
            method,
            services=stack.services_for(workload),
        )
        for workload in map(read_workload, stack.serves)
    ]


def check_stack(host: Host, services: Services, built: BuiltStack, placement: Placement, *, seed: int) -> Checked:
    """Starts a stack, has it answer, loads it, and stops it.

    Args:
        host: starts and stops its processes.
        services: start what it needs.
        built: the stack.
        placement: where it runs.
        seed: draws the inputs of its requests.

    Raises:
        WrongAnswerError: it answers wrong; the message names its log.
        TargetError: it does not pass for another reason.
    """
    cells = planned_cells(built.stack, placement)
    # Started once, with what any of its workloads needs.
    first = replace(cells[0], services={name: needed for planned in cells for name, needed in planned.services.items()})
    log = built.folder.with_name(f"{built.folder.name}-check.log")
    with (
        services.running(first, placement, log_of=lambda name: log.with_name(f"{log.stem}-{name}.log")) as needed,
        running_stack(
            host,
            built,
            first,
            placement=placement,
            logs=[log],
            inputs=random.Random(seed),
            timeout_s=ANSWER_S,
            fields=needed.fields,
            front=needed.front,
            # Who is not root is not told of files.
            watch_writes=os.geteuid() == 0,
        ) as running,
        ThreadPoolExecutor(len(cells)) as pool,
    ):
        # A JVM loads much of what it needs with the first request of a kind: each has answered before all are asked at once.
        failed = [error for planned in cells[1:] if (error := _failed(planned, running, seed))]
        loads = [] if failed else list(pool.map(lambda planned: _loaded(planned, running, placement, seed), cells))
        gone = [ended for name in needed.names if (ended := host.ended(name)) is not None]
    label = built.stack.label
    failed += [load.error for load in loads if load.error]
    problems = [error.message for error in failed]
    problems += [f"the service {ended.name} ended {ended.how} under it" for ended in gone]
    problems += [problem for ended in running.ended for problem in how_not_to_end(ended)]
    if problems:
        kind = WrongAnswerError if any(isinstance(error, WrongAnswerError) for error in failed) else TargetError
        raise kind(f"{label}: {'; '.join(problems)}; log: {log}", hint=f"weir stacks start {label}")
    return Checked(running.ready_s or 0.0, sum(load.answered for load in loads), sum(load.compared for load in loads))


def _failed(planned: PlannedCell, running: RunningStack, seed: int) -> TargetError | None:
    """What is wrong with a stack's answers to a workload; None where nothing is."""
    path = planned.stack.path_of(planned.workload.id)
    try:
        check_answers(planned.workload, running.base_url, random.Random(seed), path=path, timeout_s=ANSWER_S)
    except TargetError as error:
        return error
    return None


@dataclass(frozen=True, slots=True)
class _Loaded:
    """What a load of one workload came to."""

    answered: int
    compared: int
    error: TargetError | None = None


def _loaded(planned: PlannedCell, running: RunningStack, placement: Placement, seed: int) -> _Loaded:
    """Loads a stack with one workload, whose answers the generator looks at, and meanwhile compares answers to other inputs in full."""
    workload, inputs = planned.workload, random.Random(f"{seed}/{planned.workload.id}")
    path = planned.stack.path_of(workload.id)
    request = workload.draw(running.base_url, inputs, path=path)
    plan = replace(
        planned.plan(replace(request, target=running.base_url), targets=(), duration_s=LOAD_S, interval_s=0.1, cpus=placement.load),
        expected_status=None,
        scenario={"requests": [workload.step(request, path=path)]},
    )
    compared = 0
    seen: dict[str, str] = {}

    def take(event: LoadEvent) -> None:
        seen.setdefault(event.kind, event.detail)

    # To the last answer: one that takes longer than the load is not missed for it.
    with EngineLoad(plan.answered_to_the_end(), LoadListener(on_event=take)) as load:
        try:
            # One that is wrong now and then is found by many answers, and by those that it gives while it has others to give.
            while compared == 0 or not load.wait(0):
                check_answers(workload, running.base_url, inputs, path=path, timeout_s=ANSWER_S, times=1)
                compared += 1
        except TargetError as error:
            load.stop()
            return _Loaded(0, compared, type(error)(f"under load: {error.message}"))
        summary = load.result().summary
    if summary.requests.failed:
        counted = {kind: count for kind, count in summary.errors.model_dump().items() if count}
        kinds = ", ".join(f"{kind} {count}" + (f", first: {seen[kind]}" if kind in seen else "") for kind, count in counted.items())
        found = f"{summary.requests.failed} of {summary.requests.intended} requests failed ({kinds})"
        kind = WrongAnswerError if summary.errors.check else TargetError
        return _Loaded(summary.requests.ok, compared, kind(f"workload {workload.id}: {found} in {LOAD_S:g} s of load"))
    return _Loaded(summary.requests.ok, compared)
