"""Figures of a part of a load, from its intervals: what the engine computes once for the whole of it."""

import math

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
    recorded = histogram.recorded_in(histogram.raw_bytes(merged))
    samples = sum(recorded.values())
    if not samples:
        return Quantiles()
    return Quantiles(
        mean=merged.get_mean_value() / 1e3,
        stdev=merged.get_stddev() / 1e3,
        min=merged.get_min_value() / 1e3,
        max=max_us,
        **{name: _at(recorded, math.ceil(quantile * samples)) / 1e3 for name, quantile in _QUANTILES.items()},
    )


def _at(recorded: dict[int, int], rank: int) -> int:
    """The value of the sample at a rank from 1. The package's own percentiles round the rank instead of taking the next whole one."""
    reached = 0
    for value, count in recorded.items():
        reached += count
        if reached >= rank:
            return value
    raise AssertionError("a rank is at most the number of samples")
