"""Work of a service, such as a database, for a trial's requests: statements, rows and bytes from its own counters."""

from dataclasses import dataclass, field

NOISE = 0.01
"""Maximum difference in statements or rows per request that weir ignores. Housekeeping causes such differences."""


@dataclass(frozen=True, slots=True)
class StatementWork:
    """Calls and rows of one kind of statement. Statements that differ only in values are of one kind."""

    text: str
    calls: int
    rows: int | None
    """Rows that the statements returned or changed. None if the database does not count these rows."""
    data: bool
    """Whether the statement reads or changes data. False for BEGIN, COMMIT and SET."""


@dataclass(frozen=True, slots=True)
class ServiceWork:
    """The work of one service during a trial's measured load."""

    service: str
    requests: int
    """Number of completed requests, by which weir divides the totals."""
    edge_requests: int
    """Number of failed or unanswered requests. They may have caused work without a whole response."""
    statements: int
    """Number of statements that read or change data."""
    control_statements: int
    rows: int | None
    """Rows that these statements returned or changed. None if the database does not count these rows."""
    bytes: dict[str, int] = field(default_factory=dict)
    """A dict from counter to bytes. MariaDB: `sent`, `received`. PostgreSQL: `pages` (pages × size), `log` (WAL)."""
    by_statement: tuple[StatementWork, ...] = ()
    """The most frequent kinds of statement, including BEGIN, COMMIT and SET."""
    note: str = ""
    """Why the counters may be too low. Empty if the counters are complete."""
    key_rows: int = 0
    """Rows that the database returned after inserts, because a driver asked for keys. 0 if not counted separately."""
    rows_differ: str = ""
    """Why correct stacks may need different numbers of rows for this workload. Empty if the numbers must be equal."""

    def per_request(self, total: float) -> float | None:
        return total / self.requests if self.requests else None

    @property
    def edge(self) -> float:
        """Maximum relative error of a figure per request, caused by `edge_requests`."""
        return 2 * self.edge_requests / self.requests if self.requests else 0.0
