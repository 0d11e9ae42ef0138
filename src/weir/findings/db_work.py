"""Checks whether a point's stacks did the same work. The databases count the statements and rows.

A comparison of stacks is fair only if all stacks do the same work for a request. Statements that begin or end a
transaction or set up a connection do not count, because each stack decides how often to send BEGIN. Bytes do not count
either, because two drivers encode the same query differently.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import itemgetter

from weir.findings.evidence import CellTrials
from weir.findings.formatting import listed
from weir.findings.point_types import Comparison, StackFindings, StatementPerRequest, WorkComparison, WorkPerRequest
from weir.model.service_work import NOISE, ServiceWork

_MOST = 5


def sum_work_per_request(cell: CellTrials) -> tuple[WorkPerRequest, ...]:
    """Returns the work of each service per completed request, over all counted trials of a cell."""
    of_service: dict[str, list[tuple[int, ServiceWork]]] = {}
    for trial in cell.used:
        for work in trial.result.work:
            of_service.setdefault(work.service, []).append((trial.id, work))
    counted = {service: found for service, found in of_service.items() if any(work.requests for _, work in found)}
    return tuple(_merged(service, found) for service, found in counted.items())


def compare_work(stacks: Sequence[StackFindings]) -> WorkComparison | None:
    """Compares the work of a point's stacks; returns None if no service counted its work."""
    counted = [stack for stack in stacks if stack.arm == "main" and stack.work]
    if not counted:
        return None
    uncounted = [stack.name for stack in stacks if stack.arm == "main" and not stack.work and stack.evidence.used]
    rows_differ = next((work.rows_differ for stack in counted for work in stack.work if work.rows_differ), "")
    sentences = [_difference(counted, "data statements", _statements)]
    if not rows_differ:
        sentences.append(_difference(counted, "rows", _rows))
    differences = tuple(filter(None, sentences))
    beside = _describe_key_rows(counted) + (f" Rows are not compared: {rows_differ}." if rows_differ else "")
    if differences:
        return WorkComparison("different", differences, " ".join(differences) + beside)
    if len(counted) == 1 or uncounted:
        what = "; ".join(f"{stack.name}: {_said(stack)}" for stack in counted)
        beside = (f" The services counted no work of {listed(uncounted)}." if uncounted else "") + beside
        return WorkComparison("not compared", (), f"Work per request by the services' own counters: {what}.{beside}")
    names = listed([stack.name for stack in counted])
    what = f"{_statements(counted[0]):,.2f} data statements" if rows_differ else _said(counted[0])
    return WorkComparison(
        "same", (), f"{names} do the same work per request: {what}, by the services' own counters.{beside}"
    )


def downgrade_comparisons(comparisons: Sequence[Comparison], work: WorkComparison | None) -> list[Comparison]:
    """Marks valid comparisons as suspect if the stacks did different work."""
    if work is None or work.outcome != "different":
        return list(comparisons)
    return [replace(found, validity="suspect") if found.validity == "valid" else found for found in comparisons]


def _merged(service: str, found: Sequence[tuple[int, ServiceWork]]) -> WorkPerRequest:
    works = [work for _, work in found]
    requests = sum(work.requests for work in works)
    rows = None if any(work.rows is None for work in works) else sum(work.rows or 0 for work in works) / requests
    calls_by_kind: Counter[tuple[str, bool]] = Counter()
    for work in works:
        for kind in work.by_statement:
            calls_by_kind[kind.text, kind.data] += kind.calls
    return WorkPerRequest(
        service=service,
        statements=sum(work.statements for work in works) / requests,
        control_statements=sum(work.control_statements for work in works) / requests,
        rows=rows,
        key_rows=sum(work.key_rows for work in works) / requests,
        rows_differ=next((work.rows_differ for work in works if work.rows_differ), ""),
        bytes={name: sum(work.bytes.get(name, 0) for work in works) / requests for name in works[0].bytes},
        edge=sum(2 * work.edge_requests for work in works) / requests,
        most=tuple(
            StatementPerRequest(text, calls / requests, data)
            for (text, data), calls in calls_by_kind.most_common(_MOST)
        ),
        trials=tuple(trial for trial, _ in found),
        note=next((work.note for work in works if work.note), ""),
    )


def _statements(stack: StackFindings) -> float | None:
    return sum(work.statements for work in stack.work)


def _rows(stack: StackFindings) -> float | None:
    known = [work.rows for work in stack.work if work.rows is not None]
    return sum(known) if len(known) == len(stack.work) else None


def _difference(stacks: Sequence[StackFindings], noun: str, of: Callable[[StackFindings], float | None]) -> str | None:
    """Describes a difference in database work. Returns None for a difference within the uncertainty of the counts."""
    known = [(value, stack) for stack in stacks if (value := of(stack)) is not None]
    if len(known) < 2:
        return None
    (least, modest), (most, busiest) = min(known, key=itemgetter(0)), max(known, key=itemgetter(0))
    edge = max((work.edge for stack in (modest, busiest) for work in stack.work), default=0.0)
    if most - least <= edge * max(most, 1) + NOISE:
        return None
    told = listed([f"{stack.name} {value:,.2f}" for value, stack in known])
    return (
        f"The stacks do not do the same work: {noun} per request are {told}. Most come from {busiest.name}"
        f"{_of_what(busiest)}."
    )


def _describe_key_rows(stacks: Sequence[StackFindings]) -> str:
    """Returns a note about rows that tell a driver only the keys of inserted rows. Comparisons ignore these rows."""
    given = [(stack.name, sum(work.key_rows for work in stack.work)) for stack in stacks]
    told = listed([f"{name} {rows:,.2f}" for name, rows in given if rows >= NOISE])
    return f" In addition, the database returned the keys of inserted rows: {told}." if told else ""


def _of_what(stack: StackFindings) -> str:
    kinds = [f"{kind.per_request:,.2f}× {kind.text[:60]}" for work in stack.work for kind in work.most if kind.data][:3]
    return f" ({'; '.join(kinds)})" if kinds else ""


def _said(stack: StackFindings) -> str:
    rows = _rows(stack)
    text = f"{_statements(stack):,.2f} data statements"
    return text if rows is None else f"{text} and {rows:,.2f} rows"
