"""A load of a trial as claims, so that its figures are held against the same laws as anybody's.

Of weir's own counts, rates and times of the clock are exact; what was read off a histogram is so to its three significant digits. What
another generator said is rounded as it was printed; the load that it was told to make is known all the same.
"""

import math
from dataclasses import replace

from weir.audit.physics import Breach, breaches
from weir.model.claim import Claim, Figure
from weir.model.load import ClosedLoad, ExponentialThink, Load, Think, ThinkTime, highest, value_at
from weir.model.records import LoadSummary, Quantiles
from weir.model.resources import StackResources

HISTOGRAM_PRECISION = 0.001
"""Relative: a histogram keeps three significant digits."""
TICK_S = 0.01
"""/proc gives CPU time in hundredths of a second, cut off, for user and system and each process apart."""
_LIKELY = 6.0
"""Standard errors that a mean of drawn pauses stays within: one load in a billion does not."""
_QUANTILES = {"p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99_9": 0.999, "p99_99": 0.9999}


def breaches_of_trial(
    summary: LoadSummary,
    load: Load,
    resources: StackResources | None = None,
    *,
    cpus: float | None = None,
    used_s: float | None = None,
    said: Claim | None = None,
) -> tuple[Breach, ...]:
    """Everything in what a trial measured that cannot be, or that the load and not the server decided.

    Args:
        summary: of the load, with its beginning and its end: what is asked in one part of it may be answered in another.
        load: as it was asked for; one request at a time on each connection.
        resources: what the stack used.
        cpus: how many CPUs it had to use that on, a quota as a share; None: not known.
        used_s: how much of the load `resources` are of; None: all of it.
        said: what the generator said, where it was not weir's.
    """
    claims = claims_of(summary, load, resources, cpus=cpus, used_s=used_s, said=said)
    return tuple(breach for claim in claims for breach in breaches(claim))


def claims_of(
    summary: LoadSummary,
    load: Load,
    resources: StackResources | None = None,
    *,
    cpus: float | None = None,
    used_s: float | None = None,
    said: Claim | None = None,
) -> tuple[Claim, ...]:
    """What a load came to, on the clock of its response times with all its counts, on that of its service times, and in CPU time.

    Takes what `breaches_of_trial` takes. Another generator than weir's has said it on a clock of its own.
    """
    closed = load if isinstance(load, ClosedLoad) else None
    users, ramp_s = (None, 0.0) if closed is None else _users(closed, summary.duration_s)
    think_s, loops = _think(closed.think if closed else None, summary.requests.completed), closed.loops if closed else None
    used = Claim(
        name="CPU time",
        tool="weir",
        duration_s=Figure(summary.duration_s if used_s is None else used_s),
        cpu_s=None if resources is None else Figure(resources.cpu_s, 2 * TICK_S * max(1, resources.peak_processes)),
        cpus=cpus,
    )
    if said is not None:
        return replace(said, users=users, think_s=think_s, ramp_s=ramp_s, loops=loops), used
    counts = summary.requests
    completed = Figure(summary.throughput_rps, 1e-9 * summary.throughput_rps)
    times = summary.response_time_us
    response = Claim(
        name="response time",
        tool="weir",
        users=users,
        think_s=think_s,
        ramp_s=ramp_s,
        loops=loops,
        duration_s=Figure(summary.duration_s),
        throughput_rps=completed,
        requests=counts.completed,
        failed=0,
        intended=counts.intended,
        fates={"ok": counts.ok, "failed": counts.failed, "unanswered": counts.unanswered, "unsent": counts.unsent},
        errors=summary.errors.model_dump(),
        mean_s=_read(times.mean),
        stdev_s=_read(times.stdev),
        min_s=_read(times.min),
        max_s=_read(times.max),
        quantiles_s=_quantiles(times),
        statuses=summary.status,
    )
    times = summary.service_time_us
    service = Claim(
        name="service time",
        tool="weir",
        # A connection has one request at a time, however the requests arrive.
        users=load.connections,
        throughput_rps=completed,
        requests=counts.completed,
        mean_s=_read(times.mean),
        stdev_s=_read(times.stdev),
        min_s=_read(times.min),
        max_s=_read(times.max),
        quantiles_s=_quantiles(times),
    )
    return response, service, used


def _users(load: ClosedLoad, lasted_s: float) -> tuple[int, float]:
    """How many users there were at most, and over which time they came, where they only came."""
    profile = load.users
    if not isinstance(profile, tuple) or load.loops is None:
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


def _quantiles(times: Quantiles) -> dict[float, Figure]:
    read = {quantile: _read(getattr(times, name)) for name, quantile in _QUANTILES.items()}
    return {quantile: figure for quantile, figure in read.items() if figure is not None}


def _read(time_us: float | None) -> Figure | None:
    """A time off a histogram, which counts whole nanoseconds."""
    return None if time_us is None else Figure(time_us / 1e6, HISTOGRAM_PRECISION * time_us / 1e6 + 1e-9)
