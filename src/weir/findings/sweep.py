"""Groups points into series along one axis: the amount of load, or a setting that the study varies."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from weir.findings.point_types import Point
from weir.findings.points import PointCells, format_where

CONNECTIONS = "connections"
RATE = "rate_rps"
LOADS = (CONNECTIONS, RATE)
"""The axes of the amount of load; any other axis is a setting."""
_UNITS_S = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0}

_P = TypeVar("_P", PointCells, Point)


@dataclass(frozen=True, slots=True)
class AxisSeries(Generic[_P]):
    """Points that differ in only one number."""

    axis: str
    """One of `LOADS`, or the name of the setting."""
    where: str
    """The coordinates that all points of the series share, as a text."""
    points: dict[float, _P]
    """A dict from the value on the axis to the point."""


def group_by_axis(points: Sequence[_P]) -> list[AxisSeries[_P]]:
    """Returns every series that has at least two points."""
    found: dict[tuple[str, ...], AxisSeries[_P]] = {}
    for point in points:
        axes: list[tuple[str, float, str]] = []
        if point.amount is not None:
            axes.append((point.axis, point.amount, point.workload))
        numbers = {name: _number(value) for name, value in point.coordinates.items()}
        load = point.load if isinstance(point.load, str) else point.load.label
        axes += [(name, number, f"{point.workload}, {load}") for name, number in numbers.items() if number is not None]
        for axis, number, what in axes:
            others: dict[str, str] = {name: value for name, value in point.coordinates.items() if name != axis}
            key = (axis, what, *sorted(f"{name}={value}" for name, value in others.items()))
            found.setdefault(key, AxisSeries(axis, format_where(what, others), {})).points[number] = point
    return [series for series in found.values() if len(series.points) > 1]


def get_axis_unit(axis: str) -> str:
    """Returns the unit of an axis, such as 'connections', 'requests/s', 'replicas' or 's of delay'."""
    _, dot, setting = axis.rpartition(".")
    if dot:
        return f"s of {setting}"
    return {CONNECTIONS: "connections", RATE: "requests/s"}.get(axis, axis)


def _number(text: str) -> float | None:
    # A setting of a service may be a duration.
    match = re.fullmatch(r"([\d.]+)(ms|s|m)?", text)
    try:
        number = float(match.group(1)) * _UNITS_S[match.group(2) or ""] if match else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) and number > 0 else None
