"""What wrk and wrk2 have in common: how they begin and end, and the parts of a report, from what a load of weir's came to. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weir.compat.front_end import Asked, Outcome, ToolExit
from weir.compat.wrk_flags import WrkFlags, cannot_begin
from weir.compat.wrk_units import Format, aligned, binary, metric, microseconds, whole_seconds
from weir.model.errors import WeirError

if TYPE_CHECKING:
    # At run time the records come later, with pydantic: the heading is printed without them.
    from weir.model.records import Interval, LoadSummary

_WHOLE = 0.99
"""An interval of at least this share of the usual length counts for the spread of rates; the last one is mostly shorter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedOfEither(Asked):
    """A command line of one of them, understood."""

    flags: WrkFlags

    def heading(self) -> str:
        """The two lines that both print as the load begins, and the version where it was asked for."""
        flags = self.flags
        return (
            f"{flags.version}Running {whole_seconds(flags.duration_s)} test @ {flags.url}\n"
            f"  {flags.threads} threads and {flags.connections} connections\n"
        )

    def exit_code(self, outcome: Outcome) -> int:
        """0, whatever failed."""
        return 0

    def cannot_begin(self, error: WeirError) -> ToolExit:
        """That the host has no address, or nobody answers."""
        return cannot_begin(self.flags, error)


def thread_stats(flags: WrkFlags, outcome: Outcome, interval_s: float) -> str:
    """The table of latencies and of the rate of one thread."""
    times = outcome.end.summary.response_time_us
    mean_us, stdev_us = times.mean or 0.0, times.stdev or 0.0
    within = share_within(outcome.end.histograms["response_time_ns"], mean_us - stdev_us, mean_us + stdev_us)
    rates = thread_rates(outcome.intervals, interval_s, flags.threads)
    return (
        f"  Thread Stats{'Avg':>6}{'Stdev':>11}{'Max':>8}{'+/- Stdev':>12}\n"
        + _row("Latency", microseconds, mean_us, stdev_us, times.max or 0.0, within)
        + _row("Req/Sec", metric, *spread(rates))
    )


def _row(name: str, form: Format, mean: float, stdev: float, most: float, within: float) -> str:
    columns = aligned(mean, form, 8) + aligned(stdev, form, 10) + aligned(most, form, 9)
    # As C prints 0 ÷ 0.
    share = "-nan" if math.isnan(within) else f"{within * 100:.2f}"
    return f"    {name:<10}{columns}{share:>8}%\n"


def share_within(encoded: str, lowest_us: float, highest_us: float) -> float:
    """How much of a histogram lies between two times, as a share; not a number of an empty one.

    Args:
        encoded: of nanoseconds, as a record carries it.
        lowest_us: the one time.
        highest_us: the other.
    """
    # Here and not above: what decodes histograms takes a while to import, and is needed when the load is over.
    from weir.model import histogram

    counts = histogram.counts_in(histogram.bytes_of_text(encoded))
    if not counts:
        return math.nan
    # A bucket counts with all of it, so that a single sample lies within its own mean.
    inside = (
        count
        for bucket, count in counts.items()
        if histogram.highest_at(bucket) >= lowest_us * 1e3 and histogram.highest_at(bucket - 1) < highest_us * 1e3
    )
    return sum(inside) / sum(counts.values())


def thread_rates(intervals: "Sequence[Interval]", interval_s: float, threads: int) -> list[int]:
    """Requests a second of one of `threads` threads in each interval that had an answer, in whole numbers as both tools have them."""
    return [
        round(interval.completed / (interval.end_s - interval.start_s) / threads)
        for interval in intervals
        if interval.completed and interval.end_s - interval.start_s >= interval_s * _WHOLE
    ]


def spread(values: Sequence[int]) -> tuple[float, float, float, float]:
    """Mean, standard deviation, maximum and the share within one standard deviation of the mean, which of nothing is not a number."""
    if not values:
        return 0.0, 0.0, 0.0, math.nan
    mean = sum(values) / len(values)
    stdev = math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1)) if len(values) > 1 else 0.0
    return mean, stdev, max(values), sum(abs(value - mean) <= stdev for value in values) / len(values)


def totals(summary: "LoadSummary") -> str:
    """The lines from the number of requests on."""
    received = summary.bytes.received
    lines = [f"  {summary.requests.completed} requests in {microseconds(summary.duration_s * 1e6)}, {binary(received)}B read"]
    errors = summary.errors
    # What is no HTTP is an error of reading to both; a request that cannot be written shows as its connection's end.
    read = errors.reset + errors.protocol
    if errors.connect or read or errors.timeout:
        lines.append(f"  Socket errors: connect {errors.connect}, read {read}, write 0, timeout {errors.timeout}")
    if wrong := sum(count for status, count in summary.status.items() if int(status) > 399):
        lines.append(f"  Non-2xx or 3xx responses: {wrong}")
    lines.append(f"Requests/sec: {summary.requests.completed / summary.duration_s:9.2f}")
    lines.append(f"Transfer/sec: {binary(received / summary.duration_s):>10}B")
    return "\n".join(lines) + "\n"


def common_notes(flags: WrkFlags, threads: int, summary: "LoadSummary") -> list[str]:
    """What differs from both tools, a sentence each.

    Args:
        flags: what was asked for.
        threads: how many carried the load.
        summary: what came of it.
    """
    notes = []
    if threads < flags.threads:
        what = f"{threads} thread{'s' if threads > 1 else ''} carried the load, as many as there are CPUs"
        notes.append(f"{what}; Req/Sec is its rate divided by {flags.threads}")
    if spare := flags.connections % flags.threads:
        notes.append(f"{flags.connections} connections, where {flags.tool} opens {flags.connections - spare}: as many for each thread")
    if summary.errors.timeout:
        notes.append(f"a request that timed out ended its connection; {flags.tool} goes on waiting, and counts an answer that is late")
    return notes
