"""What services did for the requests of a stack."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class StatementPerRequest:
    """One kind of statement of a service, by its own counters."""

    text: str
    """As the service counts it, its values left out."""
    per_request: float
    """Executions."""
    data: bool
    """False of what begins, ends or sets up."""


@dataclass(frozen=True, slots=True)
class WorkPerRequest:
    """What one service did for a completed request, over all used trials."""

    service: str
    statements: float
    """Data statements."""
    control_statements: float
    """Those that begin, end and set up."""
    rows: float | None
    """None where the service does not count them."""
    key_rows: float
    """Beside these: inserted rows that a driver had given back to learn their keys."""
    rows_differ: str
    """Why the rows of stacks that do the same may differ; empty where they must not."""
    bytes: dict[str, float]
    """By what the service calls them."""
    edge: float
    """How far requests at the edges of the loads can move these, as a share."""
    most: tuple[StatementPerRequest, ...]
    trials: tuple[int, ...]
    """By their numbers in the run file."""
    note: str = ""
    """Why it may be too low."""


@dataclass(frozen=True, slots=True)
class WorkComparison:
    """Whether the stacks of a point did the same work per request."""

    outcome: Literal["same", "different", "not compared"]
    """`not compared`: of fewer than two stacks there are figures."""
    differences: tuple[str, ...]
    """A sentence each."""
    sentence: str
