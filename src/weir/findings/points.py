"""Groups the cells of a run into points, and names the points.

A point is a workload, a load, and a value for each coordinate that the study varies (a limit, replicas, CPUs). A cell
belongs to every point that agrees with the cell's own coordinates. For example, a stack without the setting `threads`
belongs to the points of all numbers of threads. weir does not compare cells of different points.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

from weir.findings.evidence import CellTrials, group_by_cell
from weir.model.load import Load, OpenLoad
from weir.model.run_types import Cell, Trial, coordinate_text


@dataclass(frozen=True, slots=True)
class PointCells:
    """The cells of a point with their trials, sorted by id. Each A/A copy follows its original."""

    workload: str
    load: Load
    coordinates: dict[str, str]
    members: tuple[CellTrials, ...]

    @property
    def axis(self) -> Literal["connections", "rate_rps"]:
        """The unit of `amount`: `connections` or `rate_rps`."""
        return "rate_rps" if isinstance(self.load, OpenLoad) else "connections"

    @property
    def amount(self) -> float | None:
        """Amount of load: users, or arrivals per second; None if the amount changes over time."""
        level = self.load.rate_rps if isinstance(self.load, OpenLoad) else self.load.users
        return None if isinstance(level, tuple) else float(level)

    @property
    def where(self) -> str:
        """The workload and the coordinates, without the load. Example: 'echo, threads 200'."""
        return format_where(self.workload, self.coordinates)

    @property
    def place(self) -> dict[str, str]:
        """The point's workload, load and coordinates, under the same keys as in published figures."""
        place = {"workload": self.workload, "connections": str(self.load.connections), **self.coordinates}
        if isinstance(self.load, OpenLoad) and not isinstance(self.load.rate_rps, tuple):
            place["rate_rps"] = f"{self.load.rate_rps:g}"
        return place


def format_where(workload: str, coordinates: Mapping[str, str]) -> str:
    """Names a workload and its coordinates. Example: 'echo, threads 200'."""
    return ", ".join([workload, *(coordinate_text(name, value) for name, value in coordinates.items())])


def group_points(cells: Sequence[Cell], trials: Sequence[Trial]) -> list[PointCells]:
    """Groups cells into points, in the order of the cells."""
    together: dict[tuple[str, Load], list[CellTrials]] = {}
    for of in group_by_cell(sorted(cells, key=lambda cell: cell.id), trials):
        together.setdefault((of.cell.workload, of.cell.load), []).append(of)
    points = []
    for (workload, load), mine in together.items():
        values = _values([of.cell for of in mine])
        for combination in product(*values.values()):
            coordinates = dict(zip(values, combination, strict=True))
            members = [of for of in mine if of.cell.coordinates.items() <= coordinates.items()]
            if members:
                points.append(PointCells(workload, load, coordinates, tuple(_copies_last(members))))
    return points


def find_baseline(members: Sequence[CellTrials], named: str | None) -> CellTrials | None:
    """Returns the stack whose label or id is `named`, else the first stack; None without stacks."""
    main = [member for member in members if member.cell.arm == "main"]
    wanted = [member for member in main if named in (member.cell.stack_label, member.cell.stack)]
    return next(iter([*wanted, *main]), None)


def pair_with_baseline(members: Sequence[CellTrials], named: str | None) -> list[tuple[CellTrials, CellTrials]]:
    """Pairs each stack with the baseline. Leaves out A/A copies."""
    baseline = find_baseline(members, named)
    main = [member for member in members if member.cell.arm == "main"]
    return [(member, baseline) for member in main if baseline is not None and member is not baseline]


def count_planned_comparisons(cells: Sequence[Cell], baseline: str | None) -> int:
    """Returns the planned number of comparisons on one metric, as Holm's correction needs it."""
    pairs = [pair for point in group_points(cells, []) for pair in pair_with_baseline(point.members, baseline)]
    return len({(member.cell.id, against.cell.id) for member, against in pairs})


class PointNames:
    """Names points by the coordinates that vary in a run. If nothing varies, names points by workload and load."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        self._workloads = {cell.workload for cell in cells}
        self._loads = {cell.load for cell in cells}
        self._varying = [name for name, values in _values(cells).items() if len(values) > 1]

    def of(self, place: PointCells | Cell) -> str:
        """Names a point or a cell by the varying coordinates. Example: '50 connections, threads 200'."""
        workload = [place.workload] if len(self._workloads) > 1 else []
        return ", ".join(workload + self._parts(place)) or f"{place.workload}, {place.load.label}"

    def where(self, point: PointCells) -> str:
        """Returns the first words of a sentence about a point; '' if nothing varies. Example: 'On echo: '."""
        parts = self._parts(point)
        words = [f"With {', '.join(parts)}"] if parts else []
        if len(self._workloads) > 1:
            words.append(f"{'on' if words else 'On'} {point.workload}")
        return f"{' '.join(words)}: " if words else ""

    def _parts(self, place: PointCells | Cell) -> list[str]:
        parts = [place.load.label] if len(self._loads) > 1 else []
        varying = [name for name in self._varying if name in place.coordinates]
        return parts + [coordinate_text(name, place.coordinates[name]) for name in varying]


def _values(cells: Sequence[Cell]) -> dict[str, list[str]]:
    """Returns the values of each coordinate, in the order of the cells."""
    values: dict[str, dict[str, None]] = {}
    for cell in cells:
        for name, value in cell.coordinates.items():
            values.setdefault(name, {})[value] = None
    return {name: list(found) for name, found in values.items()}


def _copies_last(members: Sequence[CellTrials]) -> list[CellTrials]:
    systems = [(one.cell.stack, one.cell.variant) for one in members]
    return sorted(members, key=lambda one: (systems.index((one.cell.stack, one.cell.variant)), one.cell.arm == "aa"))
