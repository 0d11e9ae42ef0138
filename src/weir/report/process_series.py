"""What the processes and the machine did over time, from a run's samples: lines for charts, each the mean over trials."""

from collections.abc import Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from weir.model.records import THREAD_STATES
from weir.model.run import Placement
from weir.report.lines import Array, NamedLine, line_of, mean_of, slope
from weir.store import CpuSampleRow, NetworkSampleRow, ThreadStateRow, UseRow

SHORTEST_THREADS_SLICE_S = 1.0
"""Threads are read about once a second."""
MOST_CPU_LINES = 8
"""On machines with more CPUs they are drawn as the mean of each role's."""


def tier_lines(samples: Sequence[Sequence[UseRow]], edges: Array) -> list[NamedLine]:
    """User and system time of each tier in CPUs, the mean over trials; each process group of a tier added up."""
    lines = []
    for tier in sorted({row.tier for rows in samples for row in rows}):
        for kind, field in (("user", "cpu_user_s"), ("system", "cpu_system_s")):
            trials = [
                np.sum([slope([row.t_s for row in rows], [getattr(row, field) for row in rows], edges) for rows in groups], axis=0)
                for groups in _groups(samples, tier)
            ]
            lines.append(NamedLine(f"{tier} {kind}", line_of(mean_of(trials))))
    return lines


def machine_lines(samples: Sequence[Sequence[CpuSampleRow]], edges: Array, placement: Placement) -> list[NamedLine]:
    """Utilisation of each CPU in percent and the machine's steal, the mean over trials."""
    cpus = sorted({row.cpu for rows in samples for row in rows})
    busy: dict[int, list[Array]] = {cpu: [] for cpu in cpus}
    stolen: list[Array] = []
    for rows in samples:
        trial_steal = []
        width = len(CpuSampleRow._fields)
        table = np.fromiter(chain.from_iterable(rows), np.float64, len(rows) * width).reshape(-1, width)
        for cpu in cpus:
            at_s, _, user_s, system_s, idle_s, iowait_s, irq_s, softirq_s, steal_s = table[table[:, 1] == cpu].T
            worked_s = user_s + system_s + irq_s + softirq_s
            work, total = slope(at_s, worked_s, edges), slope(at_s, worked_s + idle_s + iowait_s + steal_s, edges)
            steal = slope(at_s, steal_s, edges)
            with np.errstate(divide="ignore", invalid="ignore"):
                busy[cpu].append(np.where(total > 0, 100 * work / total, np.nan))
                trial_steal.append(np.where(total > 0, 100 * steal / total, np.nan))
        if trial_steal:
            stolen.append(mean_of(trial_steal))
    lines = [
        NamedLine(label, line_of(mean_of([values for cpu in members for values in busy[cpu]]))) for label, members in _rows(cpus, placement)
    ]
    return [*lines, NamedLine("steal", line_of(mean_of(stolen)))] if stolen else lines


def _rows(cpus: Sequence[int], placement: Placement) -> list[tuple[str, list[int]]]:
    roles = {"load": placement.load, "stack": placement.stack, "services": placement.services, "control": placement.control}
    if len(cpus) <= MOST_CPU_LINES:
        named = {cpu: [role for role, members in roles.items() if cpu in members] for cpu in cpus}
        return [(f"CPU {cpu}" + (f" ({', '.join(named[cpu])})" if named[cpu] else ""), [cpu]) for cpu in cpus]
    rows = [(f"{role} CPUs", [cpu for cpu in members if cpu in cpus]) for role, members in roles.items()]
    placed = {cpu for _, members in rows for cpu in members}
    rows.append(("other CPUs", [cpu for cpu in cpus if cpu not in placed]))
    return [(label, members) for label, members in rows if members]


