"""Finds break-even points: concurrencies, rates or upstream delays from which on the other system is better."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from weir.stats.bootstrap import DRAWS, MIN_BLOCKS, bootstrap_means, percentile_interval, small_sample_inflation
from weir.stats.mean import Array

NARROW = 0.10
"""A crossing is precise enough if its interval extends at most this far to each side, relative to the crossing."""
_HALVINGS = 40
"""Number of bisections of the gap between two places. The remaining gap is 10⁻¹² of the original gap."""


@dataclass(frozen=True, slots=True)
class Crossing:
    """A place where the ratio of two systems passes 1."""

    at: float
    """The place of the crossing, in the units of the axis."""
    falls: bool
    """Whether the ratio is above 1 before the crossing and below 1 after it."""
    low: float | None
    """Lower end of the interval. None without an interval, or if this end lies below the lowest measured place."""
    high: float | None
    """Upper end of the interval. None without an interval, or if this end lies above the highest measured place."""
    has_interval: bool
    """Whether the crossing has an interval. False with fewer blocks than an interval needs."""
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
        """Whether the interval includes both places in `between`. If true, further points do not help."""
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
    """Share of the bootstrap draws with a crossing. None with fewer blocks than an interval needs."""
    blocks: int
    """Number of blocks with at least two places."""
    places: tuple[float, ...]
    """Places at which both systems were measured."""
    side: Literal["above", "below", "neither"]
    """Position of all mean ratios relative to 1. `neither` if the mean ratios cross or touch 1."""


def find_crossings(log_ratios: Sequence[Mapping[float, float]], *, draws: int = DRAWS) -> Crossings | None:
    """Returns every place at which ln(A/B) changes its sign, each with a bootstrap interval.

    PCHIP (Fritsch & Butland, SIAM J. Sci. Stat. Comput. 1984) interpolates the means over blocks along the logarithm of
    the axis. The interpolation is monotone between two places, so it crosses 0 there exactly if the signs at the places
    differ. Each bootstrap draw has its own crossings. A draw without a crossing near a crossing of the means counts as
    −∞ or ∞, depending on its sign. So an interval may have an open end.

    `log_ratios` has a dict for each block, from place on the axis to ln(A/B). A block may lack places. Returns None
    with fewer than two measured places. Raises ValueError if a place is not positive, or if a value is not finite.
    """
    places = sorted({place for block in log_ratios for place in block})
    if any(not (place > 0 and math.isfinite(place)) for place in places):
        raise ValueError(f"found {places}, expected positive places on the axis")
    if any(not math.isfinite(value) for block in log_ratios for value in block.values()):
        raise ValueError("expected finite log ratios")
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
    """Returns the index of the last value before each change of sign. A zero has the sign of the value before."""
    nonzero = np.flatnonzero(values).tolist()
    return [before for before, after in pairwise(nonzero) if (values[before] > 0) != (values[after] > 0)]


def _territory(means: Array, changes: Sequence[int], number: int) -> tuple[int, int]:
    """Returns the first and last index of the part of the axis around a crossing. A draw's crossing in this part counts
    as the same crossing. The part lies between the neighbouring extremes of the mean."""
    first = 0 if number == 0 else changes[number - 1] + 1
    last = len(means) - 1 if number == len(changes) - 1 else changes[number + 1]
    here = changes[number]
    begin = first + int(np.argmax(np.abs(means[first : here + 1])))
    end = here + 1 + int(np.argmax(np.abs(means[here + 1 : last + 1])))
    return begin, end


def _roots_of_draws(axis: Array, drawn: Array, begin: int, end: int, at: float, *, falls: bool) -> Array:
    """Returns for each draw the crossing nearest to `at` in the same direction. Returns −∞ or ∞ for a draw without such
    a crossing from `begin` to `end`."""
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
    # A draw that has the old sign at `end` crosses later. Any other draw crossed before `begin`.
    roots[missing] = np.where(within[missing, -1] > 0, math.inf, -math.inf)
    return roots


def _root(axis: Array, rows: Array, index: int) -> Array:
    """Returns the zero of each row's interpolation between the places `index` and `index` + 1. The interpolation is
    monotone there, so bisection finds the zero."""
    # Imported here, because the import is slow and few reports have crossings.
    from scipy.interpolate import PchipInterpolator

    # The slope at a place depends on the neighbouring places.
    first = max(0, index - 1)
    near = slice(first, index + 3)
    cube, square, slope, value = PchipInterpolator(axis[near], rows[:, near], axis=1).c[:, index - first]
    # Offsets from the place `index`.
    low, high = np.zeros(len(rows)), np.full(len(rows), axis[index + 1] - axis[index])
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_before = (((cube * middle + square) * middle + slope) * middle + value > 0) == (value > 0)
        low, high = np.where(is_before, middle, low), np.where(is_before, high, middle)
    found: Array = axis[index] + (low + high) / 2
    return found
