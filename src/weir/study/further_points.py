"""Plans additional cells of a study, near a load with equal throughput of two stacks."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from weir.model.load import OpenLoad
from weir.model.run_types import Cell
from weir.study.study import PlannedCell, Study


def plan_cells_at(study: Study, place: float, stack_cpus: int) -> list[PlannedCell]:
    """Returns the study's cells at the load `place`, without the second copy of a stack, with ids from 1. `place`: the
    value of the load that the study varies (connections, users or rate)."""
    matrix = study.file.matrix
    key = "rate_rps" if matrix.rate_rps is not None else "users" if matrix.users is not None else "connections"
    value = round(place) if key == "connections" else place
    file = study.file.model_copy(
        update={
            "matrix": matrix.model_copy(update={key: [value]}),
            "method": study.file.method.model_copy(update={"aa": None}),
            # Overrides for other amounts of load do not apply.
            "override": [override for override in study.file.override if key not in override.where],
            "published": [],
        }
    )
    return replace(study, file=file).cells(stack_cpus)


def select_cells(
    planned: Iterable[PlannedCell], *, workload: str, coordinates: Mapping[str, str], labels: Collection[str]
) -> list[PlannedCell]:
    """Returns the cells of the stacks `labels` at a point. A cell that lacks a coordinate matches any value."""
    return [
        one
        for one in planned
        if one.cell.workload == workload
        and one.cell.stack_label in labels
        and all(coordinates.get(name) == value for name, value in one.cell.coordinates.items())
    ]


def read_amount(cell: Cell) -> float:
    """Returns the connections, users or rate of a cell from `plan_cells_at`."""
    if isinstance(cell.load, OpenLoad):
        assert not isinstance(cell.load.rate_rps, tuple)
        return float(cell.load.rate_rps)
    return float(cell.load.connections)
