"""Quantiles of merged histograms, the intervals that trials give them, and whether the samples support them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weir.model.histograms import highest, samples_of
from weir.stats.mean import CONFIDENCE, Array
from weir.stats.resample import LEAST_BLOCKS, draws, middle_of, widening

SAMPLES_BEYOND = 100
"""A quantile is printed when at least this many samples lie beyond it."""


@dataclass(frozen=True, slots=True)
class Quantile:
    """The value below which the share `probability` of `samples` lies; None where there are no samples."""

    probability: float
    value: float | None
    samples: int
    low: float | None = None
    """Of the interval over trials; None with fewer of them than it needs."""
    high: float | None = None

    @property
    def supported(self) -> bool:
        """Whether enough samples lie beyond it to print it."""
        return self.value is not None and is_supported(self.samples, self.probability)


def is_supported(samples: int, probability: float) -> bool:
    """Whether at least `SAMPLES_BEYOND` of `samples` lie beyond the quantile, on its shorter side.

    >>> is_supported(10_000, 0.99), is_supported(9_999, 0.99)
    (True, False)
    """
    # In parts per million, so that 0.99 of 10,000 is not 9,900.000000000002.
    beyond = min(probability, 1 - probability)
    return samples * round(beyond * 1_000_000) >= SAMPLES_BEYOND * 1_000_000


def merged_quantiles(parts: Sequence[bytes], probabilities: Sequence[float], confidence: float = CONFIDENCE) -> list[Quantile]:
    """Quantiles of all samples in `parts` together (HdrHistogram V2, one a trial), in the histograms' unit.

    Merging, not averaging: the mean of two p99 is the p99 of nothing. Values carry three significant digits, the histograms' own. The
    interval draws whole trials anew, since requests of one trial have its process, its memory layout and its neighbours in common: an
    interval from the requests alone would be far too narrow.
    """
    found = samples_of(parts)
    if not len(found.often):
        return [Quantile(probability, None, 0) for probability in probabilities]
    values, below = _below(found.part, found.bucket, found.often, len(parts))
    together = below.sum(axis=0)
    samples = int(together[-1])
    at = values[np.searchsorted(together, _wanted(np.array([samples]), probabilities)[0])].tolist()
    if len(parts) < LEAST_BLOCKS:
        return [Quantile(probability, value, samples) for probability, value in zip(probabilities, at, strict=True)]
    wider = widening(len(parts), confidence)
    quantiles = []
    for probability, value, ends in zip(probabilities, at, values[_ends(below, probabilities, confidence)], strict=True):
        moved = wider * np.log(ends / value) if value > 0 else None
        low, high = (None, None) if moved is None else (value * math.exp(edge) for edge in moved.tolist())
        quantiles.append(Quantile(probability, value, samples, low, high))
    return quantiles


def quantiles_by_group(
    group: NDArray[np.int64], bucket: NDArray[np.int64], count: NDArray[np.int64], groups: int, probabilities: Sequence[float]
) -> tuple[Array, Array]:
    """Quantiles of many groups of samples at once, without intervals.

    Args:
        group: of each bucket with samples the group that it is in, from 0.
        bucket: its index; a group may name one several times.
        count: how many samples it has.
        groups: how many groups there are.
        probabilities: which quantiles.

    Returns:
        How many samples each group has; and for each probability a row of the groups' quantiles, NaN of a group without samples.
    """
    values, counts = _counts(group, bucket, count, groups)
    # Few buckets of a group have any samples: only those are added up, those of all groups one after the other.
    flat = counts.reshape(-1)
    has_samples = np.flatnonzero(flat > 0)
    up_to = np.concatenate(([0.0], flat[has_samples].cumsum()))
    edges = up_to[np.searchsorted(has_samples, np.arange(groups + 1) * len(values))]
    samples = np.diff(edges)
    # The lowest quantile is the first sample. Any bucket does for a group without samples.
    wanted = edges[:-1, np.newaxis] + np.maximum(1, _wanted(samples, probabilities))
    at = np.concatenate((has_samples, [0]))[np.searchsorted(up_to[1:], wanted)]
    return samples, np.where(samples > 0, values[at % len(values)].T, np.nan)


def _below(group: NDArray[np.int64], bucket: NDArray[np.int64], count: NDArray[np.int64], groups: int) -> tuple[Array, Array]:
    """The values of all buckets from the lowest to the highest with samples, and how many samples each group has up to each of them."""
    values, counts = _counts(group, bucket, count, groups)
    # In place: the tables of a thousand trials are large, and memory that is new costs more than the sums.
    return values, np.cumsum(counts, axis=1, out=counts)


def _counts(group: NDArray[np.int64], bucket: NDArray[np.int64], count: NDArray[np.int64], groups: int) -> tuple[Array, Array]:
    """The values of the same buckets, and how many samples each group has in each of them."""
    lowest = int(bucket.min(initial=0))
    width = int(bucket.max(initial=0)) - lowest + 1
    counts = np.bincount(group * width + (bucket - lowest), weights=count, minlength=groups * width)
    table: Array = counts.astype(np.float64, copy=False).reshape(groups, width)
    return highest()[lowest : lowest + width].astype(np.float64), table


def _wanted(samples: Array, probabilities: Sequence[float]) -> Array:
    """How many of so many samples lie up to each quantile: a row for each number of samples, a column for each quantile."""
    # Rounding must not ask for one sample more than there is.
    wanted: Array = np.ceil(np.outer(samples, probabilities) - 1e-6)
    return wanted


def _ends(below: Array, probabilities: Sequence[float], confidence: float) -> NDArray[np.int64]:
    """The buckets of each quantile's lowest and highest values among the middle `confidence` of the draws, before they are widened.

    A draw's quantile lies up to a bucket where the draw has as many samples up to there as the quantile wants. So the n-th lowest quantile
    of all draws lies in the first bucket where n draws have enough: it is found by halving over buckets, and no draw's own quantile needs
    to be known.
    """
    drawn = draws(len(below)).T
    # A row for each end of each quantile, a column for each draw: rows are what is counted.
    wanted = np.repeat(_wanted(below[:, -1] @ drawn, probabilities).T, 2, axis=0)
    needed = np.tile(middle_of(drawn.shape[1], confidence), len(probabilities)) + 1
    low, high = np.zeros(len(needed), dtype=np.int64), np.full(len(needed), below.shape[1] - 1, dtype=np.int64)
    while (low < high).any():
        middle = (low + high) // 2
        enough = np.count_nonzero(below[:, middle].T @ drawn >= wanted, axis=1) >= needed
        low, high = np.where(enough, low, middle + 1), np.where(enough, middle, high)
    return low.reshape(-1, 2)
