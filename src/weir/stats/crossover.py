"""Finds break-even points of two systems: the places on an axis where the ratio of the systems passes 1. The axis is a
concurrency, a rate or an upstream delay. A place is a value on the axis."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from weir.stats.bootstrap import DRAWS, MIN_BLOCKS, bootstrap_means, percentile_interval, small_sample_inflation
from weir.stats.mean import Array

NARROW = 0.10
"""A crossing is precise if both ends of its interval differ from the crossing by at most this share."""
_HALVINGS = 40
"""Number of bisections of the gap between two places. The remaining gap is 10⁻¹² of the original gap."""


@dataclass(frozen=True, slots=True)
class Crossing:
    """A place where the ratio of two systems passes 1."""

    at: float
    """The place of the crossing, in the units of the axis."""
    falls: bool
    """Whether the ratio falls at the crossing: from above 1 to below 1."""
    low: float | None
    """Lower end of the interval. None without an interval, or if the interval is open at this end."""
    high: float | None
    """Upper end of the interval. None without an interval, or if the interval is open at this end."""
    has_interval: bool
    """Whether there are enough blocks for an interval of the crossing."""
    probability: float | None
    """Share of the bootstrap draws with this crossing. None without an interval."""
    between: tuple[float, float]
    """The nearest measured places on both sides of the crossing."""

    @property
    def is_narrow(self) -> bool:
        """Whether the interval lies within ±10 % of the crossing."""
        if self.low is None or self.high is None:
            return False
        return self.low >= self.at / (1 + NARROW) and self.high <= self.at * (1 + NARROW)

    @property
    def is_zone(self) -> bool:
        """Whether the interval includes both places in `between`. If true, measurements at more places do not help."""
        if not self.has_interval:
            return False
        return (self.low is None or self.low <= self.between[0]) and (self.high is None or self.high >= self.between[1])

    @property
    def next_place(self) -> float:
        """The next place to measure: the geometric mean of the two places in `between`."""
        return math.sqrt(self.between[0] * self.between[1])


@dataclass(frozen=True, slots=True)
class Crossings:
    """All crossings of two systems on an axis."""

    crossings: tuple[Crossing, ...]
    """The crossings, sorted by place."""
    probability: float | None
    """Share of the bootstrap draws with at least one crossing. None with too few blocks for an interval."""
    blocks: int
    """Number of blocks with measurements at two or more places. Other blocks do not count."""
    places: tuple[float, ...]
    """Places at which both systems were measured."""
    side: Literal["above", "below", "neither"]
    """Whether all mean ratios are above 1, or all below 1. `neither`: the mean ratios cross or touch 1."""


def find_crossings(log_ratios: Sequence[Mapping[float, float]], *, draws: int = DRAWS) -> Crossings | None:
    """Returns every place at which ln(A/B) changes its sign, each with a bootstrap interval.

    PCHIP (Fritsch & Butland, SIAM J. Sci. Stat. Comput. 1984) interpolates the means over blocks along the logarithm of
    the axis. Between two measured places the interpolation is monotone, and crosses 0 if and only if the two means have
    different signs. A bootstrap interval uses the nearest crossing of each draw. If a draw has no crossing nearby, −∞
    or ∞ replaces the draw's crossing, depending on the draw's sign. So an interval may have an open end.

    `log_ratios` has a dict for each block, from place to ln(A/B). A block may lack places. Returns None with fewer than
    two measured places. Raises ValueError if a place is not positive, or if a value is not finite.
    """
    places = sorted({place for block in log_ratios for place in block})
    if any(not (place > 0 and math.isfinite(place)) for place in places):
        raise ValueError(f"found {places}, expected positive places on the axis")
    if any(not math.isfinite(value) for block in log_ratios for value in block.values()):
        raise ValueError("log_ratios: found a value that is not finite, expected finite values")
    blocks = [block for block in log_ratios if len(block) >= 2]
    places = [place for place in places if any(place in block for block in blocks)]
    if len(places) < 2:
        return None
    values = np.array([[block.get(place, math.nan) for place in places] for block in blocks])
    axis = np.log(places)
    means, drawn = bootstrap_means(values, draws)
    has_interval = len(blocks) >= MIN_BLOCKS
    changes = _sign_changes(means)
    found = []
    for number, index in enumerate(changes):
        begin, end = _territory(means, changes, number)
        at = float(_root(axis, means[np.newaxis], index)[0])
        falls = bool(means[index] > 0)
        low = high = probability = None
        if has_interval:
            roots = _roots_of_draws(axis, drawn, begin, end, at, falls=falls)
            ends = percentile_interval(at + small_sample_inflation(len(blocks)) * (roots - at))
            low, high = (None if math.isinf(end) else math.exp(end) for end in ends)
            probability = float(np.isfinite(roots).mean())
        right = next(later for later in range(index + 1, len(means)) if means[later] != 0)
        between = places[index], places[right]
        found.append(Crossing(math.exp(at), falls, low, high, has_interval, probability, between))
    any_change = float(((drawn > 0).any(axis=1) & (drawn < 0).any(axis=1)).mean()) if has_interval else None
    side: Literal["above", "below", "neither"]
    side = "above" if (means > 0).all() else "below" if (means < 0).all() else "neither"
    return Crossings(tuple(found), any_change, len(blocks), tuple(places), side)


def _sign_changes(values: Array) -> list[int]:
    """Returns the index of the last nonzero value before each change of sign."""
    nonzero = np.flatnonzero(values).tolist()
    return [before for before, after in pairwise(nonzero) if (values[before] > 0) != (values[after] > 0)]


def _territory(means: Array, changes: Sequence[int], number: int) -> tuple[int, int]:
    """Returns the first and the last index of a crossing's part of the axis. A crossing of a bootstrap draw in this
    part counts as the same crossing. On each side, the part ends where the mean is farthest from 0 before the next
    crossing."""
    first = 0 if number == 0 else changes[number - 1] + 1
    last = len(means) - 1 if number == len(changes) - 1 else changes[number + 1]
    here = changes[number]
    begin = first + int(np.argmax(np.abs(means[first : here + 1])))
    end = here + 1 + int(np.argmax(np.abs(means[here + 1 : last + 1])))
    return begin, end


def _roots_of_draws(axis: Array, drawn: Array, begin: int, end: int, at: float, *, falls: bool) -> Array:
    """Returns each draw's crossing nearest to `at`, among the crossings from `begin` to `end` in the same direction.
    Returns −∞ or ∞ for a draw without such a crossing."""
    sign = 1.0 if falls else -1.0
    within = drawn[:, begin : end + 1] * sign
    roots: Array = np.full(len(drawn), np.nan)
    for offset in range(end - begin):
        crossing = (within[:, offset] > 0) & (within[:, offset + 1] <= 0)
        if crossing.any():
            here = _root(axis, drawn[crossing], begin + offset)
            known = roots[crossing]
            nearer = np.isnan(known) | (np.abs(here - at) < np.abs(known - at))
            roots[crossing] = np.where(nearer, here, known)
    missing = np.isnan(roots)
    # A draw with the old sign at `end` crosses later. Any other draw crossed before `begin`.
    roots[missing] = np.where(within[missing, -1] > 0, math.inf, -math.inf)
    return roots


def _root(axis: Array, rows: Array, index: int) -> Array:
    """Returns the zero of each row's interpolation between the places `index` and `index` + 1. Bisection finds the
    zero, because the interpolation is monotone between these places."""
    # The slope at a place depends on the neighbouring places.
    first = max(0, index - 1)
    near = slice(first, index + 3)
    slope, end_slope = monotone_slopes(axis[near], rows[:, near])[:, index - first : index - first + 2].T
    step, value = axis[index + 1] - axis[index], rows[:, index]
    secant = (rows[:, index + 1] - value) / step
    square = (3 * secant - 2 * slope - end_slope) / step
    cube = (slope + end_slope - 2 * secant) / step**2
    # Offsets from the place `index`.
    low, high = np.zeros(len(rows)), np.full(len(rows), step)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_before = (((cube * middle + square) * middle + slope) * middle + value > 0) == (value > 0)
        low, high = np.where(is_before, middle, low), np.where(is_before, high, middle)
    found: Array = axis[index] + (low + high) / 2
    return found


def monotone_slopes(axis: Array, rows: Array) -> Array:
    """Returns the slopes at the places of `axis` of each row's monotone cubic interpolation, which overshoots nowhere.
    (scipy.interpolate.PchipInterpolator does the same, but importing it takes a fifth of the time of a report.) Source:
    Fritsch & Butland, A Method for Constructing Local Monotone Piecewise Cubic Interpolants, 1984."""
    steps = np.diff(axis)
    secants = np.diff(rows, axis=1) / steps
    if len(steps) == 1:
        return np.repeat(secants, 2, axis=1)
    before, after = secants[:, :-1], secants[:, 1:]
    weights = steps[:-1] + 2 * steps[1:], 2 * steps[:-1] + steps[1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        harmonic = (weights[0] + weights[1]) / (weights[0] / before + weights[1] / after)
    inner = np.where(before * after > 0, harmonic, 0.0)
    first = _end_slope(steps[0], steps[1], secants[:, 0], secants[:, 1])
    last = _end_slope(steps[-1], steps[-2], secants[:, -1], secants[:, -2])
    return np.column_stack([first, inner, last])


def _end_slope(step: float, next_step: float, secant: Array, next_secant: Array) -> Array:
    """Returns the slope at an end: that of a parabola through three places, limited so that the curve is monotone."""
    slope = ((2 * step + next_step) * secant - step * next_secant) / (step + next_step)
    is_too_steep = (secant * next_secant < 0) & (np.abs(slope) > 3 * np.abs(secant))
    limited: Array = np.where(slope * secant > 0, np.where(is_too_steep, 3 * secant, slope), 0.0)
    return limited
