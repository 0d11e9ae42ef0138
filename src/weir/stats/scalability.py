"""Fits the universal scalability law: how throughput depends on concurrency, and what limits throughput."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from weir.stats.bootstrap import MIN_BLOCKS
from weir.stats.mean import Array, Estimate, t_quantile

MIN_POINTS = 5
"""Minimum number of concurrencies for a fit. With 4 points, a fit of 3 parameters is never visibly poor."""
POOR_FIT = 0.05
"""A fit is poor only if its mean relative distance from the measured means exceeds this share."""
_NOISE_SIGMAS = 3.0
"""A fit is poor only if its distance from the measured means also exceeds this multiple of the means' noise."""
_NONE = 1e-9
"""Coefficients below this value count as 0."""


@dataclass(frozen=True, slots=True)
class Scalability:
    """The fitted law X(N) = γN ÷ (1 + α(N−1) + βN(N−1))."""

    gamma: Estimate
    """Throughput of one user alone."""
    alpha: Estimate
    """Contention: the share of the work that is serial."""
    beta: Estimate
    """Coherency: the cost of each pair of concurrent requests."""
    peak_at: Estimate | None
    """Concurrency with the highest throughput, √((1−α)/β). None if the law has no peak."""
    peak_throughput: float | None
    """Throughput at the peak. Without a peak: the limit γ/α, or None if throughput grows without bound."""
    misfit: float
    """Root mean square of the relative distances between the law and the measured means."""
    noise: float
    """Root mean square of the relative standard errors of the means over blocks. 0 with one block."""
    highest: float
    """The highest measured concurrency."""
    blocks: int

    @property
    def is_poor(self) -> bool:
        """Whether the law describes the measurements poorly."""
        return self.misfit > max(POOR_FIT, _NOISE_SIGMAS * self.noise)

    @property
    def is_beyond(self) -> bool:
        """Whether the peak is an extrapolation beyond the measured concurrencies."""
        return self.peak_at is not None and self.peak_at.value > self.highest

    @property
    def knee(self) -> float | None:
        """Concurrency at which throughput would reach the maximum if every user had the throughput of a single user.

        Beyond the knee, additional users mostly wait for each other (Kleinrock, 1979). None if throughput grows without
        bound, or if a single user already reaches the maximum.
        """
        if self.peak_throughput is None or self.gamma.value <= 0:
            return None
        found = self.peak_throughput / self.gamma.value
        return found if found > 1 else None

    def throughput(self, concurrency: float) -> float:
        return float(_law((self.gamma.value, self.alpha.value, self.beta.value), np.array(concurrency)))


