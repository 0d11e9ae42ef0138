"""Converts a trial's load into reported results. So the laws of an audit also check weir's own figures.

weir's counts, rates and durations have no rounding. Times from a histogram have three significant digits. The figures
of another generator have the rounding of that generator's report. The requested load has no rounding.
"""

import math
from dataclasses import replace
from typing import Any

from weir.model.load import ClosedLoad, ExponentialThink, Load, Think, ThinkTime, highest, value_at
from weir.model.load_records import PERCENTILES, LoadSummary, Quantiles
from weir.model.reported_result import Figure, ReportedResult
from weir.model.resources import StackResources
from weir.model.run_types import WEIR

HISTOGRAM_PRECISION = 0.001
"""Relative precision of a time in a histogram: three significant digits."""
TICK_S = 0.01
"""/proc truncates the user time and the system time of each process to hundredths of a second."""
_LIKELY = 6.0
"""Tolerance for the mean of random pauses, in standard errors. One load in a billion is outside."""


def build_reported_results(
    summary: LoadSummary,
    load: Load,
    resources: StackResources | None = None,
    *,
    cpus: float | None = None,
    used_s: float | None = None,
    reported: ReportedResult | None = None,
    tool: str = WEIR,
    pipeline: int = 1,
) -> tuple[ReportedResult, ...]:
    """Returns three results: the response times with all counts, the service times, and the CPU time.

    - `summary`: figures of the whole load, and not of its measured part. A response may arrive after that part.
    - `cpus`: number of CPUs that the stack may use. A CPU quota may be a fraction. None: unknown.
    - `used_s`: seconds during which weir measured the stack's `resources`. None: the whole load.
    - `reported`: the report of another generator. If given, the report replaces the response times and service times.
    - `tool`: the program whose figures `summary` contains.
    - `pipeline`: maximum number of requests in flight on a connection.
    """
    asked: dict[str, Any] = {"users": None, "ramp_s": 0.0, "think_s": Figure(0.0), "loops": None}
    if isinstance(load, ClosedLoad):
        users, ramp_s = _users(load, summary.duration_s)
        think_s = _think(load.think, summary.requests.completed)
        asked = {"users": users, "ramp_s": ramp_s, "think_s": think_s, "loops": load.requests_per_user}
    used = ReportedResult(
        name="CPU time",
        tool="weir",
        duration_s=Figure(summary.duration_s if used_s is None else used_s),
        cpu_s=None if resources is None else Figure(resources.cpu_s, 2 * TICK_S * max(1, resources.peak_processes)),
        cpus=cpus,
    )
    if reported is not None:
        # weir lets other generators send only one request at a time on each connection.
        return replace(reported, **asked, requests_in_flight=1), used
    counts = summary.requests
    response = replace(
        _read_times("response time", summary, summary.response_time_us, tool),
        **asked,
        requests_in_flight=pipeline,
        duration_s=Figure(summary.duration_s),
        failed=0,
        intended=counts.intended,
        fates={"ok": counts.ok, "failed": counts.failed, "unanswered": counts.unanswered, "unsent": counts.unsent},
        errors=summary.errors.to_json(),
        statuses=summary.status,
    )
    # Connections also limit the requests in flight of an open load. So each connection counts as a user.
    times = _read_times("service time", summary, summary.service_time_us, tool)
    service = replace(times, users=load.connections, requests_in_flight=pipeline)
    return response, service, used


def _read_times(name: str, summary: LoadSummary, times: Quantiles, tool: str) -> ReportedResult:
    """Returns a result with the throughput and with the times of one clock."""
    quantiles_s = {quantile: _read(getattr(times, key)) for key, quantile in PERCENTILES.items()}
    return ReportedResult(
        name=name,
        tool=tool,
        throughput_rps=Figure(summary.throughput_rps, 1e-9 * summary.throughput_rps),
        requests=summary.requests.completed,
        mean_s=_read(times.mean),
        stdev_s=_read(times.stdev),
        min_s=_read(times.min),
        max_s=_read(times.max),
        quantiles_s={quantile: figure for quantile, figure in quantiles_s.items() if figure is not None},
    )


def _users(load: ClosedLoad, lasted_s: float) -> tuple[int, float]:
    """Returns the largest number of users, and the length of their ramp in seconds (0 without a simple ramp)."""
    profile = load.users
    if not isinstance(profile, tuple) or load.requests_per_user is None:
        return load.connections, 0.0
    heights = [height for _, height in profile]
    if heights != sorted(heights):
        return load.connections, 0.0
    top = highest(profile)
    last_s = next(at_s for at_s, height in profile if height == top)
    return max(1, math.ceil(value_at(profile, lasted_s))), min(last_s, lasted_s)


def _think(think: ThinkTime | None, pauses: int) -> Figure:
    match think:
        case None:
            return Figure(0.0)
        case Think(shortest_s, longest_s):
            mean_s, deviation_s = (shortest_s + longest_s) / 2, (longest_s - shortest_s) / math.sqrt(12)
        case ExponentialThink(mean_s):
            deviation_s = mean_s
    return Figure(mean_s, min(mean_s, _LIKELY * deviation_s / math.sqrt(max(1, pauses))))


def _read(time_us: float | None) -> Figure | None:
    """Returns a histogram's time in seconds. The tolerance is three significant digits plus a nanosecond."""
    return None if time_us is None else Figure(time_us / 1e6, HISTOGRAM_PRECISION * time_us / 1e6 + 1e-9)
