"""What is asked after the load, while the stack still runs: what its services did, whether it answers right, what is in its database."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from weir.lab.services import Readings, RunningServices
from weir.lab.stack import RunningStack
from weir.model.errors import TargetError
from weir.model.records import LoadSummary
from weir.model.work import NOISE, ServiceWork
from weir.stacks.check import check_answers
from weir.stacks.invariant import discrepancies
from weir.stacks.workload import Work
from weir.study.study import PlannedCell


@dataclass(frozen=True, slots=True)
class After:
    """What was found after a load."""

    work: tuple[ServiceWork, ...] = ()
    """What each service did over the load."""
    unexpected_work: tuple[str, ...] = ()
    """What they did more or less of than the workload says, in words."""
    discrepancies: tuple[str, ...] = ()
    """Invariants of the workload that do not hold, in words."""
    wrong: str | None = None
    """What is wrong with an answer, or that something does not answer any more."""


def look_after(
    planned: PlannedCell,
    running: RunningStack,
    services: RunningServices,
    before: Readings,
    load: LoadSummary,
    inputs: random.Random,
    *,
    timeout_s: float,
) -> After:
    """Looks after a load that everything has outlived.

    Args:
        planned: the cell.
        running: its stack.
        services: the stack's services.
        before: what these said right before the load.
        load: what the whole load came to.
        inputs: draws the inputs of the check.
        timeout_s: how long an answer may take.
    """
    workload = planned.workload
    work: tuple[ServiceWork, ...] = ()
    unexpected: tuple[str, ...] = ()
    found: tuple[str, ...] = ()
    try:
        # First the counters: what follows asks the services again.
        work = tuple(replace(one, rows_differ=workload.work.rows_differ) for one in services.work_since(before, load))
        unexpected = tuple(unexpected_work(workload.work, work))
        found = discrepancies(workload.invariant, before.values, services.values(workload), load)
        for base_url in running.base_urls:
            check_answers(workload, base_url, inputs, path=planned.stack.path_of(workload.id), timeout_s=timeout_s)
    except TargetError as error:
        return After(work, unexpected, found, error.message)
    return After(work, unexpected, found)


def unexpected_work(expected: Work, work: Sequence[ServiceWork]) -> list[str]:
    """What the services did more or less of than the workload says, in words; empty where it agrees or nothing was counted.

    What a few requests at the edges of the load explain is agreement.
    """
    if not any(one.requests for one in work):
        return []
    found = [one.note for one in work if one.note]
    edge = max(one.edge for one in work)
    rows = None if any(one.rows is None for one in work) else sum(one.per_request(one.rows or 0) or 0 for one in work)
    statements = sum(one.per_request(one.statements) or 0 for one in work)
    for noun, wanted, did in (("data statements", expected.statements, statements), ("rows", expected.rows, rows)):
        if wanted is not None and did is not None and abs(did - wanted) > edge * max(wanted, 1) + NOISE:
            found.append(f"{did:,.2f} {noun} per request, the workload expects {wanted:g}{_most(work) if did > wanted else ''}")
    return found


def _most(work: Sequence[ServiceWork]) -> str:
    kinds = [f"{kind.calls / one.requests:,.2f}× {kind.text[:80]}" for one in work for kind in one.by_statement[:3] if kind.data]
    return f" ({'; '.join(kinds)})" if kinds else ""
