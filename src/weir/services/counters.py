"""Counters of a database, read twice, and the work that lies between. Pure arithmetic.

A database counts for as long as it runs: checks, priming and the measured load alike. Read right before and right after the measured load,
the difference is that load's alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from weir.model.records import LoadSummary
from weir.model.work import ServiceWork, StatementWork

MOST_STATEMENTS = 20
"""Kinds of statement that are kept with a trial."""

_CONTROL = frozenset(
    {
        "ABORT", "ADMIN", "BEGIN", "CHECKPOINT", "CLOSE", "COMMIT", "DEALLOCATE", "DISCARD", "END", "LISTEN", "NOTIFY", "PREPARE",
        "RELEASE", "RESET", "ROLLBACK", "SAVEPOINT", "SET", "SHOW", "START", "UNLISTEN", "USE",
    }
)  # fmt: skip
"""First words of statements that move no data. Everything else counts as a data statement, what nobody thought of included."""


@dataclass(frozen=True, slots=True)
class Count:
    """What one kind of statement has come to."""

    calls: int
    rows: int | None


@dataclass(frozen=True, slots=True)
class Counters:
    """What a database has counted so far."""

    statements: Mapping[tuple[str, ...], Count]
    """By a key whose last part is the statement's text; equal texts may differ in the rest (the role, for instance)."""
    bytes: Mapping[str, int] = field(default_factory=dict)
    rows: int | None = None
    """Rows in total, where they are not counted by statement."""
    key_rows: int = 0
    """Rows that are not among `rows`: inserted rows given back so that a driver learns their keys. Not counted by statement either."""
    losses: int = 0
    """Times that the database has thrown counters away."""


def is_data(text: str) -> bool:
    """Whether a statement moves data, by its first word."""
    words = text.lstrip("(").split(maxsplit=1)
    return not words or words[0].rstrip(";").upper() not in _CONTROL


def work_between(service: str, before: Counters, after: Counters, summary: LoadSummary) -> ServiceWork:
    """The work between two readings.

    Args:
        service: whose counters these are.
        before: read before the measured load, when nothing was asked.
        after: read after it.
        summary: what the load came to.
    """
    kinds: list[StatementWork] = []
    for key, count in after.statements.items():
        earlier = before.statements.get(key, Count(0, 0))
        calls = count.calls - earlier.calls
        if calls > 0:
            rows = None if count.rows is None else count.rows - (earlier.rows or 0)
            kinds.append(StatementWork(" ".join(key[-1].split())[:300], calls, rows, is_data(key[-1])))
    kinds.sort(key=lambda kind: (-kind.calls, kind.text))
    data = [kind for kind in kinds if kind.data]
    if after.rows is not None:
        rows = after.rows - (before.rows or 0)
    else:
        rows = None if any(kind.rows is None for kind in data) else sum(kind.rows or 0 for kind in data)
    requests = summary.requests
    lost = after.losses - before.losses
    return ServiceWork(
        service=service,
        requests=requests.completed,
        edge_requests=requests.unanswered + requests.failed - summary.errors.check,
        statements=sum(kind.calls for kind in data),
        control_statements=sum(kind.calls for kind in kinds if not kind.data),
        rows=rows,
        key_rows=after.key_rows - before.key_rows,
        bytes={name: value - before.bytes.get(name, 0) for name, value in after.bytes.items()},
        by_statement=tuple(kinds[:MOST_STATEMENTS]),
        note=f"the database threw counters away {lost} times: there are more kinds of statement than it keeps" if lost > 0 else "",
    )
