"""What a service did for a trial's requests, by its own counters: statements, rows and bytes, as totals and per request."""

from dataclasses import dataclass, field

NOISE = 0.01
"""Statements or rows per request that a service's own housekeeping may add, such as a pool that opens a connection."""


@dataclass(frozen=True, slots=True)
class StatementWork:
    """One kind of statement: as the database tells them apart, without the values in it."""

    text: str
    calls: int
    rows: int | None
    """Rows returned or changed; None where the database does not say."""
    data: bool
    """False of what begins, ends or sets up (BEGIN, COMMIT, SET) and moves no data."""


@dataclass(frozen=True, slots=True)
class ServiceWork:
    """What one service did over a trial's measured load."""

    service: str
    requests: int
    """Completed requests: what the totals are divided by."""
    edge_requests: int
    """Requests that the service may have worked for although they did not complete: failed, or in flight at the end."""
    statements: int
    """Data statements."""
    control_statements: int
    rows: int | None
    """Rows that data statements returned or changed; None where the database does not say."""
    bytes: dict[str, int] = field(default_factory=dict)
    """By what the database counts: `sent` and `received` (MariaDB), `pages` (pages read, times their size) and `log` (PostgreSQL)."""
    by_statement: tuple[StatementWork, ...] = ()
    """The most frequent ones, data and control."""
    note: str = ""
    """Why the counters may be too low; empty where nothing was lost."""
    key_rows: int = 0
    """Rows that a driver had given back to learn the keys of what it inserted, where the database counts them apart."""
    rows_differ: str = ""
    """Why rows of stacks that do the same may differ on this workload; empty where they must not."""

    def per_request(self, total: float) -> float | None:
        """A total ÷ completed requests; None where none completed."""
        return total / self.requests if self.requests else None

    @property
    def edge(self) -> float:
        """How far requests at the edges of the window can move a figure per request, as a share of it.

        A request in flight at the start was partly counted before, one in flight at the end has no answer to be divided by.
        """
        return 2 * self.edge_requests / self.requests if self.requests else 0.0


def service_work_from_dict(values: dict[str, object]) -> ServiceWork:
    """The inverse of `dataclasses.asdict`."""
    statements = values.get("by_statement") or []
    assert isinstance(statements, list)
    return ServiceWork(**{**values, "by_statement": tuple(StatementWork(**one) for one in statements)})  # type: ignore[arg-type]
