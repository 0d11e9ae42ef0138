"""Figures of a part of a load, from its intervals: what the engine computes once for the whole of it."""

import math
from collections.abc import Mapping

from hdrh.histogram import HdrHistogram

from weir.model import histogram
from weir.model.records import Quantiles

_QUANTILES = {"p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99_9": 0.999, "p99_99": 0.9999}


def times_of(merged: HdrHistogram, max_us: float | None) -> Quantiles:
    """Statistics of the response times in a histogram of nanoseconds, as the engine reads them off its own.

    Args:
        merged: the histogram.
        max_us: the largest of the intervals' largest values, which histograms of several have rounded twice.
    """
    return times_of_counts(histogram.counts_in(histogram.raw_bytes(merged)), max_us)


def times_of_counts(counts: Mapping[int, int], max_us: float | None) -> Quantiles:
    """As `times_of`, of samples by bucket, in rising order. The package's own mean and deviation take a thousand times as long.

    Args:
        counts: how many samples there are in each bucket, by its index.
        max_us: the largest value.
    """
    if not counts:
        return Quantiles()
    samples = sum(counts.values())
    # A bucket stands for its middle, as in every implementation of HdrHistogram.
    middles = {index: histogram.lowest_at(index) + (histogram.highest_at(index) + 1 - histogram.lowest_at(index)) // 2 for index in counts}
    mean = sum(middles[index] * count for index, count in counts.items()) / samples
    variance = sum((middles[index] - mean) ** 2 * count for index, count in counts.items()) / samples
    recorded = {histogram.highest_at(index): count for index, count in counts.items()}
    return Quantiles(
        mean=mean / 1e3,
        stdev=math.sqrt(variance) / 1e3,
        min=histogram.lowest_at(next(iter(counts))) / 1e3,
        max=max_us,
        **{name: value / 1e3 for name, value in zip(_QUANTILES, histogram.at_ranks(recorded, _QUANTILES.values()), strict=True)},
    )
