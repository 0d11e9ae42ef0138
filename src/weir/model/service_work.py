"""The work of a service for a trial's requests, by its own counters: statements, rows and bytes, in total and per
request."""

from dataclasses import dataclass, field

NOISE = 0.01
"""Statements or rows per request that a service's own housekeeping may add, such as a pool that opens a connection."""


@dataclass(frozen=True, slots=True)
class StatementWork:
    """One kind of statement; the database separates kinds without looking at values."""

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
    """Completed requests, by which totals are divided."""
    edge_requests: int
    """Requests that may have caused work without completing: failed, or in flight at the end."""
    statements: int
    """Data statements."""
    control_statements: int
    rows: int | None
    """Rows that data statements returned or changed; None if the database does not count them."""
    bytes: dict[str, int] = field(default_factory=dict)
    """By counter: `sent` and `received` (MariaDB); `pages` (pages read × their size) and `log` (PostgreSQL)."""
    by_statement: tuple[StatementWork, ...] = ()
    """The most frequent statements, with and without data."""
    note: str = ""
    """Why the counters may be too low; empty if they are complete."""
    key_rows: int = 0
    """Rows returned to a driver with the keys of its inserted rows, if the database counts them separately."""
    rows_differ: str = ""
    """Why the rows of equivalent stacks may differ on this workload; empty if they must be equal."""

    def per_request(self, total: float) -> float | None:
        """Returns a total ÷ completed requests; None without completed requests."""
        return total / self.requests if self.requests else None

    @property
    def edge(self) -> float:
        """The share by which requests at the edges of the window can change a figure per request: one in flight at the
        start was partly counted before, one in flight at the end has no answer."""
        return 2 * self.edge_requests / self.requests if self.requests else 0.0