def memory_lines(samples: Sequence[Sequence[UseRow]], edges: Array) -> list[NamedLine]:
    """Resident memory of each tier in MB at the middle of each slice, the mean over trials; each process group of a tier added up."""
    at = (edges[:-1] + edges[1:]) / 2
    lines = []
    for tier in sorted({row.tier for rows in samples for row in rows}):
        trials = []
        for groups in _groups(samples, tier):
            found = [np.interp(at, [row.t_s for row in rows], [row.rss_bytes / 1e6 for row in rows]) for rows in groups]
            trials.append(np.where(_is_sampled(groups, edges), np.sum(found, axis=0), np.nan))
        lines.append(NamedLine(tier, line_of(mean_of(trials))))
    return lines


def traffic_lines(samples: Sequence[Sequence[UseRow]], networks: Sequence[Sequence[NetworkSampleRow]], edges: Array) -> list[NamedLine]:
    """MB a second: each tier's reading and writing of disks, and the machine's loopback device; the mean over trials."""
    lines = []
    for tier in sorted({row.tier for rows in samples for row in rows}):
        for verb, field in (("read from disk", "disk_read_bytes"), ("written to disk", "disk_written_bytes")):
            trials = []
            for groups in _groups(samples, tier):
                known = [[row for row in rows if getattr(row, field) is not None] for rows in groups]
                slopes = [slope([row.t_s for row in rows], [getattr(row, field) for row in rows], edges) for rows in known]
                trials.append(np.sum(slopes, axis=0) / 1e6)
            lines.append(NamedLine(f"{tier}, {verb}", line_of(mean_of(trials))))
    machine = [[row for row in rows if not row.name] for rows in networks]
    loopback = [slope([row.t_s for row in rows], [row.loopback_bytes for row in rows], edges) / 1e6 for rows in machine if rows]
    if loopback:
        lines.append(NamedLine("loopback", line_of(mean_of(loopback))))
    return [line for line in lines if any(line.values)]


def thread_lines(trials: Sequence[Sequence[ThreadStateRow]], edges: Array) -> list[NamedLine]:
    """Mean number of threads in each state over all pools of all tiers; those states in which there were any."""
    found = [_threads_by_state(rows, edges) for rows in trials if rows]
    if not found:
        return []
    lines = [NamedLine(state, line_of(mean)) for state, mean in zip(THREAD_STATES, mean_of(found), strict=True)]
    return [line for line in lines if any(line.values)]


def _threads_by_state(rows: Sequence[ThreadStateRow], edges: Array) -> Array:
    """Of one trial, a row for each state.

    Where threads are read late their time is booked late: how a pool's threads share out is what their time says, how many there are what
    was counted.
    """
    pools: dict[tuple[str, str, str], list[ThreadStateRow]] = {}
    for row in rows:
        pools.setdefault((row.name, row.tier, row.pool), []).append(row)
    at = (edges[:-1] + edges[1:]) / 2
    total: Array = np.zeros((len(THREAD_STATES), len(at)))
    for pool in pools.values():
        times = [row.t_s for row in pool]
        spent = np.array([slope(times, [getattr(row, f"{state}_s") for row in pool], edges) for state in THREAD_STATES])
        # A pool that comes later, or ends before the load does, has no threads then.
        spent = np.nan_to_num(spent)
        alive = np.interp(at, times, [row.threads for row in pool])
        booked = spent.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            total += np.where(booked > 0, spent * alive / booked, 0.0)
    return np.where(_is_sampled(list(pools.values()), edges), total, np.nan)


def _groups(samples: Sequence[Sequence[UseRow]], tier: str) -> list[list[list[UseRow]]]:
    """Of each trial that has samples of a tier, those of each of its process groups."""
    found = []
    for rows in samples:
        names = sorted({row.name for row in rows if row.tier == tier})
        if names:
            found.append([[row for row in rows if row.name == name and row.tier == tier] for name in names])
    return found


def _is_sampled(groups: Sequence[Sequence[UseRow] | Sequence[ThreadStateRow]], edges: Array) -> NDArray[np.bool_]:
    """Which slices lie between a trial's first and last reading, give or take half a slice."""
    times = [row.t_s for rows in groups for row in rows]
    width = float(edges[1] - edges[0])
    inside: NDArray[np.bool_] = (edges[:-1] >= min(times) - width / 2) & (edges[1:] <= max(times) + width / 2)
    return inside
