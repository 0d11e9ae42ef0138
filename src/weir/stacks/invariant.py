"""What must hold in the database after a trial: SQL that gives a number, and what that number must be. Pure: numbers in, sentences out.

Read before and after the measured load; what came before it (checks, priming) is so left out of a growth.
"""

from collections.abc import Mapping
from typing import Literal

from pydantic import model_validator

from weir.model.records import LoadSummary
from weir.toml_file import Table


class Invariant(Table):
    """One thing that must hold, `[invariant.NAME]` of a workload."""

    sql: str
    """A query that gives one whole number, in any database that holds the dataset."""
    equals: int | None = None
    """What it must be after the load."""
    grows_by: int | Literal["successes"] | None = None
    """How much it must grow over the load. `successes`: by the right answers, or by up to one more for each request that may have been
    carried out without its answer being seen (failed, or in flight at the end)."""

    @model_validator(mode="after")
    def _says_what_must_hold(self) -> "Invariant":
        if (self.equals is None) == (self.grows_by is None):
            raise ValueError("expected either 'equals' or 'grows_by'")
        return self


def discrepancies(
    invariants: Mapping[str, Invariant], before: Mapping[str, int], after: Mapping[str, int], summary: LoadSummary
) -> tuple[str, ...]:
    """What does not hold, in words; empty where all holds.

    Args:
        invariants: what must hold, by name.
        before: what each query gave before the measured load; one that is missing could not be asked.
        after: and after it.
        summary: what the load came to.
    """
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
                also = f" ({unseen:,} more have no right answer)" if unseen else ""
                found.append(f"invariant {name}: grew by {growth:,}, expected the {requests.ok:,} successful requests{also}")
        elif growth != invariant.grows_by:
            found.append(f"invariant {name}: grew by {growth:,}, expected {invariant.grows_by:,}")
    return tuple(found)
