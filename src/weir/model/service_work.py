"""The work of a service for a trial's requests, from the service's counters: statements, rows and bytes, total and per
request."""

from dataclasses import dataclass, field

NOISE = 0.01
"""Maximum number of statements or rows per request from housekeeping, such as a pool that opens a connection."""


@dataclass(frozen=True, slots=True)
class StatementWork:
    """One kind of statement. The database distinguishes kinds without the values in statements."""

    text: str
    calls: int
    rows: int | None
    """Rows returned or changed; None if the database does not count them."""
    data: bool
    """False for statements without data: BEGIN, COMMIT, SET."""


@dataclass(frozen=True, slots=True)
class ServiceWork:
    """The work of one service during a trial's measured load."""

    service: str
    requests: int
    """Number of completed requests, the divisor of the totals."""
    edge_requests: int
    """Number of requests that may have caused work without completing: they failed, or were in flight at the end."""
    statements: int
    """Number of data statements."""
    control_statements: int
    rows: int | None
    """Rows that data statements returned or changed; None if the database does not count them."""
    bytes: dict[str, int] = field(default_factory=dict)
    """A dict from counter to bytes: `sent`, `received` (MariaDB); `pages` (read × page size), `log` (PostgreSQL)."""
    by_statement: tuple[StatementWork, ...] = ()
    """The most frequent statements, data statements and others."""
    note: str = ""
    """Why the counters may be too low; empty if they are complete."""
    key_rows: int = 0
    """Rows that returned the keys of inserted rows to a driver, if the database counts such rows separately."""
    rows_differ: str = ""
    """Why the rows of equivalent stacks may differ on this workload; empty if they must be equal."""

    def per_request(self, total: float) -> float | None:
        """Returns a total ÷ completed requests; None without completed requests."""
        return total / self.requests if self.requests else None

    @property
    def edge(self) -> float:
        """The share by which requests at the edges of the window can change a figure per request. A part of a request
        in flight at the start was counted before; a request in flight at the end has no response."""
        return 2 * self.edge_requests / self.requests if self.requests else 0.0
