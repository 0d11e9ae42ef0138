"""Computes lines of charts over time from samples of the processes and the machine. Each line is a mean over trials."""

from collections.abc import Sequence
from itertools import chain, groupby

import numpy as np

from weir.model.observer_records import THREAD_STATES
from weir.model.run_types import Placement
from weir.report.timeseries import Array, NamedLine, average, divide, is_sampled, mean_line, slope, to_line
from weir.store import CpuUseRow, NetworkSampleRow, ThreadStateRow, UseRow

SHORTEST_THREADS_SLICE_S = 1.0
"""Minimum length of a slice for threads, because the observer reads the threads about once a second."""
MOST_CPU_LINES = 8
"""Maximum number of CPUs with a line each. With more CPUs, each line is the mean over one role's CPUs."""


def tier_lines(samples: Sequence[Sequence[UseRow]], edges: Array) -> list[NamedLine]:
    """Returns lines of user and system time for each tier, in CPUs: sums over the process groups of the tier."""
    return [
        mean_line(f"{tier} {kind}", [_growth(groups, field, edges) for groups in trials])
        for tier, trials in _group_by_tier(samples).items()
        for kind, field in (("user", "cpu_user_s"), ("system", "cpu_system_s"))
    ]


def machine_lines(samples: Sequence[Sequence[CpuUseRow]], edges: Array, placement: Placement) -> list[NamedLine]:
    """Returns the utilisation of each CPU (or of each role's CPUs) and the machine's steal time, in percent."""
    cpus = sorted({row.cpu for rows in samples for row in rows})
    busy: dict[int, list[Array]] = {cpu: [] for cpu in cpus}
    stolen: list[Array] = []
    for rows in samples if cpus else ():
        trial_steal = []
        width = len(CpuUseRow._fields)
        table = np.fromiter(chain.from_iterable(rows), np.float64, len(rows) * width).reshape(-1, width)
        for cpu in cpus:
            at_s, _, worked_s, total_s, steal_s = table[table[:, 1] == cpu].T
            total = slope(at_s, total_s, edges)
            busy[cpu].append(divide(100 * slope(at_s, worked_s, edges), total))
            trial_steal.append(divide(100 * slope(at_s, steal_s, edges), total))
        stolen.append(average(trial_steal))
    rows_of_cpus = _rows(cpus, placement)
    lines = [mean_line(label, [one for cpu in members for one in busy[cpu]]) for label, members in rows_of_cpus]
    return [*lines, mean_line("steal", stolen)] if stolen else lines


def cpus_by_role(placement: Placement) -> dict[str, tuple[int, ...]]:
    """Returns the CPUs of each role: load, stack, services and control."""
    return {role: getattr(placement, role) for role in ("load", "stack", "services", "control")}


def _rows(cpus: Sequence[int], placement: Placement) -> list[tuple[str, list[int]]]:
    roles = cpus_by_role(placement)
    if len(cpus) <= MOST_CPU_LINES:
        named = {cpu: [role for role, members in roles.items() if cpu in members] for cpu in cpus}
        return [(f"CPU {cpu}" + (f" ({', '.join(named[cpu])})" if named[cpu] else ""), [cpu]) for cpu in cpus]
    roles["other"] = tuple(set(cpus).difference(*roles.values()))
    rows = [(f"{role} CPUs", [cpu for cpu in members if cpu in cpus]) for role, members in roles.items()]
    return [(label, members) for label, members in rows if members]


def memory_lines(samples: Sequence[Sequence[UseRow]], edges: Array) -> list[NamedLine]:
    """Returns each tier's resident memory in MB at the middle of each slice, as a sum over process groups."""
    at = (edges[:-1] + edges[1:]) / 2

    def resident_mb(groups: Sequence[Sequence[UseRow]]) -> Array:
        found = [np.interp(at, [row.t_s for row in rows], [row.rss_bytes / 1e6 for row in rows]) for rows in groups]
        return _within_samples(np.sum(found, axis=0), groups, edges)

    tiers = _group_by_tier(samples)
    return [mean_line(tier, [resident_mb(groups) for groups in trials]) for tier, trials in tiers.items()]


