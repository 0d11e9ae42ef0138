"""Formats a load's result as the report of wrk and wrk2. wrk changes to the next unit at 0.85 of that unit: 900 us are
`0.90ms`. The largest unit of time is the minute: two hours are `120.00m`."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

from weir.compat.front_end import LoadResult
from weir.compat.latencies import Times, list_spectrum, read_times, sort_counts
from weir.model.load_records import Interval, LoadEnd, LoadSummary, Quantiles

_UNIT_LETTERS = 2
"""Width of the unit in a column, in characters. Spaces after a shorter unit align the digits of all rows."""
_STEP_UP = 0.85
_WHOLE = 0.99
"""The rates leave out intervals that are shorter than this share of the usual length: often the last interval."""
_BUCKET_WIDTH = 0.001
"""Relative width of a histogram's bucket. Times from a histogram have this precision."""
_SPECTRUM_PERCENTS = (50.0, 75.0, 90.0, 99.0, 99.9, 99.99, 99.999, 100.0)


def _scale(step: int, units: Sequence[str], value: float, decimals: int = 2) -> str:
    power = 0
    while power < len(units) - 1 and value >= step * _STEP_UP:
        value /= step
        power += 1
    return f"{value:.{decimals}f}{units[power]}"


format_count = partial(_scale, 1000, ("", "k", "M", "G", "T"))
format_bytes = partial(_scale, 1024, ("B", "KB", "MB", "GB", "TB"))
format_length = partial(_scale, 60, ("s", "m"), decimals=0)
"""Formats the length of a run, given in seconds, with its unit."""


def format_time(value_us: float) -> str:
    """Formats a time, given in microseconds, with its unit."""
    return _scale(60, ("s", "m"), value_us / 1e6) if value_us >= 1e6 else _scale(1000, ("us", "ms"), value_us)


def align(text: str, width: int) -> str:
    """Aligns a value and its unit to the right in a column of `width` characters. Cuts a longer value."""
    missing = _UNIT_LETTERS - sum(character.isalpha() for character in text[-_UNIT_LETTERS:])
    return f"{text[: width - missing]:>{width - missing}}" + " " * missing


def format_thread_stats(result: LoadResult, interval_s: float, threads: int) -> str:
    """Returns wrk's table `Thread Stats`: the spread of the latencies, and of the request rate of one thread."""
    clock, times = result.end.summary.response_time_us, read_times(result.end, "response_time")
    mean_us, stdev_us = clock.mean or 0.0, clock.stdev or 0.0
    within = measure_share(times, (mean_us - stdev_us) * 1e3, (mean_us + stdev_us) * 1e3)
    rates = list_thread_rates(result.intervals, interval_s, threads)
    return (
        f"  Thread Stats{'Avg':>6}{'Stdev':>11}{'Max':>8}{'+/- Stdev':>12}\n"
        + _format_row("Latency", format_time, mean_us, stdev_us, clock.max or 0.0, within)
        + _format_row("Req/Sec", format_count, *measure_spread(rates))
    )


def _format_row(name: str, form: Callable[[float], str], mean: float, stdev: float, most: float, share: float) -> str:
    columns = align(form(mean), 8) + align(form(stdev), 10) + align(form(most), 9)
    # C prints 0 ÷ 0 as -nan.
    percent = "-nan" if math.isnan(share) else f"{share * 100:.2f}"
    return f"    {name:<10}{columns}{percent:>8}%\n"


def measure_share(times: Times, lowest_ns: float, highest_ns: float) -> float:
    """Returns the share of times from `lowest_ns` to `highest_ns`; NaN without times. A bucket that overlaps the range
    counts in full. Therefore, times that are equal to the mean always fall within one deviation."""
    if not times.count:
        return math.nan
    below = times.count_up_to(lowest_ns * (1 - _BUCKET_WIDTH))
    return (times.count_up_to(highest_ns * (1 + _BUCKET_WIDTH)) - below) / times.count


def list_thread_rates(intervals: Sequence[Interval], interval_s: float, threads: int) -> list[int]:
    """Returns one thread's requests per second (the total divided by `threads`) in each whole interval."""
    return [
        round(interval.completed / (interval.end_s - interval.start_s) / threads)
        for interval in intervals
        if interval.completed and interval.end_s - interval.start_s >= interval_s * _WHOLE
    ]


