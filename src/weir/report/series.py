"""Computes a point's charts over time and the latency distribution, from counted trials. The size of a chart does not
grow with the run: at most `MOST_POINTS` slices of time, and one line for all trials of a stack."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from weir import stats
from weir.findings.points import PointCells
from weir.model.hdr_batch import Samples, samples_of
from weir.model.load import Load, OpenLoad, value_at
from weir.model.run_types import UpperBound
from weir.report import process_series, timeseries
from weir.report.timeseries import Array, Line, NamedLine, average, coarsen, compute_middles, divide, mean_line, to_line
from weir.store import CpuUseRow, IntervalRow, NetworkSampleRow, RunReader, ThreadStateRow, UseRow

FEWEST_POINTS = 40
MOST_SLICES = 6_000
"""Maximum number of slices in a page, over all stacks and points. The limit keeps a page with many trials small."""
FEWEST_TRIALS = 3
MOST_TRIALS = 300
"""Maximum number of trials in a page's charts over time, over all points. More trials would take too long."""
SHORTEST_COARSE_SLICE_S = 0.5
"""Minimum length of a slice for percentiles and CPU. The kernel counts CPU time in ticks of 10 ms: one tick is
more than 2 % of a shorter slice. A shorter slice of a slow stack also has too few requests for a p99."""
_REQUESTS_FOR_P99 = 1200
"""Wanted mean number of requests in a slice: at least ten are then above the p99."""
_PERCENTILES = {"p50_ms": 0.5, "p90_ms": 0.9, "p99_ms": 0.99}
_FEWEST_SLICES = 6
"""Minimum number of slices of a load. This minimum has priority over `_REQUESTS_FOR_P99`."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A stack in the charts of a point, with one or more counted trials. Never an A/A copy."""

    label: str
    name: str
    colour: int
    trials: tuple[int, ...]
    """Ids of the stack's counted trials at this point. Averages use only counted trials."""
    upper_bounds: tuple[UpperBound, ...]
    has_failed: bool
    """Whether a request failed in a counted trial."""


def list_shown(point: PointCells, names: Mapping[int, str]) -> list[Shown]:
    """Returns the stacks in the charts of a point. `names`: a dict from cell id to name."""
    shown = []
    for colour, member in enumerate(member for member in point.members if member.cell.arm == "main"):
        if member.used:
            cell, summaries = member.cell, [trial.result.summary for trial in member.used]
            has_failed = any(summary is not None and summary.requests.failed for summary in summaries)
            label, name = cell.stack_label, names[cell.id]
            shown.append(Shown(label, name, colour, member.evidence.used, cell.upper_bounds, has_failed))
    return shown


@dataclass(frozen=True, slots=True)
class StackSeries:
    """The lines of one stack in the charts of one point. The page's script reads the fields by name."""

    label: str
    name: str
    colour: int
    trials: int
    """Number of trials in the lines over time."""
    rate_rps: Line
    rate_low_rps: Line
    rate_high_rps: Line
    failed_rps: Line
    """Failed requests per second; empty if no request failed."""
    p50_ms: Line
    p90_ms: Line
    p99_ms: Line
    tiers: list[NamedLine]
    machine_percent: list[NamedLine]
    distribution_ms: Line
    """Response times at `PointSeries.nines`, over all counted trials."""
    service_ms: Line
    """Service times of an open load's only trial; otherwise empty. In a closed loop, both times are the same."""
    of_trials: int
    """Number of counted trials."""
    waiting: list[NamedLine]
    """Requests in flight. A second line, if needed, has the requests that waited for a connection."""
    errors_rps: list[NamedLine]
    """Failed requests per second for each kind of failure that occurred."""
    memory_mb: list[NamedLine]
    traffic_mb_s: list[NamedLine]
    """Disk reads and writes of each tier, and traffic of the loopback device, without lines of zeros."""
    threads: list[NamedLine]
    """Mean number of threads in each state, in the order of `THREAD_STATES`. Omits states without threads."""


@dataclass(frozen=True, slots=True)
class PointSeries:
    """The lines of all stacks of a point. Times are the middles of slices, in seconds since the load's start."""

    time_s: list[float]
    coarse_time_s: list[float]
    """The middles of longer slices, for percentiles, CPU, memory and traffic."""
    nines: list[float]
    """Positions on the axis of percentiles: −log10 of the share of slower requests. Example: p90 is at 1, p99 at 2."""
    stacks: list[StackSeries]
    threads_time_s: list[float] = field(default_factory=list)
    """The middles of the slices for thread states. These slices last at least a second."""
    has_intervals: bool = True
    """Whether the generator reported intervals. Otherwise only the processes and the machine have lines over time."""
    offered_rps: Line = field(default_factory=list)
    """The offered rate of an open load. Empty for a closed loop, or if each arrival starts a session of requests."""