def traffic_lines(
    samples: Sequence[Sequence[UseRow]], networks: Sequence[Sequence[NetworkSampleRow]], edges: Array
) -> list[NamedLine]:
    """Returns each tier's disk traffic and the machine's loopback traffic in MB per second. Omits lines of zeros."""
    lines = [
        mean_line(f"{tier}, {verb}", [_growth(groups, field, edges) / 1e6 for groups in trials])
        for tier, trials in _group_by_tier(samples).items()
        for verb, field in (("read from disk", "disk_read_bytes"), ("written to disk", "disk_written_bytes"))
    ]
    machine = [[row for row in rows if not row.name] for rows in networks]
    loopback = [_growth([rows], "loopback_bytes", edges) / 1e6 for rows in machine if rows]
    lines += [mean_line("loopback", loopback)] if loopback else []
    return [line for line in lines if any(line.values)]


def thread_lines(trials: Sequence[Sequence[ThreadStateRow]], edges: Array) -> list[NamedLine]:
    """Returns a line for each thread state that occurred: the mean number of threads over all tiers."""
    found = [_threads_by_state(rows, edges) for rows in trials if rows]
    if not found:
        return []
    lines = [NamedLine(state, to_line(mean)) for state, mean in zip(THREAD_STATES, average(found), strict=True)]
    return [line for line in lines if any(line.values)]


def _threads_by_state(rows: Sequence[ThreadStateRow], edges: Array) -> Array:
    """Returns one trial's number of threads, with a row for each state. The readings' thread counts give the number.
    The readings' times, which may be late, give only the shares of the states."""
    pools: dict[tuple[str, str, str], list[ThreadStateRow]] = {}
    for row in rows:
        pools.setdefault((row.name, row.tier, row.pool), []).append(row)
    at = (edges[:-1] + edges[1:]) / 2
    total: Array = np.zeros((len(THREAD_STATES), len(at)))
    for pool in pools.values():
        times = [row.t_s for row in pool]
        spent = np.array([slope(times, [getattr(row, f"{state}_s") for row in pool], edges) for state in THREAD_STATES])
        alive = np.interp(at, times, [row.threads for row in pool])
        # A pool has no threads before its start and after its end.
        total += np.nan_to_num(divide(spent * alive, spent.sum(axis=0)))
    return _within_samples(total, list(pools.values()), edges)


def _group_by_tier(samples: Sequence[Sequence[UseRow]]) -> dict[str, list[list[list[UseRow]]]]:
    """Groups samples by tier, then by trial, then by process group. A tier has only trials with its samples."""
    tiers: dict[str, list[list[list[UseRow]]]] = {}
    for rows in samples:
        in_order = sorted(rows, key=lambda row: (row.tier, row.name))
        for tier, members in groupby(in_order, lambda row: row.tier):
            groups = [list(group) for _, group in groupby(members, lambda row: row.name)]
            tiers.setdefault(tier, []).append(groups)
    return dict(sorted(tiers.items()))


def _growth(groups: Sequence[Sequence[UseRow | NetworkSampleRow]], field: str, edges: Array) -> Array:
    """Returns the growth of a counter per second, as a sum over process groups. Ignores samples without the counter."""
    known = [[row for row in rows if getattr(row, field) is not None] for rows in groups]
    slopes = [slope([row.t_s for row in rows], [getattr(row, field) for row in rows], edges) for rows in known]
    return np.asarray(np.sum(slopes, axis=0))


def _within_samples(
    values: Array, groups: Sequence[Sequence[UseRow] | Sequence[ThreadStateRow]], edges: Array
) -> Array:
    times_s = [row.t_s for rows in groups for row in rows]
    return np.where(is_sampled(min(times_s), max(times_s), edges), values, np.nan)
