"""Checks the services' work, the stack's responses and the database after the load, while the stack still runs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from weir.lab.context import TrialContext
from weir.lab.stack_process import RunningStack
from weir.lab.trial_services import Readings, RunningServices
from weir.model.errors import TargetError
from weir.model.load_records import LoadSummary
from weir.model.service_work import NOISE, ServiceWork
from weir.stacks.answer_check import WrongAnswerError, check_answers
from weir.stacks.invariant import find_discrepancies
from weir.stacks.workload import Work


@dataclass(slots=True)
class PostLoadCheck:
    """Results of the checks after a load."""

    work: tuple[ServiceWork, ...] = ()
    """Work of each service during the load."""
    unexpected_work: tuple[str, ...] = ()
    """Sentences about differences between the services' work and the workload's expectation."""
    discrepancies: tuple[str, ...] = ()
    """Sentences about broken invariants of the workload."""
    wrong: str | None = None
    """Error message about the first wrong or missing response; None if all responses are correct."""
    is_unanswered: bool = False
    """Whether the stack or a service did not respond."""


def check_after_load(
    trial: TrialContext, running: RunningStack, services: RunningServices, before: Readings, load: LoadSummary
) -> PostLoadCheck:
    """Checks the stack and the services after a load; all must still run. `before`: the services' readings right before
    the load. `load`: the summary of the whole load."""
    stack, workload, timeout_s = trial.planned.stack, trial.planned.workload, trial.planned.load.timeout_s
    check, path = PostLoadCheck(), stack.find_path(workload.id)
    try:
        # Reads the counters first, because the checks below add to the services' work.
        work = services.work_since(before, load)
        check.work = tuple(replace(one, rows_differ=workload.work.rows_differ) for one in work)
        check.unexpected_work = tuple(find_unexpected_work(workload.work, check.work))
        check.discrepancies = find_discrepancies(workload.invariant, before.values, services.values(workload), load)
        for base_url in running.base_urls:
            tls = trial.planned.tls
            check_answers(workload, base_url, trial.inputs, path=path, timeout_s=timeout_s, tls=tls)
    except TargetError as error:
        check.wrong, check.is_unanswered = error.message, not isinstance(error, WrongAnswerError)
    return check


def find_unexpected_work(expected: Work, work: Sequence[ServiceWork]) -> list[str]:
    """Returns sentences about differences between the services' work and the workload's expectation. Ignores
    differences that the requests at the start and the end of the load can explain."""
    if not any(one.requests for one in work):
        return []
    found = [one.note for one in work if one.note]
    edge = max(one.edge for one in work)
    rows = None if any(one.rows is None for one in work) else sum(one.per_request(one.rows or 0) or 0 for one in work)
    statements = sum(one.per_request(one.statements) or 0 for one in work)
    for noun, wanted, did in (("data statements", expected.statements, statements), ("rows", expected.rows, rows)):
        if wanted is not None and did is not None and abs(did - wanted) > edge * max(wanted, 1) + NOISE:
            kinds = _describe_statements(work) if did > wanted else ""
            found.append(f"{did:,.2f} {noun} per request, the workload expects {wanted:g}{kinds}")
    return found


def _describe_statements(work: Sequence[ServiceWork]) -> str:
    kinds = [
        f"{kind.calls / one.requests:,.2f}× {kind.text[:80]}"
        for one in work
        for kind in one.by_statement[:3]
        if kind.data
    ]
    return f" ({'; '.join(kinds)})" if kinds else ""
