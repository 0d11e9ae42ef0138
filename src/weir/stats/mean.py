"""Computes means with intervals, the number of blocks for a given precision, and the drift within a trial."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weir.stats.distributions import normal_quantile, student_quantile

Array = NDArray[np.float64]

CONFIDENCE = 0.95
MAX_BLOCKS = 100_000
"""Maximum result of `blocks_for_precision` and `blocks_to_detect`. No study runs more blocks."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its interval, from `count` observations. `low` and `high` are None without an interval."""

    value: float
    low: float | None
    high: float | None
    count: int


def t_quantile(degrees: float, confidence: float = CONFIDENCE) -> float:
    """Returns the half width of a two-sided t interval with this confidence, in standard errors."""
    return student_quantile((1 + confidence) / 2, degrees)


def mean_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Estimate:
    """Returns the mean of independent observations with Student's t interval, mean ± t·s/√n.

    The result has no interval if there is only one observation, or if all observations are equal.

    >>> estimate = mean_interval([10.0, 12.0, 14.0])
    >>> round(estimate.value, 2), round(estimate.low, 2), round(estimate.high, 2)
    (12.0, 7.03, 16.97)

    Raises ValueError if there is no value, or if a value is not finite.
    """
    observed = _finite(values)
    mean, count = float(observed.mean()), len(observed)
    if count < 2 or float(np.ptp(observed)) == 0.0:
        return Estimate(mean, None, None, count)
    half_width = t_quantile(count - 1, confidence) * float(observed.std(ddof=1)) / math.sqrt(count)
    return Estimate(mean, mean - half_width, mean + half_width, count)


def blocks_for_precision(variation: float, half_width: float) -> int:
    """Returns the minimum number of blocks for an interval of ±`half_width`: the smallest n ≥ 2 with t·CV/√n ≤ h.

    `variation` is CV, the coefficient of variation of one block: standard deviation ÷ mean. `half_width` is h, a share
    of the mean. Source: n = (t·CV/h)², Kalibera & Jones, "Rigorous benchmarking in reasonable time", ISMM 2013.

    >>> blocks_for_precision(variation=0.05, half_width=0.05)
    7

    Raises ValueError if `half_width` is not positive, or if `variation` is negative.
    """
    if half_width <= 0 or variation < 0:
        raise ValueError(f"found {half_width = } and {variation = }, expected half_width > 0 and variation >= 0")
    blocks = 2
    while blocks < MAX_BLOCKS and t_quantile(blocks - 1) * variation / math.sqrt(blocks) > half_width:
        # The normal quantile yields a lower bound, because Student's t never needs fewer blocks.
        blocks = max(blocks + 1, math.floor((normal_quantile((1 + CONFIDENCE) / 2) * variation / half_width) ** 2))
    return min(blocks, MAX_BLOCKS)


def drift(times_s: Sequence[float] | Array, values: Sequence[float] | Array) -> Estimate | None:
    """Returns the linear change of `values` over the whole time span, relative to the mean: slope × span ÷ mean.

    Least squares determine the slope. The interval assumes independent residuals. Returns None with fewer than three
    values, or if the mean or the time span is 0.

    >>> moved = drift([0, 1, 2, 3], [100, 101, 99, 100])
    >>> abs(moved.value) < 0.01
    True
    """
    if len(times_s) < 3:
        return None
    moments, observed = _finite(times_s), _finite(values)
    mean, span = float(observed.mean()), float(moments.max() - moments.min())
    if mean == 0 or span == 0:
        return None
    degrees = len(moments) - 2
    from_middle = moments - moments.mean()
    squares = float(from_middle @ from_middle)
    slope = float(from_middle @ observed) / squares
    residuals = observed - mean - slope * from_middle
    error = math.sqrt(float(residuals @ residuals) / degrees / squares)
    moved = slope * span / mean
    half_width = t_quantile(degrees) * error * span / abs(mean)
    return Estimate(moved, moved - half_width, moved + half_width, len(moments))


def _finite(values: Sequence[float] | Array) -> Array:
    observed = np.asarray(values, dtype=np.float64)
    if observed.ndim != 1 or len(observed) == 0 or not np.isfinite(observed).all():
        raise ValueError(f"found {values!r}, expected at least one number, all of them finite")
    return observed
