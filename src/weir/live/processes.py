"""The processes and threads of a stack as they are: what the last readings say of each, over the last second. Pure."""

from collections import deque
from operator import attrgetter
from typing import Any

from weir.model.records import THREAD_STATES, GroupSample, PoolTimes, Sample

_SECOND_NS = 1_000_000_000
_MOST_READINGS = 32
MOST_POOLS = 24
"""Of each group, the largest first: a page is no list of hundreds of names."""
_LEAST_THREADS = 0.005


class Processes:
    """Readings of one load's processes, the last of them."""

    def __init__(self) -> None:
        self._readings: deque[Sample] = deque(maxlen=_MOST_READINGS)
        self._sweeps: deque[Sample] = deque(maxlen=2)
        """Those in which threads were looked at."""

    def take(self, sample: Sample) -> Sample | None:
        """Keeps a reading, and gives the one before it; None where it is the first, or came late."""
        before = self._readings[-1] if self._readings else None
        if before is not None and sample.t_ns <= before.t_ns:
            return None
        self._readings.append(sample)
        if any(group.threads_by_state is not None for group in sample.groups):
            self._sweeps.append(sample)
        return before

    def rows(self) -> list[dict[str, Any]]:
        """A row for each group: processes, threads, memory, CPUs, and what its threads do."""
        if not self._readings:
            return []
        last = self._readings[-1]
        before = next((one for one in self._readings if last.t_ns - one.t_ns <= 1.05 * _SECOND_NS), last)
        earlier = {group.name: group for group in before.groups}
        seconds = (last.t_ns - before.t_ns) / 1e9
        return [
            {
                "name": group.name,
                "tier": group.tier,
                "processes": group.processes,
                "threads": group.threads,
                "rss_bytes": group.rss_bytes,
                "cpus": round(max(cpu_s(group) - cpu_s(earlier[group.name]), 0.0) / seconds, 2)
                if group.name in earlier and seconds > 0
                else None,
                "pools": self._pools(group.name),
            }
            for group in last.groups
        ]

    def _pools(self, name: str) -> list[dict[str, Any]]:
        """Threads by name, and how many of them did what between the last two looks at them."""
        if len(self._sweeps) < 2:
            return []
        before, after = (_times(sweep, name) for sweep in self._sweeps)
        seconds = (self._sweeps[1].t_ns - self._sweeps[0].t_ns) / 1e9
        found = []
        for pool, times in sorted(after.items(), key=lambda item: -item[1].threads)[:MOST_POOLS]:
            doing = {state: _spent(times, state) - (_spent(before[pool], state) if pool in before else 0.0) for state in THREAD_STATES}
            shown = {state: round(spent_s / seconds, 2) for state, spent_s in doing.items() if spent_s / seconds > _LEAST_THREADS}
            found.append({"pool": pool, "threads": times.threads, "doing": shown})
        return found


def cpu_s(group: GroupSample) -> float:
    """The CPU time that a group has used so far."""
    return group.cpu_user_s + group.cpu_system_s


def cpu_by_tier(before: Sample, after: Sample) -> dict[str, float]:
    """The CPU time that each tier used between two readings. A group that is new counts from nothing, one that is gone no more."""
    earlier = {group.name: cpu_s(group) for group in before.groups}
    used: dict[str, float] = {}
    for group in after.groups:
        used[group.tier] = used.get(group.tier, 0.0) + max(cpu_s(group) - earlier.get(group.name, 0.0), 0.0)
    return used


def _times(sample: Sample, name: str) -> dict[str, PoolTimes]:
    return {times.pool: times for group in sample.groups if group.name == name for times in group.threads_by_state or ()}


def _spent(times: PoolTimes, state: str) -> float:
    spent: float = attrgetter(f"{state}_s")(times)
    return spent
