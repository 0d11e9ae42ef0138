"""Counters of a database, and the database's work between two readings. Pure arithmetic.

Counters also include checks and warm-up. So weir reads the counters right before and right after the measured load: the
difference is the work for this load.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from weir.model.load_records import LoadSummary
from weir.model.service_work import ServiceWork, StatementWork

MOST_STATEMENTS = 20
"""Maximum number of statement kinds in a trial's result."""

_CONTROL = (
    "ABORT ADMIN BEGIN CHECKPOINT CLOSE COMMIT DEALLOCATE DISCARD END LISTEN NOTIFY PREPARE RELEASE RESET ROLLBACK "
    "SAVEPOINT SET SHOW START UNLISTEN USE"
)
"""First words of statements that neither read nor change data. All other statements count as data statements."""


@dataclass(frozen=True, slots=True)
class Count:
    """Calls and rows of one kind of statement."""

    calls: int
    rows: int | None


@dataclass(frozen=True, slots=True)
class Counters:
    """One reading of a database's counters."""

    statements: Mapping[tuple[str, ...], Count]
    """Counts by kind of statement. A key's last part is the statement's text; earlier parts may be a role and an id."""
    bytes: Mapping[str, int] = field(default_factory=dict)
    rows: int | None = None
    """Total number of rows, if the database does not count rows by statement."""
    key_rows: int = 0
    """Number of rows that the database returned only for generated keys. Other counts exclude these rows."""
    losses: int = 0
    """Number of times that the database discarded counters."""


def is_data_statement(text: str) -> bool:
    """Returns True if a statement reads or changes data (SELECT, INSERT and others). Only its first word counts."""
    words = text.lstrip("(").split(maxsplit=1)
    return not words or words[0].rstrip(";").upper() not in _CONTROL.split()


def compute_work(service: str, before: Counters, after: Counters, summary: LoadSummary) -> ServiceWork:
    """Returns a database's work for the load of `summary`, from the readings right before and right after the load."""
    kinds: list[StatementWork] = []
    for key, count in after.statements.items():
        earlier = before.statements.get(key, Count(0, 0))
        calls = count.calls - earlier.calls
        if calls > 0:
            rows = None if count.rows is None else count.rows - (earlier.rows or 0)
            kinds.append(StatementWork(" ".join(key[-1].split())[:300], calls, rows, is_data_statement(key[-1])))
    kinds.sort(key=lambda kind: (-kind.calls, kind.text))
    data = [kind for kind in kinds if kind.data]
    rows = None if any(kind.rows is None for kind in data) else sum(kind.rows or 0 for kind in data)
    requests, lost = summary.requests, after.losses - before.losses
    return ServiceWork(
        service=service,
        requests=requests.completed,
        edge_requests=requests.unanswered + requests.failed - summary.errors.check,
        statements=sum(kind.calls for kind in data),
        control_statements=sum(kind.calls for kind in kinds if not kind.data),
        rows=rows if after.rows is None else after.rows - (before.rows or 0),
        key_rows=after.key_rows - before.key_rows,
        bytes={name: value - before.bytes.get(name, 0) for name, value in after.bytes.items()},
        by_statement=tuple(kinds[:MOST_STATEMENTS]),
        note=f"the database discarded counters {lost} times: it counts only a limited number of statement kinds"
        if lost > 0
        else "",
    )
