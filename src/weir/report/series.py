"""The numbers behind the charts over time and of the latency distribution, from the trials that the averages use.

Bounded whatever the run's length: time is cut into at most `MOST_POINTS` slices, and trials of a stack are merged.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weir import stats
from weir.findings import Point
from weir.model import histogram
from weir.model.run import Placement
from weir.store import CpuSampleRow, IntervalRow, RunReader, SampleRow

MOST_POINTS = 240
SHORTEST_COARSE_SLICE_S = 0.5
"""The kernel counts a process's CPU in ticks of 10 ms: in a shorter slice one tick would be a jump of more than 2 %.
A slow stack has too few requests in less for a p99."""
MOST_CPU_LINES = 8
"""On machines with more CPUs they are drawn as the mean of each role's."""

Array = NDArray[np.float64]
Line = list[float | None]


@dataclass(frozen=True, slots=True)
class CpuLine:
    """One line of the CPU charts."""

    label: str
    values: Line


@dataclass(frozen=True, slots=True)
class StackSeries:
    """One stack's lines at one point."""

    label: str
    name: str
    colour: int
    trials: int
    rate_rps: Line
    rate_low_rps: Line
    rate_high_rps: Line
    failed_rps: Line
    p50_ms: Line
    p90_ms: Line
    p99_ms: Line
    tiers: list[CpuLine]
    machine_percent: list[CpuLine]
    distribution_ms: Line


@dataclass(frozen=True, slots=True)
class PointSeries:
    """All stacks of a point, on shared axes. Times are the middles of slices, in seconds since the load's start."""

    time_s: list[float]
    coarse_time_s: list[float]
    """Longer slices, for percentiles and CPU."""
    nines: list[float]
    """−log10 of the share of requests that took longer: 1 is p90, 2 is p99."""
    stacks: list[StackSeries]


def point_series(reader: RunReader, point: Point) -> PointSeries:
    """The series of every stack of `point` with a usable trial; the A/A copy is not drawn over time."""
    main = [stack for stack in point.stacks if stack.arm == "main"]
    shown = [(colour, stack) for colour, stack in enumerate(main) if stack.evidence.used]
    intervals = {trial: reader.intervals(trial) for _, stack in shown for trial in stack.evidence.used}
    edges = slices([row for rows in intervals.values() for row in rows])
    coarse_edges = coarser(edges, SHORTEST_COARSE_SLICE_S)
    histograms = {
        stack.label: [data for trial in stack.evidence.used if (data := reader.histograms(trial).get("response_time_ns")) is not None]
        for _, stack in shown
    }
    nines = nines_of([samples_in(parts) for parts in histograms.values()])
    stacks = []
    for colour, stack in shown:
        mine = {trial: intervals[trial] for trial in stack.evidence.used}
        rates = np.array([rates_of(rows, edges, "completed") for rows in mine.values()])
        p50, p90, p99 = quantiles_over_time(reader, mine, coarse_edges)
        stacks.append(
            StackSeries(
                label=stack.label,
                name=stack.name,
                colour=colour,
                trials=len(mine),
                rate_rps=line_of(_mean(rates)),
                # fmin and fmax pass over slices that a trial did not see.
                rate_low_rps=line_of(np.fmin.reduce(rates)),
                rate_high_rps=line_of(np.fmax.reduce(rates)),
                failed_rps=line_of(_mean([rates_of(rows, edges, "failed") for rows in mine.values()])),
                p50_ms=p50,
                p90_ms=p90,
                p99_ms=p99,
                tiers=tier_lines([reader.samples(trial) for trial in mine], coarse_edges),
                machine_percent=machine_lines([reader.cpu_samples(trial) for trial in mine], coarse_edges, reader.info.placement),
                distribution_ms=latency_distribution(histograms[stack.label], nines),
            )
        )
    return PointSeries(middles(edges), middles(coarse_edges), [round(value, 4) for value in nines], stacks)