def measure_spread(values: Sequence[int]) -> tuple[float, float, float, float]:
    """Returns mean, standard deviation, maximum, and the share of values within one deviation (NaN without values)."""
    sorted_values = sort_counts(Counter(values))
    mean, stdev = sorted_values.mean, sorted_values.deviation
    within = sum(abs(value - mean) <= stdev for value in values)
    return mean, stdev, sorted_values.longest, within / len(values) if values else math.nan


def format_percentiles(clock: Quantiles) -> str:
    """Returns wrk's block of percentiles."""
    values = {50: clock.p50, 75: clock.p75, 90: clock.p90, 99: clock.p99}
    lines = (f"{percent:7d}%{align(format_time(value or 0.0), 10)}\n" for percent, value in values.items())
    return "  Latency Distribution\n" + "".join(lines)


def format_totals(summary: LoadSummary) -> str:
    """Returns the last part of the report, which begins with the number of requests."""
    completed, received, duration_s = summary.requests.completed, summary.bytes.received, summary.duration_s
    lines = [f"  {completed} requests in {format_time(duration_s * 1e6)}, {format_bytes(received)} read"]
    errors = summary.errors
    # Both tools count a response that is not HTTP as a read error. A failed write shows as a reset.
    read = errors.reset + errors.protocol
    if errors.connect or read or errors.timeout:
        lines.append(f"  Socket errors: connect {errors.connect}, read {read}, write 0, timeout {errors.timeout}")
    if wrong := sum(count for status, count in summary.status.items() if int(status) > 399):
        lines.append(f"  Non-2xx or 3xx responses: {wrong}")
    lines.append(f"Requests/sec: {completed / duration_s:9.2f}")
    lines.append(f"Transfer/sec: {format_bytes(received / duration_s):>11}")
    return "\n".join(lines) + "\n"


def format_spectra(end: LoadEnd, *, has_latency: bool, has_uncorrected: bool) -> str:
    """Returns wrk2's percentiles of response times. With `has_uncorrected`, adds the percentiles of service times."""
    titles = {"response_time": "Recorded Latency"} if has_latency or has_uncorrected else {}
    if has_uncorrected:
        titles["service_time"] = "Uncorrected Latency (measured without taking delayed starts into account)"
    return "\n".join(_format_spectrum(title, end, clock) for clock, title in titles.items())


def _format_spectrum(title: str, end: LoadEnd, name: str) -> str:
    """Returns the block of one clock: eight percentiles, and HdrHistogram's percentile spectrum in its classic form."""
    # Imported late: the import is slow, and a front end starts its load first.
    from weir.model.hdr import RANGES, SUB_BUCKETS

    times, clock = read_times(end, name), getattr(end.summary, f"{name}_us")
    mean_ms, stdev_ms, max_ms = ((value or 0.0) / 1e3 for value in (clock.mean, clock.stdev, clock.max))
    percentiles = ((percent, format_time(times.percentile(percent) / 1e3)) for percent in _SPECTRUM_PERCENTS)
    lines = [
        f"  Latency Distribution (HdrHistogram - {title})",
        *(f"{percent:7.3f}%{align(value, 10)}" for percent, value in percentiles),
        "",
        "  Detailed Percentile spectrum:",
        f"{'Value':>12} {'Percentile':>12} {'TotalCount':>12} {'1/(1-Percentile)':>12}",
        "",
    ]
    for value_ns, share, count in list_spectrum(times):
        inverse = 1 / (1 - share) if share < 1 else math.inf
        lines.append(f"{value_ns / 1e6:12.3f} {share:12f} {count:12d} {inverse:12.2f}")
    lines += [
        f"#[Mean    = {mean_ms:12.3f}, StdDeviation   = {stdev_ms:12.3f}]",
        f"#[Max     = {max_ms:12.3f}, Total count    = {times.count:12d}]",
        f"#[Buckets = {RANGES:12d}, SubBuckets     = {SUB_BUCKETS:12d}]",
        "-" * 58,
    ]
    return "\n".join(lines) + "\n"
