"""Groups points into series along one axis: the amount of load, or a setting that the study varies."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from weir.model.run_types import coordinate_text

CONNECTIONS = "connections"
RATE = "rate_rps"
LOADS = (CONNECTIONS, RATE)
"""The axes of the amount of load; any other axis is a setting."""
_UNITS_S = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0}


class _Placed(Protocol):
    @property
    def workload(self) -> str: ...
    @property
    def load_label(self) -> str: ...
    @property
    def axis(self) -> str: ...
    @property
    def amount(self) -> float | None: ...
    @property
    def coordinates(self) -> Mapping[str, str]: ...


_P = TypeVar("_P", bound=_Placed)


@dataclass(frozen=True, slots=True)
class AxisSeries(Generic[_P]):
    """Points that differ in one number only."""

    axis: str
    """One of `LOADS`, or the name of the setting."""
    where: str
    """Their common part, for a sentence."""
    points: Mapping[float, _P]
    """By that number; at least two."""


def group_by_axis(points: Sequence[_P]) -> list[AxisSeries[_P]]:
    """Returns all series of at least two points."""
    lines: dict[tuple[str, ...], dict[float, _P]] = {}
    told: dict[tuple[str, ...], tuple[str, str]] = {}
    for point in points:
        place = dict(point.coordinates)
        if point.amount is not None:
            key = (point.axis, point.workload, *sorted(f"{name}={value}" for name, value in place.items()))
            lines.setdefault(key, {})[point.amount] = point
            told[key] = (point.axis, _where(point, None, with_load=False))
        for name, value in place.items():
            number = _number(value)
            if number is not None:
                others = sorted(f"{other}={at}" for other, at in place.items() if other != name)
                key = (name, point.load_label, point.workload, *others)
                lines.setdefault(key, {})[number] = point
                told[key] = (name, _where(point, name, with_load=True))
    return [AxisSeries(*told[key], found) for key, found in lines.items() if len(found) > 1]


def get_axis_unit(axis: str) -> str:
    """Returns the unit of an axis: 'connections', 'requests/s', 'replicas', 's of delay'."""
    _, dot, setting = axis.rpartition(".")
    if dot:
        return f"s of {setting}"
    return {CONNECTIONS: "connections", RATE: "requests/s"}.get(axis, axis)


def _where(point: _Placed, omitted: str | None, *, with_load: bool) -> str:
    others = [coordinate_text(name, value) for name, value in point.coordinates.items() if name != omitted]
    load = [point.load_label] if with_load else []
    return ", ".join([point.workload, *load, *others])


def _number(text: str) -> float | None:
    # A setting of a service may be a duration.
    match = re.fullmatch(r"([\d.]+)(ms|s|m)?", text)
    try:
        number = float(match.group(1)) * _UNITS_S[match.group(2) or ""] if match else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) and number > 0 else None
