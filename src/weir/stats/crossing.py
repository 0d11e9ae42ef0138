"""Break-even: where one system stops being the better one, over concurrency, a rate or an upstream's delay."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from weir.stats.mean import CONFIDENCE, Array
from weir.stats.resample import DRAWS, LEAST_BLOCKS, means_of_draws, percentile_interval, widening

NARROW = 0.10
"""A crossing is known well enough when its interval reaches at most so far to each side."""
_HALVINGS = 40
"""Of the gap between two places: what is left is a millionth of a millionth."""


@dataclass(frozen=True, slots=True)
class Crossing:
    """A place where the ratio of two systems passes 1."""

    at: float
    """In the units of the axis."""
    falls: bool
    """Whether the ratio is above 1 before it and below 1 behind."""
    low: float | None
    """None: below all that was measured, or there is no interval."""
    high: float | None
    """None: beyond all that was measured, or there is no interval."""
    has_interval: bool
    """False with fewer blocks than an interval needs."""
    probability: float | None
    """In how many of all draws of blocks the ratio passes 1 here. None where there is no interval."""
    between: tuple[float, float]
    """The measured places on both sides: nothing is known of what happens between them but that the sign changes."""

    @property
    def is_narrow(self) -> bool:
        """Whether the interval lies within ±10 % of the crossing."""
        if self.low is None or self.high is None:
            return False
        return self.low >= self.at / (1 + NARROW) and self.high <= self.at * (1 + NARROW)

    @property
    def is_zone(self) -> bool:
        """Whether the two cannot be told apart at either neighbour: the interval reaches beyond both, and a place between says no more."""
        if not self.has_interval:
            return False
        return (self.low is None or self.low <= self.between[0]) and (self.high is None or self.high >= self.between[1])

    @property
    def next_place(self) -> float:
        """Where to measure next: the geometric middle of the gap, which halves it."""
        return math.sqrt(self.between[0] * self.between[1])


@dataclass(frozen=True, slots=True)
class Crossings:
    """What the ratio of two systems does over an axis."""

    crossings: tuple[Crossing, ...]
    """By place."""
    probability: float | None
    """In how many of all draws of blocks there is any. None with fewer blocks than an interval needs."""
    blocks: int
    """That have at least two places."""
    places: tuple[float, ...]
    """Where both systems were measured."""
    side: Literal["above", "below", "neither"]
    """Where there is no crossing: on which side of 1 the mean ratio always is; `neither` where it touches 1."""


def crossings(log_ratios: Sequence[Mapping[float, float]], *, confidence: float = CONFIDENCE, draws: int = DRAWS) -> Crossings | None:
    """Every place where ln(A/B) changes its sign, with the interval that drawing blocks anew gives.

    The means over blocks are interpolated by PCHIP (Fritsch & Butland, SIAM J. Sci. Stat. Comput. 1984) in the logarithm of the axis: it
    is monotone between two measured places, so that it crosses 0 between two places exactly where their signs differ. Each draw of blocks
    gives crossings of its own. One that has none in the part of the axis that belongs to a crossing counts as beyond that end where the
    draw's sign is already, or still, the other one: an interval may be open.

    Args:
        log_ratios: of each block, ln(A/B) by place on the axis; a block may lack some.
        confidence: of the intervals.
        draws: how often blocks are drawn.

    Returns:
        None where fewer than two places were measured.

    Raises:
        ValueError: a place that is not positive, or a value that is not finite.
    """
    places = sorted({place for block in log_ratios for place in block})
    if any(not (place > 0 and math.isfinite(place)) for place in places):
        raise ValueError(f"expected positive places on the axis: {places}")
    if any(not math.isfinite(value) for block in log_ratios for value in block.values()):
        raise ValueError("expected finite log ratios")
    blocks = [block for block in log_ratios if len(block) >= 2]
    places = [place for place in places if any(place in block for block in blocks)]
    if len(places) < 2:
        return None
    values = np.array([[block.get(place, math.nan) for place in places] for block in blocks])
    axis = np.log(places)
    if len(blocks) < 2:
        means, drawn = values[0], values
    else:
        means, drawn = means_of_draws(values, draws)
    has_interval = len(blocks) >= LEAST_BLOCKS
    changes = _sign_changes(means)
    found = []
    for number, index in enumerate(changes):
        begin, end = _territory(means, changes, number)
        at = float(_root(axis, means[np.newaxis], index)[0])
        falls = bool(means[index] > 0)
        low = high = probability = None
        if has_interval:
            roots = _roots_of_draws(axis, drawn, begin, end, at, falls=falls)
            moved = at + widening(len(blocks), confidence) * (roots - at)
            low_log, high_log = percentile_interval(moved, confidence)
            low = None if math.isinf(low_log) else math.exp(low_log)
            high = None if math.isinf(high_log) else math.exp(high_log)
            probability = float(np.isfinite(roots).mean())
        left, right = places[index], places[_next_sign(means, index)]
        found.append(Crossing(math.exp(at), falls, low, high, has_interval, probability, (left, right)))
    any_change = float(((drawn > 0).any(axis=1) & (drawn < 0).any(axis=1)).mean()) if has_interval else None
    side: Literal["above", "below", "neither"] = "above" if (means > 0).all() else "below" if (means < 0).all() else "neither"
    return Crossings(tuple(found), any_change, len(blocks), tuple(places), side)


def _sign_changes(values: Array) -> list[int]:
    """The index of the last value with the old sign, for each change of sign. Zeros belong to the sign before them."""
    changes = []
    last = None
    for index, value in enumerate(values):
        if value == 0:
            continue
        if last is not None and (value > 0) != (values[last] > 0):
            changes.append(last)
        last = index
    return changes


def _next_sign(values: Array, index: int) -> int:
    return next(later for later in range(index + 1, len(values)) if values[later] != 0)


def _territory(means: Array, changes: Sequence[int], number: int) -> tuple[int, int]:
    """The part of the axis in which a draw's crossing is taken for this one: between the places where the mean is farthest from 0."""
    first = 0 if number == 0 else changes[number - 1] + 1
    last = len(means) - 1 if number == len(changes) - 1 else changes[number + 1]
    here = changes[number]
    begin = first + int(np.argmax(np.abs(means[first : here + 1])))
    end = here + 1 + int(np.argmax(np.abs(means[here + 1 : last + 1])))
    return begin, end


