"""Formats a load's result as hey's summary and CSV."""

import math
from collections.abc import Mapping
from pathlib import Path

from weir.compat.latencies import Times, read_answers, read_times, sort_counts
from weir.model.load_records import LoadEnd, Quantiles

_PERCENTILES = (10, 25, 50, 75, 90, 95, 99)
_STEPS = 10
"""Number of equal steps in the histogram. A row before these steps counts only the fastest time."""
_BAR, _LONGEST_BAR = "■", 40
CSV_HEAD = "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset\n"
"""The first line of hey's CSV."""

_CLOCKS = ("DNS+dialup", "DNS-lookup", "req write", "resp wait", "resp read")

Spread = tuple[float, float, float]
"""The average, fastest and slowest time, in seconds."""
_NO_SPREAD = (math.nan, 0.0, 0.0)


def format_summary(end: LoadEnd | None, errors: Mapping[str, int]) -> str:
    """Returns hey's summary. `end` is None if the load could not start. `errors`: number of failures by message."""
    times, average_s, total_s, rate_rps, data, statuses = sort_counts({}), math.nan, 0.0, 0.0, "", {}
    spreads = [_NO_SPREAD] * len(_CLOCKS)
    if end is not None:
        summary, times = end.summary, read_times(end, "response_time")
        average_s, total_s = _read_spread(summary.response_time_us)[0], summary.duration_s
        rate_rps, statuses = summary.throughput_rps, summary.status
        if (size := summary.bytes.received_body) and times.count:
            data = f"\n  Total data:\t{size} bytes\n  Size/request:\t{size // times.count} bytes"
        unmeasured = (0.0, 0.0, 0.0) if times.count else _NO_SPREAD
        wait, read = _read_spread(summary.time_to_first_byte_us), _read_spread(summary.read_time_us)
        spreads = [_read_dialup(end), unmeasured, unmeasured, wait, read]
    details = [", ".join(f"{format_number(value)} secs" for value in spread) for spread in spreads]
    percentiles = {percent: times.percentile(percent) / 1e9 for percent in _PERCENTILES if times.count}
    parts = [
        "\nSummary:",
        f"\n  Total:\t{format_number(total_s)} secs",
        f"\n  Slowest:\t{format_number(times.longest / 1e9)} secs",
        f"\n  Fastest:\t{format_number(times.shortest / 1e9)} secs",
        f"\n  Average:\t{format_number(average_s)} secs",
        f"\n  Requests/sec:\t{format_number(rate_rps)}",
        f"\n  {data}\n",
        f"\nResponse time histogram:\n{format_histogram(times)}\n",
        "\nLatency distribution:",
        *(f"\n  {percent}% in {format_number(value_s)} secs" for percent, value_s in percentiles.items()),
        "\n\nDetails (average, fastest, slowest):",
        *(f"\n  {name}:\t{detail}" for name, detail in zip(_CLOCKS, details, strict=True)),
        "\n\nStatus code distribution:",
        *(f"\n  [{status}]\t{count} responses" for status, count in sorted(statuses.items())),
        "\n\n",
        "Error distribution:" if errors else "",
        *(f"\n  [{count}]\t{message}" for message, count in sorted(errors.items())),
        "\n\n",
    ]
    return "".join(parts)


def format_number(value: float) -> str:
    """Formats seconds or a rate with four decimals."""
    return " NaN" if math.isnan(value) else f"{value:.4f}"


def format_histogram(times: Times) -> str:
    """Returns hey's histogram: the count for each of ten equal steps from the fastest to the slowest time."""
    if not times.count:
        return ""
    step = (times.longest - times.shortest) / _STEPS
    marks = [*(times.shortest + step * row for row in range(_STEPS)), float(times.longest)]
    reached = [times.count_up_to(mark) for mark in marks]
    counts = [now - before for now, before in zip(reached, [0, *reached], strict=False)]
    most = max(counts)
    bars = [_BAR * ((count * _LONGEST_BAR + most // 2) // most) for count in counts]
    rows = zip(marks, counts, bars, strict=True)
    return "".join(f"  {mark / 1e9:.3f} [{count}]\t|{bar}\n" for mark, count, bar in rows)


def format_csv(log: Path) -> str:
    """Returns hey's CSV: a row for each response in order of arrival. `offset` counts from the load's start."""
    answers = read_answers(log)
    moments = ("intended", "written", "first_byte", "last_byte", "connect")
    intended, written, first, last, connect = (answers[f"{moment}_ns"] for moment in moments)
    times_ns = (last - intended, connect, first - written, last - first, intended)
    columns = (*(column / 1e9 for column in times_ns), answers["status"])
    return CSV_HEAD + "".join(
        f"{total:.4f},{dialup:.4f},0.0000,0.0000,{wait:.4f},{read:.4f},{status},{offset:.4f}\n"
        for total, dialup, wait, read, offset, status in zip(*(column.tolist() for column in columns), strict=True)
    )


def _read_spread(clock: Quantiles | None) -> Spread:
    if clock is None or clock.mean is None:
        return _NO_SPREAD
    return clock.mean / 1e6, (clock.min or 0.0) / 1e6, (clock.max or 0.0) / 1e6


def _read_dialup(end: LoadEnd) -> Spread:
    """Returns average, fastest and slowest connect time. A request on an open connection counts as 0."""
    completed = end.summary.requests.completed
    if not completed:
        return _NO_SPREAD
    connections = read_times(end, "connect_time").count
    spreads = [_read_spread(clock) for clock in (end.summary.connect_time_us, end.summary.tls_handshake_us)]
    known = [spread for spread in spreads if spread is not _NO_SPREAD]
    average, fastest, slowest = (sum(spread[index] for spread in known) for index in range(3))
    return average * min(1.0, connections / completed), fastest if connections >= completed else 0.0, slowest
