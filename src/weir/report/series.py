"""The numbers behind the charts over time and of the latency distribution, from the trials that the averages use.

Bounded whatever the run's length: time is cut into at most `MOST_POINTS` slices, and trials of a stack are merged.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from weir import stats
from weir.model.histograms import Samples, samples_of
from weir.report.lines import MOST_POINTS, Array, Line, NamedLine, coarser, line_of, mean_of, middles, slices
from weir.report.process_series import SHORTEST_THREADS_SLICE_S, machine_lines, memory_lines, thread_lines, tier_lines, traffic_lines
from weir.report.shown import Shown
from weir.store import IntervalRow, RunReader

FEWEST_POINTS = 40
MOST_SLICES = 6_000
"""Of all stacks at all points together: a page with a thousand trials is to stay small."""
FEWEST_TRIALS = 3
MOST_TRIALS = 300
"""Whose course over time is drawn, of all stacks at all points together: a page with a thousand trials is to be there soon."""
SHORTEST_COARSE_SLICE_S = 0.5
"""The kernel counts a process's CPU in ticks of 10 ms: in a shorter slice one tick would be a jump of more than 2 %.
A slow stack has too few requests in less for a p99."""


@dataclass(frozen=True, slots=True)
class StackSeries:
    """One stack's lines at one point."""

    label: str
    name: str
    colour: int
    trials: int
    """How many are drawn over time."""
    rate_rps: Line
    rate_low_rps: Line
    rate_high_rps: Line
    failed_rps: Line
    """Empty where none failed."""
    p50_ms: Line
    p90_ms: Line
    p99_ms: Line
    tiers: list[NamedLine]
    machine_percent: list[NamedLine]
    distribution_ms: Line
    """Of all used trials."""
    of_trials: int = 1
    """How many are used."""
    waiting: list[NamedLine] = field(default_factory=list)
    """Requests in flight, and those queued for a connection where there were any."""
    errors_rps: list[NamedLine] = field(default_factory=list)
    """Failed requests by kind; those kinds of which there were any."""
    memory_mb: list[NamedLine] = field(default_factory=list)
    """Resident memory of each tier."""
    traffic_mb_s: list[NamedLine] = field(default_factory=list)
    """What each tier read from disks and wrote to them, and what went over the loopback device; without what never moved."""
    threads: list[NamedLine] = field(default_factory=list)
    """Mean number of threads in each state, in the order of `records.THREAD_STATES`; those states in which there were any."""


@dataclass(frozen=True, slots=True)
class PointSeries:
    """All stacks of a point, on shared axes. Times are the middles of slices, in seconds since the load's start."""

    time_s: list[float]
    coarse_time_s: list[float]
    """Longer slices, for percentiles and CPU."""
    nines: list[float]
    """−log10 of the share of requests that took longer: 1 is p90, 2 is p99."""
    stacks: list[StackSeries]
    threads_time_s: list[float] = field(default_factory=list)
    """Slices no shorter than a second, about which threads are read."""
    has_intervals: bool = True
    """Whether the generator tells what happened when; otherwise only the server's processes have lines over time."""