def fit_scalability(throughput: Sequence[Mapping[float, float]]) -> Scalability | None:
    """Fits the law to throughput over concurrency. Returns None with fewer than `MIN_POINTS` concurrencies.

    N/X = (1 + α(N−1) + βN(N−1))/γ is linear in 1/γ, α/γ and β/γ, which are not negative. So the fit is a bounded
    least-squares problem with one solution, and needs no starting values. The fit minimises relative distances. The
    intervals are Student's, from a jackknife that leaves out one block at a time. (Gunther, Guerrilla Capacity
    Planning, 2007, chapter 5.)

    `throughput` has a dict for each block, from concurrency to requests per second. A block may lack concurrencies.
    Raises ValueError if a concurrency is below 1, or if a throughput is not positive.
    """
    blocks = [block for block in throughput if block]
    places = sorted({place for block in blocks for place in block})
    if any(place < 1 for place in places) or any(
        not (value > 0 and math.isfinite(value)) for block in blocks for value in block.values()
    ):
        raise ValueError(f"found {blocks!r}, expected concurrencies of at least 1 and positive throughput")
    if len(places) < MIN_POINTS:
        return None
    axis = np.array(places, dtype=np.float64)
    values = np.array([[block.get(place, math.nan) for place in places] for block in blocks])
    means = np.nanmean(values, axis=0)
    fitted = gamma, alpha, beta = _fit(axis, means)
    left = [np.delete(values, index, axis=0) for index in range(len(blocks))] if len(blocks) >= MIN_BLOCKS else []
    # The jackknife needs every concurrency in at least two blocks.
    has_interval = all(np.isfinite(rest).any(axis=0).all() for rest in left)
    without = [_fit(axis, np.nanmean(rest, axis=0)) for rest in left] if has_interval else []
    gammas, alphas, betas = zip(*without, strict=True) if without else ((), (), ())
    peak, peak_at, highest = _peak(fitted), None, None
    if peak is not None:
        logs = [math.log(found) for one in without if (found := _peak(one)) is not None]
        estimate = _jackknife(math.log(peak), logs if len(logs) == len(without) else (), len(blocks))
        low, high = (None if end is None else math.exp(end) for end in (estimate.low, estimate.high))
        peak_at = Estimate(peak, low, high, len(blocks))
        highest = float(_law(fitted, np.array(peak)))
    elif alpha > _NONE:
        highest = gamma / alpha
    counts = np.isfinite(values).sum(axis=0)
    several = counts > 1
    errors = np.nanstd(values[:, several], axis=0, ddof=1) / np.sqrt(counts[several]) / means[several]
    return Scalability(
        gamma=_jackknife(gamma, gammas, len(blocks), least=0.0),
        alpha=_jackknife(alpha, alphas, len(blocks), least=0.0),
        beta=_jackknife(beta, betas, len(blocks), least=0.0),
        peak_at=peak_at,
        peak_throughput=highest,
        misfit=float(np.sqrt(np.mean((_law(fitted, axis) / means - 1) ** 2))),
        noise=float(np.sqrt(np.mean(errors**2))) if several.any() else 0.0,
        highest=places[-1],
        blocks=len(blocks),
    )


def _fit(axis: Array, means: Array) -> tuple[float, float, float]:
    """Returns γ, α and β."""
    weight = means / axis
    columns = np.column_stack([weight, weight * (axis - 1), weight * axis * (axis - 1)])
    # Columns of equal norm reduce rounding errors and do not change the solution.
    scale = np.linalg.norm(columns, axis=0)
    inverse, contention, coherency = fit_nonnegative(columns / scale, np.ones(len(axis))) / scale
    if inverse <= 0:
        # The best fit has γ = ∞. This small value avoids a division by 0.
        inverse = 1e-12
    return 1 / inverse, contention / inverse, coherency / inverse


def fit_nonnegative(columns: Array, target: Array) -> Array:
    """Returns the non-negative weights with the least squared error, for a small number of columns. The function fits
    each subset of the columns without the constraint, and keeps the best fit with positive weights: the optimum is one
    of these fits. (`scipy.optimize.nnls` does the same, but importing it takes a tenth of a report's time.)"""
    best, least = np.zeros(columns.shape[1]), float(target @ target)
    for count in range(1, columns.shape[1] + 1):
        for subset in map(list, combinations(range(columns.shape[1]), count)):
            weights = np.linalg.lstsq(columns[:, subset], target)[0]
            error = float(np.sum((columns[:, subset] @ weights - target) ** 2))
            if error < least and (weights >= 0).all():
                best, least = np.zeros(columns.shape[1]), error
                best[subset] = weights
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


def _jackknife(value: float, without: Sequence[float], blocks: int, least: float = -math.inf) -> Estimate:
    """Returns the value with Student's interval from the jackknife's standard error. No interval if `without` is empty.
    Source: Efron & Tibshirani, An Introduction to the Bootstrap, 1993, chapter 11."""
    if not without:
        return Estimate(value, None, None, blocks)
    error = math.sqrt((blocks - 1) / blocks * float(np.sum((np.array(without) - np.mean(without)) ** 2)))
    half_width = t_quantile(blocks - 1) * error
    return Estimate(value, max(value - half_width, least), value + half_width, blocks)
