"""Computes the current figures of a stack's processes and threads from the last samples. Pure."""

from collections import deque
from operator import attrgetter
from typing import Any

from weir.model.observer_records import THREAD_STATES, GroupSample, PoolTimes, Sample

_SECOND_NS = 1_000_000_000
_MOST_READINGS = 32
MOST_POOLS = 24
"""Maximum number of thread pools on the page for each process group. The page shows the largest pools."""
_LEAST_THREADS = 0.005
_SHOWN = {"name", "tier", "processes", "threads", "rss_bytes"}
_STATES = attrgetter(*(f"{state}_s" for state in THREAD_STATES))


class Processes:
    """The last samples of the processes during one load."""

    def __init__(self) -> None:
        self._readings: deque[Sample] = deque(maxlen=_MOST_READINGS)
        self._sweeps: deque[Sample] = deque(maxlen=2)
        """The last two samples with thread states."""

    def add_sample(self, sample: Sample) -> Sample | None:
        """Adds a sample and returns the previous sample, or None for the first sample. Ignores a late sample."""
        before = self._readings[-1] if self._readings else None
        if before is not None and sample.t_ns <= before.t_ns:
            return None
        self._readings.append(sample)
        if any(group.threads_by_state is not None for group in sample.groups):
            self._sweeps.append(sample)
        return before

    def build_rows(self) -> list[dict[str, Any]]:
        """Returns a row for each process group, with its processes, threads, memory, CPUs and thread states."""
        if not self._readings:
            return []
        last = self._readings[-1]
        before = next((one for one in self._readings if last.t_ns - one.t_ns <= 1.05 * _SECOND_NS), last)
        earlier = {group.name: group for group in before.groups}
        seconds = (last.t_ns - before.t_ns) / 1e9
        rows = []
        for group in last.groups:
            cpus = None
            if group.name in earlier and seconds > 0:
                cpus = round(max(cpu_s(group) - cpu_s(earlier[group.name]), 0.0) / seconds, 2)
            rows.append(
                {name: getattr(group, name) for name in _SHOWN} | {"cpus": cpus, "pools": self._pools(group.name)}
            )
        return rows

    def _pools(self, name: str) -> list[dict[str, Any]]:
        """Returns a group's thread states by pool, averaged between the last two samples with thread states."""
        if len(self._sweeps) < 2:
            return []
        before, after = (_times(sweep, name) for sweep in self._sweeps)
        seconds = (self._sweeps[1].t_ns - self._sweeps[0].t_ns) / 1e9
        found = []
        for pool, times in sorted(after.items(), key=lambda item: -item[1].threads)[:MOST_POOLS]:
            spent = _STATES(times)
            earlier = _STATES(before[pool]) if pool in before else (0.0,) * len(spent)
            threads = [(now_s - then_s) / seconds for now_s, then_s in zip(spent, earlier, strict=True)]
            states = zip(THREAD_STATES, threads, strict=True)
            doing = {state: round(number, 2) for state, number in states if number > _LEAST_THREADS}
            found.append({"pool": pool, "threads": times.threads, "doing": doing})
        return found


def cpu_s(group: GroupSample) -> float:
    """Returns the total CPU time of a process group, in seconds."""
    return group.cpu_user_s + group.cpu_system_s


def cpu_by_tier(before: Sample, after: Sample) -> dict[str, float]:
    """Returns the CPU seconds of each tier between two samples. A new group counts from 0. An ended group adds 0."""
    earlier = {group.name: cpu_s(group) for group in before.groups}
    used: dict[str, float] = {}
    for group in after.groups:
        used[group.tier] = used.get(group.tier, 0.0) + max(cpu_s(group) - earlier.get(group.name, 0.0), 0.0)
    return used


def _times(sample: Sample, name: str) -> dict[str, PoolTimes]:
    groups = (group for group in sample.groups if group.name == name)
    return {times.pool: times for group in groups for times in group.threads_by_state or ()}
