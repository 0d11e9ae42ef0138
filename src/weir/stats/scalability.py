"""The universal scalability law: how throughput grows with concurrency, where it peaks, and what holds it back."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from weir.stats.mean import CONFIDENCE, Array, Estimate, t_quantile
from weir.stats.resample import LEAST_BLOCKS

LEAST_PLACES = 5
"""Three parameters through four points leave one degree of freedom to see a poor fit by."""
POOR_FIT = 0.05
"""A law that misses the measured means by more than this, on average, does not describe them,"""
_NOISE_SIGMAS = 3.0
"""unless their own uncertainty is as large."""
_NONE = 1e-9
"""A coefficient below this is none."""


@dataclass(frozen=True, slots=True)
class Scalability:
    """X(N) = γN ÷ (1 + α(N−1) + βN(N−1)), fitted."""

    gamma: Estimate
    """Throughput of one user alone."""
    alpha: Estimate
    """Contention: the share of the work that is done one after another."""
    beta: Estimate
    """Coherency: what each pair of concurrent requests costs both."""
    peak_at: Estimate | None
    """The concurrency √((1−α)/β) of the highest throughput; None where the law has no peak: it levels off."""
    peak_throughput: float | None
    """At the peak; without one the level γ/α that it approaches; None where it grows without bound."""
    misfit: float
    """Root mean square of the relative distances between law and measured means."""
    noise: float
    """The same of what the means are uncertain by: the standard error over blocks. 0 with one block."""
    highest: float
    """The highest concurrency that was measured."""
    blocks: int

    @property
    def is_poor(self) -> bool:
        """Whether the law does not describe what was measured."""
        return self.misfit > max(POOR_FIT, _NOISE_SIGMAS * self.noise)

    @property
    def is_beyond(self) -> bool:
        """Whether the peak lies beyond what was measured, so that it rests on the law alone."""
        return self.peak_at is not None and self.peak_at.value > self.highest

    @property
    def knee(self) -> float | None:
        """The concurrency at which the growth of the first users would reach the highest throughput.

        From about there on more users wait for one another and add little (Kleinrock, 1979). None where throughput grows without bound, or
        hardly grows at all.
        """
        if self.peak_throughput is None or self.gamma.value <= 0:
            return None
        found = self.peak_throughput / self.gamma.value
        return found if found > 1 else None

    def throughput(self, concurrency: float) -> float:
        """What the law gives."""
        alpha, beta = self.alpha.value, self.beta.value
        return self.gamma.value * concurrency / (1 + alpha * (concurrency - 1) + beta * concurrency * (concurrency - 1))


def scalability(throughput: Sequence[Mapping[float, float]], *, confidence: float = CONFIDENCE) -> Scalability | None:
    """Fit the law to throughput over concurrency.

    N/X = (1 + α(N−1) + βN(N−1))/γ is linear in 1/γ, α/γ and β/γ, none of which is negative: a least-squares problem with bounds that has
    one solution, with no starting values to get it wrong. Its residuals are weighted so that they are relative.
    Intervals are Student's over the jackknife that leaves out one block at a time. (Gunther, Guerrilla Capacity Planning, 2007, chapter 5.)

    Args:
        throughput: of each block, requests a second by concurrency; a block may lack some.
        confidence: of the intervals.

    Returns:
        None where fewer than `LEAST_PLACES` concurrencies were measured.

    Raises:
        ValueError: a concurrency below 1, or a throughput that is not positive.
    """
    blocks = [block for block in throughput if block]
    places = sorted({place for block in blocks for place in block})
    if any(place < 1 for place in places) or any(not (value > 0 and math.isfinite(value)) for block in blocks for value in block.values()):
        raise ValueError("expected concurrencies from 1 on and positive throughput")
    if len(places) < LEAST_PLACES:
        return None
    axis = np.array(places, dtype=np.float64)
    values = np.array([[block.get(place, math.nan) for place in places] for block in blocks])
    means = np.nanmean(values, axis=0)
    fitted = _fit(axis, means)
    without = [_fit(axis, left) for index in range(len(blocks)) if (left := _means_without(values, index)) is not None]
    has_interval = len(blocks) >= LEAST_BLOCKS and len(without) == len(blocks)

    def estimate(of: int) -> Estimate:
        value = fitted[of]
        if not has_interval:
            return Estimate(value, None, None, len(blocks))
        return _jackknifed(value, [one[of] for one in without], confidence, least=0.0)

    gamma, alpha, _ = fitted
    peak = _peak(fitted)
    peak_at = None
    if peak is not None:
        peaks = [found for one in without if (found := _peak(one)) is not None]
        if has_interval and len(peaks) == len(without):
            logs = _jackknifed(math.log(peak), [math.log(found) for found in peaks], confidence)
            assert logs.low is not None
            assert logs.high is not None
            peak_at = Estimate(peak, math.exp(logs.low), math.exp(logs.high), len(blocks))
        else:
            peak_at = Estimate(peak, None, None, len(blocks))
    predicted = _law(fitted, axis)
    counts = np.isfinite(values).sum(axis=0)
    noise = 0.0
    if (counts > 1).any():
        several = counts > 1
        errors = np.nanstd(values[:, several], axis=0, ddof=1) / np.sqrt(counts[several]) / means[several]
        noise = float(np.sqrt(np.mean(errors**2)))
    highest = None
    if peak is not None:
        highest = float(_law(fitted, np.array([peak]))[0])
    elif alpha > _NONE:
        highest = gamma / alpha
    return Scalability(
        gamma=estimate(0),
        alpha=estimate(1),
        beta=estimate(2),
        peak_at=peak_at,
        peak_throughput=highest,
        misfit=float(np.sqrt(np.mean((predicted / means - 1) ** 2))),
        noise=noise,
        highest=places[-1],
        blocks=len(blocks),
    )


def _fit(axis: Array, means: Array) -> tuple[float, float, float]:
    """γ, α and β."""
    weight = means / axis
    columns = np.column_stack([weight, weight * (axis - 1), weight * axis * (axis - 1)])
    # Columns of one size: their solution is the same, their rounding is not.
    scale = np.linalg.norm(columns, axis=0)
    inverse, contention, coherency = not_negative_least_squares(columns / scale, np.ones(len(axis))) / scale
    if inverse <= 0:
        # Even one user is slower than the law allows: nothing is left to divide by.
        inverse = 1e-12
    return 1 / inverse, contention / inverse, coherency / inverse


def not_negative_least_squares(columns: Array, wanted: Array) -> Array:
    """The coefficients, none of them negative, with which few columns come nearest to `wanted`.

    The solution is the free one of the columns that it uses, so with three columns it is the best of seven. scipy.optimize's, which is for
    many columns, takes longer to load than a report of a hundred points to make.
    """
    best, nearest = np.zeros(columns.shape[1]), float(wanted @ wanted)
    for used in product((False, True), repeat=columns.shape[1]):
        if not any(used):
            continue
        of_used = columns[:, used]
        found = np.linalg.lstsq(of_used, wanted)[0]
        missed = wanted - of_used @ found
        if (found >= 0).all() and missed @ missed < nearest:
            best, nearest = np.zeros(columns.shape[1]), float(missed @ missed)
            best[list(used)] = found
    return best


def _law(parameters: tuple[float, float, float], axis: Array) -> Array:
    gamma, alpha, beta = parameters
    found: Array = gamma * axis / (1 + alpha * (axis - 1) + beta * axis * (axis - 1))
    return found


def _peak(parameters: tuple[float, float, float]) -> float | None:
    _, alpha, beta = parameters
    if beta <= _NONE:
        return None
    return math.sqrt(max(1 - alpha, 0.0) / beta) or 1.0


def _means_without(values: Array, index: int) -> Array | None:
    """Means without a block; None where a concurrency has no other."""
    left = np.delete(values, index, axis=0)
    if not len(left) or not np.isfinite(left).any(axis=0).all():
        return None
    means: Array = np.nanmean(left, axis=0)
    return means


def _jackknifed(value: float, without: Sequence[float], confidence: float, least: float = -math.inf) -> Estimate:
    """Student's interval with the jackknife's standard error (Efron & Tibshirani, An Introduction to the Bootstrap, 1993, chapter 11)."""
    count = len(without)
    error = math.sqrt((count - 1) / count * float(np.sum((np.array(without) - np.mean(without)) ** 2)))
    half_width = t_quantile(confidence, count - 1) * error
    return Estimate(value, max(value - half_width, least), value + half_width, count)
