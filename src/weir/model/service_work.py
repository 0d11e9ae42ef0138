"""Work of a service for a trial's requests, from the service's counters: statements, rows and bytes."""

from dataclasses import dataclass, field

NOISE = 0.01
"""Maximum number of statements or rows per request from housekeeping, such as a pool that opens a connection."""


@dataclass(frozen=True, slots=True)
class StatementWork:
    """One kind of statement. Statements that differ only in values are of one kind."""

    text: str
    calls: int
    rows: int | None
    """Rows returned or changed. None if the database does not count such rows."""
    data: bool
    """False for statements without data: BEGIN, COMMIT, SET."""


@dataclass(frozen=True, slots=True)
class ServiceWork:
    """The work of one service during a trial's measured load."""

    service: str
    requests: int
    """Number of completed requests, the divisor of the totals."""
    edge_requests: int
    """Number of requests that may have caused work without completing: failed requests, or requests in flight at the
    end."""
    statements: int
    """Number of data statements."""
    control_statements: int
    rows: int | None
    """Rows that data statements returned or changed. None if the database does not count such rows."""
    bytes: dict[str, int] = field(default_factory=dict)
    """A dict from counter to bytes: `sent`, `received` (MariaDB); `pages` (read × page size), `log` (PostgreSQL)."""
    by_statement: tuple[StatementWork, ...] = ()
    """The most frequent statements, with and without data."""
    note: str = ""
    """Why the counters may be too low. Empty if the counters are complete."""
    key_rows: int = 0
    """Rows that returned the keys of inserted rows to a driver, if the database counts such rows separately."""
    rows_differ: str = ""
    """Why the rows of equivalent stacks may differ on this workload. Empty if the rows must be equal."""

    def per_request(self, total: float) -> float | None:
        """Returns a total ÷ completed requests, or None without completed requests."""
        return total / self.requests if self.requests else None

    @property
    def edge(self) -> float:
        """Maximum relative error of a figure per request, from requests at the edges of the window."""
        return 2 * self.edge_requests / self.requests if self.requests else 0.0