def build_point_series(reader: RunReader, load: Load, shown: Sequence[Shown], together: int = 1) -> PointSeries:
    """Returns the lines of a point's stacks. `together`: the number of stacks in all points of the page; a higher
    number makes the charts smaller."""
    drawn = {stack.label: pick_evenly(stack.trials, max(FEWEST_TRIALS, MOST_TRIALS // together)) for stack in shown}
    intervals = {trial: reader.intervals(trial) for trials in drawn.values() for trial in trials}
    most_points = max(FEWEST_POINTS, min(timeseries.MOST_POINTS, MOST_SLICES // together))
    sampled = {trial: reader.readings(UseRow, trial) for trial in intervals}
    lasted_s = max((rows[-1].t_s for rows in sampled.values() if rows), default=1.0)
    rows = [row for rows in intervals.values() for row in rows]
    edges = timeseries.cut_slices(rows, most_points, lasted_s=max(lasted_s, SHORTEST_COARSE_SLICE_S))
    wanted_s = [_slice_for_p99_s([intervals[trial] for trial in trials]) for trials in drawn.values()]
    coarse_s = max([SHORTEST_COARSE_SLICE_S, *wanted_s])
    coarse_edges = coarsen(edges, coarse_s)
    threads_edges = coarsen(edges, max(coarse_s, process_series.SHORTEST_THREADS_SLICE_S))
    histograms = {stack.label: samples_of(_histograms(reader, stack.trials, "response_time_ns")) for stack in shown}
    nines = choose_nines(list(histograms.values()))
    has_two_clocks = isinstance(load, OpenLoad) and len(intervals) == 1
    stacks = []
    for stack in shown:
        mine = {trial: intervals[trial] for trial in drawn[stack.label]}
        trials = list(mine.values())
        rates = np.array([compute_rates(rows, edges, [row.completed for row in rows]) for rows in trials])
        failed = [compute_rates(rows, edges, [row.failed for row in rows]) for rows in trials]
        samples = [sampled[trial] for trial in mine]
        cpus = [reader.readings(CpuUseRow, trial) for trial in mine]
        networks = [reader.readings(NetworkSampleRow, trial) for trial in mine]
        threads = [reader.readings(ThreadStateRow, trial) for trial in mine]
        series = StackSeries(
            label=stack.label,
            name=stack.name,
            colour=stack.colour,
            trials=len(mine),
            of_trials=len(stack.trials),
            rate_rps=to_line(average(rates)),
            # fmin and fmax ignore the slices in which a trial has no interval.
            rate_low_rps=to_line(np.fmin.reduce(rates)),
            rate_high_rps=to_line(np.fmax.reduce(rates)),
            failed_rps=to_line(average(failed)) if stack.has_failed else [],
            **quantiles_over_time(reader, mine, coarse_edges),
            tiers=process_series.tier_lines(samples, coarse_edges),
            machine_percent=process_series.machine_lines(cpus, coarse_edges, reader.info.placement),
            distribution_ms=latency_distribution(histograms[stack.label], nines),
            service_ms=_service_times(reader, stack.trials, nines) if has_two_clocks else [],
            waiting=waiting_lines(trials, edges),
            errors_rps=error_lines(trials, edges),
            memory_mb=process_series.memory_lines(samples, coarse_edges),
            traffic_mb_s=process_series.traffic_lines(samples, networks, coarse_edges),
            threads=process_series.thread_lines(threads, threads_edges),
        )
        stacks.append(series)
    return PointSeries(
        compute_middles(edges),
        compute_middles(coarse_edges),
        [round(value, 4) for value in nines],
        stacks,
        compute_middles(threads_edges),
        has_intervals=any(intervals.values()),
        offered_rps=_offered_rates(load, compute_middles(edges)),
    )


def _offered_rates(load: Load, times_s: Sequence[float]) -> Line:
    if not isinstance(load, OpenLoad) or load.session is not None:
        return []
    return [timeseries.round_for_chart(value_at(load.rate_rps, at_s)) for at_s in times_s]


def _slice_for_p99_s(trials: Sequence[Sequence[IntervalRow]]) -> float:
    """Returns the length of a slice, in seconds, with enough requests for a p99. Keeps `_FEWEST_SLICES` or more."""
    length_s = max((rows[-1].end_s for rows in trials if rows), default=0.0)
    completed = sum(row.completed for rows in trials for row in rows)
    wanted_s = _REQUESTS_FOR_P99 * length_s / completed if completed else 0.0
    return min(wanted_s, length_s / _FEWEST_SLICES)


def _histograms(reader: RunReader, trials: Sequence[int], clock: str) -> list[bytes]:
    """Returns the histograms of whole trials. A killed load has none, so returns the histograms of its intervals."""
    whole = [data for trial in trials if (data := reader.histogram(trial, clock)) is not None]
    return whole or [data for trial in trials for data in reader.interval_histograms(trial)]


def _service_times(reader: RunReader, trials: Sequence[int], nines: Sequence[float]) -> Line:
    found = [data for trial in trials if (data := reader.histogram(trial, "service_time_ns")) is not None]
    return latency_distribution(samples_of(found), nines) if found else []


def pick_evenly(trials: Sequence[int], most: int) -> list[int]:
    """Returns at most `most` of `trials`, evenly spaced from the first to the last."""
    return [trials[round(place)] for place in np.linspace(0, len(trials) - 1, min(most, len(trials)))]


def latency_distribution(found: Samples, nines: Sequence[float]) -> Line:
    """Returns the time in milliseconds at each of `nines`; None at a percentile with too few slower requests."""
    samples, quantiles = stats.quantiles_by_group(
        np.zeros_like(found.bucket), found.bucket, found.often, 1, [1 - 10**-value for value in nines]
    )
    deepest = math.log10(max(1.0, samples[0] / stats.SAMPLES_BEYOND))
    is_known = (samples[0] > 0) & (np.array(nines) <= deepest + 1e-9)
    return to_line(np.where(is_known, quantiles[:, 0] / 1e6, np.nan))


def choose_nines(samples: Sequence[Samples]) -> list[float]:
    """Returns positions from p0 to the highest percentile with enough slower requests in at least one stack."""
    most = max([2 * stats.SAMPLES_BEYOND, *(int(found.often.sum()) for found in samples)])
    return list(np.linspace(0, math.log10(most / stats.SAMPLES_BEYOND), 120))


def quantiles_over_time(
    reader: RunReader, intervals: Mapping[int, Sequence[IntervalRow]], edges: Array
) -> dict[str, Line]:
    """Returns `p50_ms`, `p90_ms` and `p99_ms` of each slice; None if a slice has too few requests."""
    found = samples_of([data for trial in intervals for data in reader.interval_histograms(trial)])
    slot = _find_slices([row for rows in intervals.values() for row in rows], edges)[found.part]
    inside = (slot >= 0) & (slot < len(edges) - 1)
    samples, quantiles = stats.quantiles_by_group(
        slot[inside], found.bucket[inside], found.often[inside], len(edges) - 1, list(_PERCENTILES.values())
    )
    # A percentile in a line needs only ten slower requests, because a line shows changes. A number needs a hundred.
    beyond = np.outer(1 - np.array(list(_PERCENTILES.values())), samples)
    lines = np.where(beyond >= 10 - 1e-6, quantiles / 1e6, np.nan)
    return dict(zip(_PERCENTILES, map(to_line, lines), strict=True))


def error_lines(trials: Sequence[Sequence[IntervalRow]], edges: Array) -> list[NamedLine]:
    """Returns a line for each kind of failure that occurred: failed requests per second, averaged over trials."""
    kinds = sorted({kind for rows in trials for row in rows for kind, count in row.errors.items() if count})
    return [
        mean_line(kind, [compute_rates(rows, edges, [row.errors.get(kind, 0) for row in rows]) for rows in trials])
        for kind in kinds
    ]


def waiting_lines(trials: Sequence[Sequence[IntervalRow]], edges: Array) -> list[NamedLine]:
    """Returns a line of requests in flight and, if there are any, a line of queued requests. A value is the maximum in
    a slice, averaged over trials."""
    fields = {"in flight": "in_flight"}
    if any(row.queued for rows in trials for row in rows):
        fields["queued"] = "queued"
    return [mean_line(name, [_highest_of(rows, edges, field) for rows in trials]) for name, field in fields.items()]


def _highest_of(rows: Sequence[IntervalRow], edges: Array, field: str) -> Array:
    # There is one more slice at each end, for intervals outside all slices.
    highest: Array = np.full(len(edges) + 1, np.nan)
    np.fmax.at(highest, _find_slices(rows, edges) + 1, np.array([getattr(row, field) for row in rows], np.float64))
    return highest[1:-1]


def compute_rates(rows: Sequence[IntervalRow], edges: Array, counts: Sequence[int]) -> Array:
    """Returns counts per second in each slice, from each interval's count. NaN in slices without intervals."""
    slices, lengths_s = _find_slices(rows, edges) + 1, [row.end_s - row.start_s for row in rows]
    counted, covered_s = (np.bincount(slices, weights, len(edges) + 1)[1:-1] for weights in (counts, lengths_s))
    return divide(counted.astype(np.float64), covered_s.astype(np.float64))


def _find_slices(rows: Sequence[IntervalRow], edges: Array) -> NDArray[np.intp]:
    """Returns the slice of each interval's middle as an index: −1 before all slices, `len(edges) - 1` after all."""
    return np.searchsorted(edges, [(row.start_s + row.end_s) / 2 for row in rows], side="right") - 1
