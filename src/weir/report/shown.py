"""Which stacks of a point have lines in its charts over time, and of which trials these are."""

from collections.abc import Mapping
from dataclasses import dataclass

from weir.findings.points import PointCells
from weir.model.run import Ceiling


@dataclass(frozen=True, slots=True)
class Shown:
    """A stack with a used trial; no A/A copy is among them."""

    label: str
    name: str
    colour: int
    trials: tuple[int, ...]
    """All that are used."""
    ceilings: tuple[Ceiling, ...]
    has_failed: bool
    """Whether any request of these trials did."""


def shown_at(point: PointCells, names: Mapping[int, str]) -> list[Shown]:
    """Those of a point, in its order.

    Args:
        point: with its cells.
        names: of cells, by id.
    """
    main = [member for member in point.members if member.cell.arm == "main"]
    return [
        Shown(
            member.cell.stack_label,
            names[member.cell.id],
            colour,
            member.evidence.used,
            member.cell.ceilings,
            any(trial.result.summary is not None and trial.result.summary.requests.failed for trial in member.used),
        )
        for colour, member in enumerate(main)
        if member.used
    ]
