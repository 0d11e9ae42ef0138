"""Cuts time into slices, and computes lines for the charts over time. A line has a value or a gap for each slice."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weir.store import IntervalRow

MOST_POINTS = 240

Array = NDArray[np.float64]
Line = list[float | None]

_SLICE_S = 0.5


@dataclass(frozen=True, slots=True)
class NamedLine:
    """One line of a chart that has several lines for each stack."""

    label: str
    values: Line


def cut_slices(intervals: Sequence[IntervalRow], most_points: int = MOST_POINTS, *, lasted_s: float = 1.0) -> Array:
    """Returns the edges of equal slices. Each slice spans a whole number of intervals. A last interval shorter than
    half of the others has no slice. Without intervals, a slice lasts 0.5 s, or `lasted_s` if this is shorter."""
    lengths = [row.end_s - row.start_s for row in intervals if row.end_s > row.start_s] or [min(_SLICE_S, lasted_s)]
    length = float(np.median(lengths))
    end_s = max((row.end_s for row in intervals), default=lasted_s)
    count = max(1, round(end_s / length))
    group = math.ceil(count / most_points)
    return np.arange(0, count // group + 1, dtype=np.float64) * length * group


def coarsen(edges: Array, shortest_s: float) -> Array:
    """Returns the edges of longer slices: merges neighbouring slices until each lasts at least `shortest_s`."""
    length = float(edges[1] - edges[0])
    step = max(1, math.ceil(shortest_s / length - 1e-9))
    kept = edges[::step]
    return kept if len(kept) > 1 else np.array([edges[0], edges[-1]])


def slope(times_s: Sequence[float] | Array, cumulative: Sequence[float] | Array, edges: Array) -> Array:
    """Returns the growth per second of a cumulative counter in each slice. NaN for a slice outside the samples."""
    if len(times_s) < 2:
        return np.full(len(edges) - 1, np.nan)
    growth = np.diff(np.interp(edges, times_s, cumulative)) / float(edges[1] - edges[0])
    return np.where(is_sampled(times_s[0], times_s[-1], edges), growth, np.nan)


def is_sampled(first_s: float, last_s: float, edges: Array) -> NDArray[np.bool_]:
    """Returns for each slice whether it lies between the first and the last sample. The tolerance is half a slice."""
    tolerance_s = float(edges[1] - edges[0]) / 2
    return np.logical_and(edges[:-1] >= first_s - tolerance_s, edges[1:] <= last_s + tolerance_s)


def average(arrays: Sequence[Array] | Array) -> Array:
    """Returns the mean of the arrays for each slice. Ignores NaN."""
    values = np.asarray(arrays, np.float64)
    is_known = np.isfinite(values)
    return divide(np.where(is_known, values, 0).sum(axis=0), is_known.sum(axis=0, dtype=np.float64))


def divide(amounts: Array, by: Array) -> Array:
    """Returns `amounts` ÷ `by`. NaN if `by` is 0 or less."""
    return np.divide(amounts, by, out=np.full_like(amounts, np.nan), where=by > 0)


def mean_line(label: str, trials: Sequence[Array]) -> NamedLine:
    """Returns the mean over trials as a line with the name `label`."""
    return NamedLine(label, to_line(average(trials)))


def compute_middles(edges: Array) -> list[float]:
    """Returns the middles of slices in seconds, rounded to a tenth of a millisecond."""
    return [round(float(value), 4) for value in (edges[:-1] + edges[1:]) / 2]


def to_line(values: Array) -> Line:
    """Returns rounded values for a chart. NaN becomes None: a gap in the line."""
    return [None if math.isnan(value) else round_for_chart(value) for value in values]


def round_for_chart(value: float) -> float:
    """Rounds to four significant digits. Whole numbers become `int`, which needs fewer bytes in the page."""
    rounded = float(f"{value:.4g}")
    return int(rounded) if rounded.is_integer() else rounded
