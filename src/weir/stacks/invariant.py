"""Checks invariants: the result of a database query must have an expected value or growth. Pure. weir runs the queries
directly before and after the measured load, so the growth excludes checks and warm-up."""

from collections.abc import Mapping
from typing import Literal

from pydantic import model_validator

from weir.model.load_records import LoadSummary
from weir.toml_file import Table


class Invariant(Table):
    """The table `[invariant.NAME]` of a workload."""

    sql: str
    """SQL query with one whole number as the result. Every database of the stacks must accept the query."""
    equals: int | None = None
    """Expected result of the query after the load."""
    grows_by: int | Literal["successes"] | None = None
    """Expected growth of the result during the load. `successes`: the number of successful requests. The growth
    may also include requests that failed or were in flight at the end of the load."""

    @model_validator(mode="after")
    def _says_what_must_hold(self) -> "Invariant":
        if (self.equals is None) == (self.grows_by is None):
            raise ValueError("expected either 'equals' or 'grows_by'")
        return self


def find_discrepancies(
    invariants: Mapping[str, Invariant], before: Mapping[str, int], after: Mapping[str, int], summary: LoadSummary
) -> tuple[str, ...]:
    """Returns a sentence for each violated invariant. `before` and `after`: the results of the queries before and after
    the measured load. Skips an invariant without results: weir has no access to its database."""
    requests = summary.requests
    found = []
    for name, invariant in invariants.items():
        if name not in before or name not in after:
            continue
        value, growth = after[name], after[name] - before[name]
        if invariant.equals is not None:
            if value != invariant.equals:
                found.append(f"invariant {name}: found {value:,}, expected {invariant.equals:,}")
        elif invariant.grows_by == "successes":
            unseen = requests.unanswered + requests.failed
            if not requests.ok <= growth <= requests.ok + unseen:
                also = f" and at most {unseen:,} requests with an unknown result" if unseen else ""
                expected = f"expected the {requests.ok:,} successful requests{also}"
                found.append(f"invariant {name}: grew by {growth:,}, {expected}")
        elif growth != invariant.grows_by:
            found.append(f"invariant {name}: grew by {growth:,}, expected {invariant.grows_by:,}")
    return tuple(found)
