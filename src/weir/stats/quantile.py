"""Quantiles of merged histograms, the intervals that trials give them, and whether the samples support them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from weir.model import histogram
from weir.model.histograms import samples_of
from weir.stats.mean import CONFIDENCE
from weir.stats.resample import LEAST_BLOCKS, Array, draws, percentile_interval, widening

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
    return quantiles_of(_tables(parts), probabilities, confidence)


def _tables(parts: Sequence[bytes]) -> list[dict[int, int]]:
    """How many samples each histogram has in each bucket."""
    found = samples_of(parts)
    bounds = np.searchsorted(found.part, np.arange(len(parts) + 1))
    buckets, often = found.bucket.tolist(), found.often.tolist()
    return [dict(zip(buckets[low:high], often[low:high], strict=True)) for low, high in pairwise(bounds.tolist())]


def quantiles_of(tables: Sequence[Mapping[int, int]], probabilities: Sequence[float], confidence: float = CONFIDENCE) -> list[Quantile]:
    """The same from how many samples each trial has in each bucket, by the bucket's index (`histogram.counts_in`)."""
    buckets = np.array(sorted({bucket for table in tables for bucket in table}), dtype=np.int64)
    if not len(buckets):
        return [Quantile(probability, None, 0) for probability in probabilities]
    counts = np.zeros((len(tables), len(buckets)))
    for row, table in zip(counts, tables, strict=True):
        row[np.searchsorted(buckets, np.fromiter(table.keys(), np.int64, len(table)))] = list(table.values())
    values = _highest()[buckets]
    below = counts.cumsum(axis=1)
    whole = np.ones((1, len(tables)))
    samples = int(below[:, -1].sum())
    drawn = draws(len(tables)) if len(tables) >= LEAST_BLOCKS else None
    found = []
    for probability in probabilities:
        value = float(_quantile(below, values, whole, probability)[0])
        low = high = None
        if drawn is not None and value > 0:
            moved = widening(len(tables), confidence) * np.log(_quantile(below, values, drawn, probability) / value)
            low, high = (value * math.exp(edge) for edge in percentile_interval(moved, confidence))
        found.append(Quantile(probability, value, samples, low, high))
    return found


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
    lowest = int(bucket.min(initial=0))
    width = int(bucket.max(initial=0)) - lowest + 1
    table = np.bincount(group * width + (bucket - lowest), weights=count, minlength=groups * width).reshape(groups, width)
    reached = table.cumsum(axis=1)
    samples = reached[:, -1]
    values = _highest()[lowest : lowest + width]
    # Rounding must not ask for one sample more than there is, and the lowest quantile is the first sample.
    wanted = np.maximum(1, np.ceil(np.outer(probabilities, samples) - 1e-6))
    found = np.array([values[(reached >= row[:, None]).argmax(axis=1)] for row in wanted])
    return samples, np.where(samples > 0, found, np.nan)


@cache
def _highest() -> Array:
    """The highest value that each bucket stands for."""
    return np.array([histogram.highest_at(index) for index in range(histogram.BUCKETS)], dtype=np.float64)


def _quantile(below: Array, values: Array, weights: Array, probability: float) -> Array:
    """The quantile of each row of `weights`, which says how often each trial counts.

    Args:
        below: samples of each trial up to each bucket.
        values: of the buckets.
        weights: rows of a weight a trial.
        probability: which quantile.
    """
    # Rounding must not ask for one sample more than there is.
    wanted = np.ceil(probability * (weights @ below[:, -1]) - 1e-6)
    low, high = np.zeros(len(weights), dtype=np.int64), np.full(len(weights), len(values) - 1, dtype=np.int64)
    while (low < high).any():
        middle = (low + high) // 2
        enough = np.einsum("dt,td->d", weights, below[:, middle]) >= wanted
        low, high = np.where(enough, low, middle + 1), np.where(enough, middle, high)
    found: Array = values[low]
    return found
