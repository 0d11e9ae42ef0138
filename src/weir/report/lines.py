"""What charts over time are made of: slices of time, and a value or a gap for each."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weir.store import IntervalRow

MOST_POINTS = 240
"""Into how many slices time is cut at most."""

Array = NDArray[np.float64]
Line = list[float | None]

_SLICE_S = 0.5


@dataclass(frozen=True, slots=True)
class NamedLine:
    """One line of a chart that has several for each stack."""

    label: str
    values: Line


def slices(intervals: Sequence[IntervalRow], most_points: int = MOST_POINTS, *, lasted_s: float = 1.0) -> Array:
    """Edges of equal slices, each a whole number of intervals; a last interval shorter than half the others makes none of its own.

    Without intervals it is cut into slices of half a second, or less where it lasted for no longer.
    """
    lengths = [row.end_s - row.start_s for row in intervals if row.end_s > row.start_s] or [min(_SLICE_S, lasted_s)]
    length = float(np.median(lengths))
    end_s = max((row.end_s for row in intervals), default=lasted_s)
    count = max(1, round(end_s / length))
    group = math.ceil(count / most_points)
    return np.arange(0, count // group + 1, dtype=np.float64) * length * group


def coarser(edges: Array, shortest_s: float) -> Array:
    """Every k-th edge, so that no slice is shorter than `shortest_s`."""
    length = float(edges[1] - edges[0])
    step = max(1, math.ceil(shortest_s / length - 1e-9))
    kept = edges[::step]
    return kept if len(kept) > 1 else np.array([edges[0], edges[-1]])


def slope(times_s: Sequence[float] | Array, cumulative: Sequence[float] | Array, edges: Array) -> Array:
    """Growth per second of a cumulative counter in each slice; NaN outside of what was sampled."""
    if len(times_s) < 2:
        return np.full(len(edges) - 1, np.nan)
    # A sample may come a little after the last edge or before the first; half a slice of tolerance keeps the ends.
    at_edges = np.interp(edges, times_s, cumulative)
    width = float(edges[1] - edges[0])
    inside = (edges[:-1] >= times_s[0] - width / 2) & (edges[1:] <= times_s[-1] + width / 2)
    return np.where(inside, np.diff(at_edges) / width, np.nan)


def mean_of(arrays: Sequence[Array] | Array) -> Array:
    """The mean over arrays, slice by slice, of those that have a value there."""
    stacked = np.array(arrays)
    counts = (~np.isnan(stacked)).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean: Array = np.where(counts > 0, np.nansum(stacked, axis=0) / counts, np.nan)
    return mean


def middles(edges: Array) -> list[float]:
    """The middles of slices, to a tenth of a millisecond."""
    return [round(float(value), 4) for value in (edges[:-1] + edges[1:]) / 2]


def line_of(values: Array) -> Line:
    """The values as they are drawn; NaN becomes a gap."""
    return [None if math.isnan(value) else as_drawn(value) for value in values]


def as_drawn(value: float) -> float:
    """Four significant digits, which are more than a chart can show; of a whole number without a point, which is shorter on the page."""
    rounded = float(f"{value:.4g}")
    return int(rounded) if rounded.is_integer() else rounded
