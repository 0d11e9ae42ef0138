"""Computes quantiles of merged histograms with intervals, and checks whether enough samples lie beyond a quantile."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weir.model.hdr_batch import Integers, highest, samples_of
from weir.stats.bootstrap import MIN_BLOCKS, bootstrap_weights, percentile_ranks, small_sample_inflation
from weir.stats.mean import Array

SAMPLES_BEYOND = 100
"""Minimum number of samples beyond a quantile. weir does not print quantiles with fewer samples."""


@dataclass(frozen=True, slots=True)
class Quantile:
    """A quantile: the share `probability` of all samples is at most `value`. `value` is None without samples."""

    probability: float
    value: float | None
    samples: int
    low: float | None = None
    """Lower end of the bootstrap interval over trials. None with fewer than `MIN_BLOCKS` trials, or if `value` is 0."""
    high: float | None = None

    @property
    def supported(self) -> bool:
        """Whether enough samples lie beyond the quantile (`is_supported`). weir prints only such quantiles."""
        return self.value is not None and is_supported(self.samples, self.probability)


def is_supported(samples: int, probability: float) -> bool:
    """Returns whether at least `SAMPLES_BEYOND` samples lie beyond the quantile, on the side with fewer samples.

    >>> is_supported(10_000, 0.99), is_supported(9_999, 0.99)
    (True, False)
    """
    # In parts per million: in floating point, 0.99 of 10,000 would be 9,900.000000000002.
    beyond = min(probability, 1 - probability)
    return samples * round(beyond * 1_000_000) >= SAMPLES_BEYOND * 1_000_000


def merge_quantiles(parts: Sequence[bytes], probabilities: Sequence[float]) -> list[Quantile]:
    """Returns quantiles of all samples in `parts` (one HdrHistogram V2 for each trial), in the histograms' unit.

    The function merges histograms, because the mean of two p99 is not a p99. Values have the histograms' three
    significant digits. The bootstrap resamples whole trials, because the requests of a trial share a process and its
    memory layout. If the bootstrap resampled single requests, the interval would be far too narrow.
    """
    found = samples_of(parts)
    if not len(found.often):
        return [Quantile(probability, None, 0) for probability in probabilities]
    values, counts = _counts(found.part, found.bucket, found.often, len(parts))
    # In place: the tables of a thousand trials are large, and new memory would cost more than the sums.
    below = np.cumsum(counts, axis=1, out=counts)
    together = below.sum(axis=0)
    samples = int(together[-1])
    at = values[np.searchsorted(together, _wanted(np.array([samples]), probabilities)[0])].tolist()
    if len(parts) < MIN_BLOCKS:
        return [Quantile(probability, value, samples) for probability, value in zip(probabilities, at, strict=True)]
    wider = small_sample_inflation(len(parts))
    quantiles = []
    for probability, value, ends in zip(probabilities, at, values[_ends(below, probabilities)], strict=True):
        moved = wider * np.log(ends / value) if value > 0 else None
        low, high = (None, None) if moved is None else (value * math.exp(edge) for edge in moved.tolist())
        quantiles.append(Quantile(probability, value, samples, low, high))
    return quantiles


def quantiles_by_group(
    group: Integers, bucket: Integers, count: Integers, groups: int, probabilities: Sequence[float]
) -> tuple[Array, Array]:
    """Computes quantiles of many groups of samples at once, without intervals.

    The first three arrays have an element for each non-empty bucket: the bucket's group (from 0), index and number of
    samples. A group may contain a bucket several times. Returns the number of samples of each group, and an array of
    quantiles with a row for each probability. A quantile is NaN for a group without samples.
    """
    values, counts = _counts(group, bucket, count, groups)
    # Most buckets of a group are empty. The sums skip them.
    flat = counts.reshape(-1)
    has_samples = np.flatnonzero(flat > 0)
    up_to = np.concatenate(([0.0], flat[has_samples].cumsum()))
    edges = up_to[np.searchsorted(has_samples, np.arange(groups + 1) * len(values))]
    samples = np.diff(edges)
    # The lowest quantile is the first sample. For an empty group any bucket is correct: NaN replaces the value below.
    wanted = edges[:-1, np.newaxis] + np.maximum(1, _wanted(samples, probabilities))
    at = np.concatenate((has_samples, [0]))[np.searchsorted(up_to[1:], wanted)]
    return samples, np.where(samples > 0, values[at % len(values)].T, np.nan)


def _counts(group: Integers, bucket: Integers, count: Integers, groups: int) -> tuple[Array, Array]:
    """Returns the buckets' values, from the lowest to the highest non-empty bucket, and each group's counts of them."""
    lowest = int(bucket.min(initial=0))
    width = int(bucket.max(initial=0)) - lowest + 1
    counts = np.bincount(group * width + (bucket - lowest), weights=count, minlength=groups * width)
    table: Array = counts.astype(np.float64, copy=False).reshape(groups, width)
    return highest()[lowest : lowest + width].astype(np.float64), table


def _wanted(samples: Array, probabilities: Sequence[float]) -> Array:
    """Returns the number of samples up to each quantile: a row for each item of `samples`, a column per quantile."""
    # A rounding error must not require one sample too many.
    wanted: Array = np.ceil(np.outer(samples, probabilities) - 1e-6)
    return wanted


def _ends(below: Array, probabilities: Sequence[float]) -> Integers:
    """Returns the buckets at both ends of each quantile's interval over the draws, before `small_sample_inflation`.

    A draw's quantile lies in the first bucket with a large enough cumulative count of the draw. So the n-th lowest
    quantile of all draws lies in the first bucket at which the cumulative counts of n draws are large enough. Bisection
    finds this bucket without computing the quantile of any draw.
    """
    drawn = bootstrap_weights(len(below)).T
    # A row for each end of each quantile, a column for each draw.
    wanted = np.repeat(_wanted(below[:, -1] @ drawn, probabilities).T, 2, axis=0)
    needed = np.tile(percentile_ranks(drawn.shape[1]), len(probabilities)) + 1
    low, high = np.zeros(len(needed), dtype=np.int64), np.full(len(needed), below.shape[1] - 1, dtype=np.int64)
    while (low < high).any():
        middle = (low + high) // 2
        enough = np.count_nonzero(below[:, middle].T @ drawn >= wanted, axis=1) >= needed
        low, high = np.where(enough, low, middle + 1), np.where(enough, middle, high)
    return low.reshape(-1, 2)
