"""Invariants of a workload in the database: a query with one number, and its expected value or growth. Pure.

weir runs the queries right before and after the measured load, so checks and warm-up do not count in a growth.
"""

from collections.abc import Mapping
from typing import Literal

from pydantic import model_validator

from weir.model.records import LoadSummary
from weir.toml_file import Table


class Invariant(Table):
    """An invariant, `[invariant.NAME]` of a workload."""

    sql: str
    """A query with one whole number as its result, for any database with the dataset."""
    equals: int | None = None
    """Expected result of the query after the load."""
    grows_by: int | Literal["successes"] | None = None
    """Expected growth of the result during the load. `successes`: the number of successful requests, plus at most the
    number of requests without a known result (failed, or in flight at the end)."""

    @model_validator(mode="after")
    def _says_what_must_hold(self) -> "Invariant":
        if (self.equals is None) == (self.grows_by is None):
            raise ValueError("expected either 'equals' or 'grows_by'")
        return self


def find_discrepancies(
    invariants: Mapping[str, Invariant], before: Mapping[str, int], after: Mapping[str, int], summary: LoadSummary
) -> tuple[str, ...]:
    """Returns a sentence for each broken invariant, from the results of the queries before and after the measured load.
    Skips invariants without results, because weir has no access to their database."""
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
                also = f" ({unseen:,} more have no known result)" if unseen else ""
                expected = f"expected the {requests.ok:,} successful requests{also}"
                found.append(f"invariant {name}: grew by {growth:,}, {expected}")
        elif growth != invariant.grows_by:
            found.append(f"invariant {name}: grew by {growth:,}, expected {invariant.grows_by:,}")
    return tuple(found)