def point_series(reader: RunReader, shown: Sequence[Shown], together: int = 1) -> PointSeries:
    """The series of the stacks of a point.

    Args:
        reader: the run.
        shown: the stacks.
        together: how many stacks at how many points, multiplied, share the page.
    """
    drawn = {stack.label: evenly(stack.trials, max(FEWEST_TRIALS, MOST_TRIALS // together)) for stack in shown}
    intervals = {trial: reader.intervals(trial) for trials in drawn.values() for trial in trials}
    most_points = max(FEWEST_POINTS, min(MOST_POINTS, MOST_SLICES // together))
    sampled = {trial: reader.use(trial) for trial in intervals}
    lasted_s = max((rows[-1].t_s for rows in sampled.values() if rows), default=1.0)
    edges = slices([row for rows in intervals.values() for row in rows], most_points, lasted_s=max(lasted_s, SHORTEST_COARSE_SLICE_S))
    coarse_edges = coarser(edges, SHORTEST_COARSE_SLICE_S)
    threads_edges = coarser(edges, SHORTEST_THREADS_SLICE_S)
    histograms = {
        stack.label: samples_of([data for trial in stack.trials if (data := reader.histogram(trial, "response_time_ns")) is not None])
        for stack in shown
    }
    nines = nines_of(list(histograms.values()))
    stacks = []
    for stack in shown:
        mine = {trial: intervals[trial] for trial in drawn[stack.label]}
        rates = np.array([rates_of(rows, edges, "completed") for rows in mine.values()])
        samples = [sampled[trial] for trial in mine]
        p50, p90, p99 = quantiles_over_time(reader, mine, coarse_edges)
        stacks.append(
            StackSeries(
                label=stack.label,
                name=stack.name,
                colour=stack.colour,
                trials=len(mine),
                rate_rps=line_of(mean_of(rates)),
                # fmin and fmax pass over slices that a trial did not see.
                rate_low_rps=line_of(np.fmin.reduce(rates)),
                rate_high_rps=line_of(np.fmax.reduce(rates)),
                failed_rps=line_of(mean_of([rates_of(rows, edges, "failed") for rows in mine.values()])) if stack.has_failed else [],
                p50_ms=p50,
                p90_ms=p90,
                p99_ms=p99,
                tiers=tier_lines(samples, coarse_edges),
                machine_percent=machine_lines([reader.cpu_samples(trial) for trial in mine], coarse_edges, reader.info.placement),
                distribution_ms=latency_distribution(histograms[stack.label], nines),
                of_trials=len(stack.trials),
                waiting=waiting_lines(list(mine.values()), edges),
                errors_rps=error_lines(list(mine.values()), edges),
                memory_mb=memory_lines(samples, coarse_edges),
                traffic_mb_s=traffic_lines(samples, [reader.network_samples(trial) for trial in mine], coarse_edges),
                threads=thread_lines([reader.thread_states(trial) for trial in mine], threads_edges),
            )
        )
    return PointSeries(
        middles(edges),
        middles(coarse_edges),
        [round(value, 4) for value in nines],
        stacks,
        middles(threads_edges),
        has_intervals=any(intervals.values()),
    )


def evenly(trials: Sequence[int], most: int) -> list[int]:
    """At most so many of them, from the first to the last at even distances."""
    if len(trials) <= most:
        return list(trials)
    return [trials[round(place)] for place in np.linspace(0, len(trials) - 1, most)]


def latency_distribution(found: Samples, nines: Sequence[float]) -> Line:
    """Milliseconds at each of `nines`, of all samples together; None where they do not support the quantile."""
    samples, quantiles = stats.quantiles_by_group(
        np.zeros_like(found.bucket), found.bucket, found.often, 1, [1 - 10**-value for value in nines]
    )
    deepest = math.log10(max(1.0, samples[0] / stats.SAMPLES_BEYOND))
    is_known = (samples[0] > 0) & (np.array(nines) <= deepest + 1e-9)
    return line_of(np.where(is_known, quantiles[:, 0] / 1e6, np.nan))


def nines_of(samples: Sequence[Samples]) -> list[float]:
    """A grid from p0 to the deepest quantile that any stack's samples support."""
    deepest = math.log10(max([2 * stats.SAMPLES_BEYOND, *(int(found.often.sum()) for found in samples)]) / stats.SAMPLES_BEYOND)
    return [float(value) for value in np.linspace(0, deepest, 120)]


def quantiles_over_time(reader: RunReader, intervals: dict[int, list[IntervalRow]], edges: Array) -> tuple[Line, Line, Line]:
    """p50, p90 and p99 of each slice in milliseconds, over the trials in `intervals`; None where a slice has too few requests."""
    parts = [data for trial in intervals for data in reader.interval_histograms(trial)]
    at = np.searchsorted(edges, [_middle(row) for rows in intervals.values() for row in rows], side="right") - 1
    found = samples_of(parts)
    slot = at[found.part]
    inside = (slot >= 0) & (slot < len(edges) - 1)
    samples, quantiles = stats.quantiles_by_group(slot[inside], found.bucket[inside], found.often[inside], len(edges) - 1, (0.5, 0.9, 0.99))
    lines: list[Line] = []
    for probability, values in zip((0.5, 0.9, 0.99), quantiles, strict=True):
        # Ten samples beyond are enough for a line that shows movement; numbers in tables need a hundred.
        enough = samples * (1 - probability) >= 10 - 1e-6
        lines.append(line_of(np.where(enough, values / 1e6, np.nan)))
    return lines[0], lines[1], lines[2]


def rates_of(rows: Sequence[IntervalRow], edges: Array, field: str) -> Array:
    """Requests per second in each slice; NaN where the trial saw none of it."""
    return _rates(rows, edges, [getattr(row, field) for row in rows])


def error_lines(trials: Sequence[Sequence[IntervalRow]], edges: Array) -> list[NamedLine]:
    """Failed requests per second of each kind of which there are any, the mean over trials."""
    kinds = sorted({kind for rows in trials for row in rows for kind, count in row.errors.items() if count})
    return [
        NamedLine(kind, line_of(mean_of([_rates(rows, edges, [row.errors.get(kind, 0) for row in rows]) for rows in trials])))
        for kind in kinds
    ]


def waiting_lines(trials: Sequence[Sequence[IntervalRow]], edges: Array) -> list[NamedLine]:
    """Requests in flight and queued at the ends of intervals, the highest of each slice and the mean of that over trials."""
    fields = {"in flight": "in_flight"}
    if any(row.queued for rows in trials for row in rows):
        fields["queued"] = "queued"
    return [NamedLine(name, line_of(mean_of([_highest_of(rows, edges, field) for rows in trials]))) for name, field in fields.items()]


def _highest_of(rows: Sequence[IntervalRow], edges: Array, field: str) -> Array:
    highest: Array = np.full(len(edges) - 1, np.nan)
    at = np.searchsorted(edges, [_middle(row) for row in rows], side="right") - 1
    inside = (at >= 0) & (at < len(highest))
    np.fmax.at(highest, at[inside], np.array([getattr(row, field) for row in rows], dtype=np.float64)[inside])
    return highest


def _middle(row: IntervalRow) -> float:
    return (row.start_s + row.end_s) / 2


def _rates(rows: Sequence[IntervalRow], edges: Array, numbers: Sequence[int]) -> Array:
    middles = [_middle(row) for row in rows]
    counts, _ = np.histogram(middles, edges, weights=numbers)
    covered, _ = np.histogram(middles, edges, weights=[row.end_s - row.start_s for row in rows])
    with np.errstate(divide="ignore", invalid="ignore"):
        rates: Array = np.where(covered > 0, counts / covered, np.nan)
    return rates
