"""Figures of a part of a load, from its intervals: what the engine computes once for the whole of it."""

from hdrh.histogram import HdrHistogram

from weir.model.records import Quantiles

_PERCENTILES = {"p50": 50, "p75": 75, "p90": 90, "p95": 95, "p99": 99, "p99_9": 99.9, "p99_99": 99.99}


def times_of(merged: HdrHistogram, max_us: float | None) -> Quantiles:
    """Statistics of the response times in a histogram of nanoseconds, as the engine reads them off its own.

    Args:
        merged: the histogram.
        max_us: the largest of the intervals' largest values, which histograms of several have rounded twice.
    """
    if not merged.get_total_count():
        return Quantiles()
    return Quantiles(
        mean=merged.get_mean_value() / 1e3,
        stdev=merged.get_stddev() / 1e3,
        min=merged.get_min_value() / 1e3,
        max=max_us,
        **{name: merged.get_value_at_percentile(percentile) / 1e3 for name, percentile in _PERCENTILES.items()},
    )
