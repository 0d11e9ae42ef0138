"""Cells between those of a study, where its stacks change sides. Starts nothing."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from weir.model.load import OpenLoad
from weir.model.run import Cell
from weir.study.study import PlannedCell, Study


def cells_at(study: Study, place: float, stack_cpus: int) -> list[PlannedCell]:
    """Every main cell of the study at one more amount of load, with the numbers that they would have alone.

    Args:
        study: the study.
        place: connections, users or a rate, whichever the study varies.
        stack_cpus: the number of CPUs that a stack gets where the study does not say.
    """
    matrix = study.file.matrix
    if matrix.rates_rps is not None:
        key, value = "rates_rps", place
    elif matrix.users is not None:
        key, value = "users", place
    else:
        key, value = "connections", round(place)
    file = study.file.model_copy(
        update={
            "matrix": matrix.model_copy(update={key: [value]}),
            "method": study.file.method.model_copy(update={"aa": None}),
            # What is said of single amounts of load is not said of this one.
            "override": [override for override in study.file.override if key not in override.where],
            "published": [],
        }
    )
    return replace(study, file=file).cells(stack_cpus)


def chosen(planned: Iterable[PlannedCell], *, workload: str, coordinates: Mapping[str, str], labels: Collection[str]) -> list[PlannedCell]:
    """Those of two stacks at one place: what lacks a coordinate stands at all of its values."""
    return [
        one
        for one in planned
        if one.cell.workload == workload
        and one.cell.stack_label in labels
        and all(coordinates.get(name) == value for name, value in one.cell.coordinates.items())
    ]


def numbered_from(planned: Sequence[PlannedCell], first: int) -> list[PlannedCell]:
    """The cells with ids from `first` on."""
    return [replace(one, cell=replace(one.cell, id=first + index)) for index, one in enumerate(planned)]


def place_of(cell: Cell) -> float:
    """The amount of load of a cell that `cells_at` has made."""
    if isinstance(cell.load, OpenLoad):
        assert not isinstance(cell.load.rate_rps, tuple)
        return float(cell.load.rate_rps)
    return float(cell.load.connections)