def slices(intervals: Sequence[IntervalRow]) -> Array:
    """Edges of equal slices, each a whole number of intervals; a last interval shorter than half the others makes none of its own."""
    lengths = [row.end_s - row.start_s for row in intervals if row.end_s > row.start_s]
    if not lengths:
        return np.array([0.0, 1.0])
    length = float(np.median(lengths))
    end_s = max(row.end_s for row in intervals)
    count = max(1, round(end_s / length))
    group = math.ceil(count / MOST_POINTS)
    return np.arange(0, count // group + 1, dtype=np.float64) * length * group


def coarser(edges: Array, shortest_s: float) -> Array:
    """Every k-th edge, so that no slice is shorter than `shortest_s`."""
    length = float(edges[1] - edges[0])
    step = max(1, math.ceil(shortest_s / length - 1e-9))
    kept = edges[::step]
    return kept if len(kept) > 1 else np.array([edges[0], edges[-1]])


def latency_distribution(parts: Sequence[bytes], nines: Sequence[float]) -> Line:
    """Milliseconds at each of `nines`, from the merged histogram; None where the samples do not support the quantile."""
    if not parts:
        return [None] * len(nines)
    quantiles = stats.merged_quantiles(parts, [1 - 10**-value for value in nines])
    deepest = math.log10(max(1.0, quantiles[0].samples / stats.SAMPLES_BEYOND)) if quantiles else 0.0
    return [
        round(quantile.value / 1e6, 5) if quantile.value is not None and value <= deepest + 1e-9 else None
        for value, quantile in zip(nines, quantiles, strict=True)
    ]


def samples_in(parts: Sequence[bytes]) -> int:
    """How many samples histograms hold together."""
    return sum(sum(histogram.counts_in(data).values()) for data in parts)


def nines_of(samples: Sequence[int]) -> list[float]:
    """A grid from p0 to the deepest quantile that any stack's samples support."""
    deepest = math.log10(max([2 * stats.SAMPLES_BEYOND, *samples]) / stats.SAMPLES_BEYOND)
    return [float(value) for value in np.linspace(0, deepest, 160)]


def quantiles_over_time(reader: RunReader, intervals: dict[int, list[IntervalRow]], edges: Array) -> tuple[Line, Line, Line]:
    """p50, p90 and p99 of each slice in milliseconds, over the trials in `intervals`; None where a slice has too few requests."""
    parts: list[list[bytes]] = [[] for _ in range(len(edges) - 1)]
    for trial, rows in intervals.items():
        for row, data in zip(rows, reader.interval_histograms(trial), strict=True):
            at = int(np.searchsorted(edges, (row.start_s + row.end_s) / 2, side="right")) - 1
            if 0 <= at < len(parts):
                parts[at].append(data)
    lines: tuple[Line, Line, Line] = ([], [], [])
    for part in parts:
        for line, quantile in zip(lines, stats.merged_quantiles(part, (0.5, 0.9, 0.99)), strict=True):
            # Ten samples beyond are enough for a line that shows movement; numbers in tables need a hundred.
            beyond = quantile.samples * (1 - quantile.probability)
            line.append(round(quantile.value / 1e6, 5) if quantile.value is not None and beyond >= 10 - 1e-6 else None)
    return lines


def rates_of(rows: Sequence[IntervalRow], edges: Array, field: str) -> Array:
    """Requests per second in each slice; NaN where the trial saw none of it."""
    middles = [(row.start_s + row.end_s) / 2 for row in rows]
    counts, _ = np.histogram(middles, edges, weights=[getattr(row, field) for row in rows])
    covered, _ = np.histogram(middles, edges, weights=[row.end_s - row.start_s for row in rows])
    with np.errstate(divide="ignore", invalid="ignore"):
        rates: Array = np.where(covered > 0, counts / covered, np.nan)
    return rates


def tier_lines(samples: Sequence[Sequence[SampleRow]], edges: Array) -> list[CpuLine]:
    """User and system time of each tier in CPUs, the mean over trials; each process group of a tier added up."""
    tiers = sorted({row.tier for rows in samples for row in rows})
    lines = []
    for tier in tiers:
        for kind, field in (("user", "cpu_user_s"), ("system", "cpu_system_s")):
            trials = []
            for rows in samples:
                names = sorted({row.name for row in rows if row.tier == tier})
                groups = [[row for row in rows if row.name == name] for name in names]
                slopes = [slope([row.t_s for row in group], [getattr(row, field) for row in group], edges) for group in groups]
                if slopes:
                    trials.append(np.sum(slopes, axis=0))
            if trials:
                lines.append(CpuLine(f"{tier} {kind}", line_of(_mean(trials))))
    return lines


def machine_lines(samples: Sequence[Sequence[CpuSampleRow]], edges: Array, placement: Placement) -> list[CpuLine]:
    """Utilisation of each CPU in percent and the machine's steal, the mean over trials."""
    cpus = sorted({row.cpu for rows in samples for row in rows})
    busy: dict[int, list[Array]] = {cpu: [] for cpu in cpus}
    stolen: list[Array] = []
    for rows in samples:
        trial_steal = []
        for cpu in cpus:
            mine = [row for row in rows if row.cpu == cpu]
            times = [row.t_s for row in mine]
            total = slope(times, [r.user_s + r.system_s + r.irq_s + r.softirq_s + r.idle_s + r.iowait_s + r.steal_s for r in mine], edges)
            work = slope(times, [r.user_s + r.system_s + r.irq_s + r.softirq_s for r in mine], edges)
            steal = slope(times, [r.steal_s for r in mine], edges)
            with np.errstate(divide="ignore", invalid="ignore"):
                busy[cpu].append(np.where(total > 0, 100 * work / total, np.nan))
                trial_steal.append(np.where(total > 0, 100 * steal / total, np.nan))
        if trial_steal:
            stolen.append(_mean(trial_steal))
    lines = [
        CpuLine(label, line_of(_mean([values for cpu in members for values in busy[cpu]]))) for label, members in _rows(cpus, placement)
    ]
    return [*lines, CpuLine("steal", line_of(_mean(stolen)))] if stolen else lines


def _rows(cpus: Sequence[int], placement: Placement) -> list[tuple[str, list[int]]]:
    roles = {"load": placement.load, "stack": placement.stack, "services": placement.services, "control": placement.control}
    if len(cpus) <= MOST_CPU_LINES:
        named = {cpu: [role for role, members in roles.items() if cpu in members] for cpu in cpus}
        return [(f"CPU {cpu}" + (f" ({', '.join(named[cpu])})" if named[cpu] else ""), [cpu]) for cpu in cpus]
    rows = [(f"{role} CPUs", [cpu for cpu in members if cpu in cpus]) for role, members in roles.items()]
    placed = {cpu for _, members in rows for cpu in members}
    rows.append(("other CPUs", [cpu for cpu in cpus if cpu not in placed]))
    return [(label, members) for label, members in rows if members]


def slope(times_s: Sequence[float], cumulative: Sequence[float], edges: Array) -> Array:
    """Growth per second of a cumulative counter in each slice; NaN outside of what was sampled."""
    if len(times_s) < 2:
        return np.full(len(edges) - 1, np.nan)
    # A sample may come a little after the last edge or before the first; half a slice of tolerance keeps the ends.
    at_edges = np.interp(edges, times_s, cumulative)
    width = float(edges[1] - edges[0])
    inside = (edges[:-1] >= times_s[0] - width / 2) & (edges[1:] <= times_s[-1] + width / 2)
    return np.where(inside, np.diff(at_edges) / width, np.nan)


def _mean(arrays: Sequence[Array] | Array) -> Array:
    """The mean over arrays, slice by slice, of those that have a value there."""
    stacked = np.array(arrays)
    counts = (~np.isnan(stacked)).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean: Array = np.where(counts > 0, np.nansum(stacked, axis=0) / counts, np.nan)
    return mean


def middles(edges: Array) -> list[float]:
    """The middles of slices, to a tenth of a millisecond."""
    return [round(float(value), 4) for value in (edges[:-1] + edges[1:]) / 2]


def line_of(values: Array) -> Line:
    """Four significant digits are more than a chart can show; NaN becomes a gap."""
    return [None if math.isnan(value) else float(f"{value:.4g}") for value in values]
