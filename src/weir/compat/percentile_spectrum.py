"""A latency distribution as wrk2 prints it: eight percentiles, and HdrHistogram's percentile spectrum in its classic form."""

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from weir.compat.wrk_units import aligned, microseconds

if TYPE_CHECKING:
    # At run time the records come later, with pydantic: the heading is printed without them.
    from weir.model.records import Quantiles

_PERCENTS = (50.0, 75.0, 90.0, 99.0, 99.9, 99.99, 99.999, 100.0)
_TICKS = 5
"""Lines of the spectrum in each half of what is left up to 100 %."""
_RULE = "-" * 58


def latency_block(title: str, encoded: str, times: "Quantiles") -> str:
    """The block of one clock, down to its dashed line.

    Args:
        title: what is measured.
        encoded: the histogram of nanoseconds, as a record carries it.
        times: its mean, standard deviation and maximum.
    """
    # Here and not above: what decodes histograms takes a while to import, and is needed when the load is over.
    from weir.model import histogram

    counts = histogram.recorded_in(histogram.bytes_of_text(encoded))
    total = sum(counts.values())
    lines = [f"  Latency Distribution (HdrHistogram - {title})"]
    lines += [f"{percent:7.3f}%{aligned(value_at(counts, percent) / 1e3, microseconds, 10)}" for percent in _PERCENTS]
    lines += ["", "  Detailed Percentile spectrum:", f"{'Value':>12} {'Percentile':>12} {'TotalCount':>12} {'1/(1-Percentile)':>12}", ""]
    for value_ns, share, count in spectrum(counts):
        inverse = 1 / (1 - share) if share < 1 else math.inf
        lines.append(f"{value_ns / 1e6:12.3f} {share:12f} {count:12d} {inverse:12.2f}")
    mean_ms, stdev_ms, max_ms = ((value or 0.0) / 1e3 for value in (times.mean, times.stdev, times.max))
    lines += [
        f"#[Mean    = {mean_ms:12.3f}, StdDeviation   = {stdev_ms:12.3f}]",
        f"#[Max     = {max_ms:12.3f}, Total count    = {total:12d}]",
        f"#[Buckets = {histogram.RANGES:12d}, SubBuckets     = {histogram.SUB_BUCKETS:12d}]",
        _RULE,
    ]
    return "\n".join(lines) + "\n"


def value_at(counts: Mapping[int, int], percent: float) -> int:
    """The value that so many per cent of the samples do not exceed; 0 where there are none.

    Args:
        counts: how often each value was seen, in rising order of the values.
        percent: from 0 to 100.
    """
    wanted = max(1, int(percent / 100 * sum(counts.values()) + 0.5))
    seen = 0
    for value, count in counts.items():
        seen += count
        if seen >= wanted:
            return value
    return 0


def spectrum(counts: Mapping[int, int]) -> Iterator[tuple[int, float, int]]:
    """The lines of the percentile spectrum: a value, the share that it stands for, and how many samples are no higher.

    The shares begin at 0 and come closer to 1 in steps that halve with what is left, five to a half; each has the first value that reaches
    it. A value that reaches several has a line for each, but for the highest, which ends the table at 1.

    Args:
        counts: how often each value was seen, in rising order of the values.
    """
    total = sum(counts.values())
    seen, percent = 0, 0.0
    value = 0
    for value, count in counts.items():
        seen += count
        while percent <= 100 * seen / total:
            yield value, percent / 100, seen
            halvings = int(math.log2(100 / (100 - percent)))
            percent += 100 / (_TICKS * 2 ** (halvings + 1))
            if seen == total:
                break
    yield value, 1.0, total