def _roots_of_draws(axis: Array, drawn: Array, begin: int, end: int, at: float, *, falls: bool) -> Array:
    """Of each draw the crossing in the same direction between two places that is nearest to `at`; −∞ and ∞ where it lies beyond them."""
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
    # Still on the old side at the end: it comes later. On the new side from the beginning: it came before.
    roots[missing] = np.where(within[missing, -1] > 0, math.inf, -math.inf)
    return roots


def _root(axis: Array, rows: Array, index: int) -> Array:
    """Where each row's interpolation between the place `index` and the next one is 0, by halving: it is monotone there."""
    # The slope at a place takes one place more on each side.
    first = max(0, index - 1)
    near = slice(first, index + 3)
    slopes = pchip_slopes(axis[near], rows[:, near])
    left, right = slopes[:, index - first], slopes[:, index - first + 1]
    length, value = axis[index + 1] - axis[index], rows[:, index]
    mean = (rows[:, index + 1] - value) / length
    square, cube = (3 * mean - 2 * left - right) / length, (left + right - 2 * mean) / length**2
    # Offsets from the place `index`.
    low, high = np.zeros(len(rows)), np.full(len(rows), length)
    before = value > 0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_before = (((cube * middle + square) * middle + left) * middle + value > 0) == before
        low, high = np.where(is_before, middle, low), np.where(is_before, high, middle)
    found: Array = axis[index] + (low + high) / 2
    return found


def pchip_slopes(axis: Array, rows: Array) -> Array:
    """The slope of each row's PCHIP interpolation at each place: 0 at a local extreme, elsewhere between those on both sides.

    Within, the harmonic mean of the two sides' slopes, weighted by their lengths; at the ends by three points, no steeper than keeps the
    interpolation monotone. It is scipy.interpolate's, which takes longer to load than a report of a hundred points to make.

    Args:
        axis: where, rising, two places at least.
        rows: values, of shape (rows, places).
    """
    lengths, rises = np.diff(axis), np.diff(rows, axis=1) / np.diff(axis)
    if len(axis) == 2:
        return np.repeat(rises, 2, axis=1)
    slopes = np.zeros(rows.shape)
    before, after = rises[:, :-1], rises[:, 1:]
    same = before * after > 0
    weights = 2 * lengths[1:] + lengths[:-1], lengths[1:] + 2 * lengths[:-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes[:, 1:-1] = np.where(same, (weights[0] + weights[1]) / (weights[0] / before + weights[1] / after), 0.0)
    for end, (near, far) in ((0, (0, 1)), (-1, (-1, -2))):
        own, next_one = rises[:, near], rises[:, far]
        slope = ((2 * lengths[near] + lengths[far]) * own - lengths[near] * next_one) / (lengths[near] + lengths[far])
        slope = np.where(slope * own > 0, slope, 0.0)
        slopes[:, end] = np.where((own * next_one < 0) & (np.abs(slope) > 3 * np.abs(own)), 3 * own, slope)
    return slopes
