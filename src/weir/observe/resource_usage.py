"""Computes the resource usage between two moments from samples, as pure arithmetic on records."""

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import Any, TypeVar

import numpy as np

from weir.model.observer_records import THREAD_STATES, CpuSample, GroupSample, NetworkSample, PoolTimes, Sample
from weir.model.resources import NetworkUse, PoolUse, StackResources, TierResources

_T = TypeVar("_T")
_LEAST_THREADS = 0.0005
"""Results leave out thread states with a mean of at most this number of threads: a rounding error."""


def compute_stack_resources(
    samples: Sequence[Sample],
    *,
    start_ns: int,
    end_ns: int,
    stack_cpus: Sequence[int],
    services: Collection[str] = (),
    elsewhere: Sequence[Sample] = (),
) -> StackResources | None:
    """Returns the resource usage of all process groups between two moments (CLOCK_MONOTONIC), in total and by tier.
    Returns None if the samples do not cover this window.

    CPU time is cumulative. A reading comes about every 100 ms, and weir interpolates CPU time between two readings. For
    counters with only one reading per second, weir takes the difference between the readings around the window.

    `stack_cpus`: CPUs for the sum of steal time; empty: all CPUs. `services`: tiers that the totals exclude.
    `elsewhere`: readings of services on another machine, at other moments.
    """
    window, there = _Window(samples, start_ns, end_ns), _Window(elsewhere, start_ns, end_ns)
    if not window.is_covered:
        return None
    tiers = _compute_tiers(window) | (_compute_tiers(there) if there.is_covered else {})
    cost = window.around(lambda sample: sample.observer)
    return StackResources(
        **_compute_figures(window, lambda sample: [group for group in sample.groups if group.tier not in services]),
        network=_compute_network(window, lambda sample: sample.network),
        pools=[pool for name, tier in tiers.items() if name not in services for pool in tier.pools],
        steal_fraction=_compute_steal(window.inside[0], window.inside[-1], stack_cpus),
        tiers=tiers,
        pressure=_compute_pressure(window),
        observer_cpu_s=cost[1].cpu_s - cost[0].cpu_s if cost else None,
        limits=sorted({limit for sample in window.samples for limit in sample.limits}),
    )


class _Window:
    """The samples of a window of time. `inside`: only the samples from the window's start to its end."""

    def __init__(self, samples: Sequence[Sample], start_ns: int, end_ns: int) -> None:
        self.samples = sorted(samples, key=lambda sample: sample.t_ns)
        self.start_ns, self.end_ns = start_ns, end_ns
        self.inside = [sample for sample in self.samples if start_ns <= sample.t_ns <= end_ns and sample.groups]

    @property
    def is_covered(self) -> bool:
        """Whether the samples begin before the window and continue within the window."""
        return bool(self.inside) and len(self.samples) > 1 and self.samples[0].t_ns <= self.start_ns

    def used(self, figure: Callable[[Sample], float]) -> float:
        """Returns the growth of a counter in the window, from interpolated readings. Returns 0 if the counter falls,
        because a process group ended."""
        start, end = np.interp(
            (0, self.end_ns - self.start_ns),
            [sample.t_ns - self.start_ns for sample in self.samples],
            [figure(sample) for sample in self.samples],
        )
        return max(float(end - start), 0.0)

    def around(self, read: Callable[[Sample], _T | None]) -> tuple[_T, _T, float] | None:
        """Returns the last reading before the window, the first reading after it, and the seconds between both. If no
        reading is before the window, takes the first of all; if none is after it, the last. None without readings."""
        found = [(sample.t_ns, value) for sample in self.samples if (value := read(sample)) is not None]
        if not found:
            return None
        before = [reading for reading in found if reading[0] <= self.start_ns] or found[:1]
        after = [reading for reading in found if reading[0] >= self.end_ns] or found[-1:]
        return before[-1][1], after[0][1], (after[0][0] - before[-1][0]) / 1e9


def _compute_tiers(window: _Window) -> dict[str, TierResources]:
    names = sorted({group.tier for sample in window.inside for group in sample.groups})
    return {name: _compute_tier(window, name) for name in names}


def _compute_tier(window: _Window, tier: str) -> TierResources:
    def groups(sample: Sample) -> list[GroupSample]:
        return [group for group in sample.groups if group.tier == tier]

    def network(sample: Sample) -> NetworkSample | None:
        return next((group.network for group in groups(sample) if group.network is not None), None)

    pools = _compute_pools(window, tier, groups)
    return TierResources(**_compute_figures(window, groups), network=_compute_network(window, network), pools=pools)


def _compute_figures(window: _Window, groups: Callable[[Sample], Sequence[GroupSample]]) -> dict[str, Any]:
    """Returns the fields of `TierResources` that are sums over process groups."""

    def values(name: str, sample: Sample) -> list[float | None] | None:
        """Returns the field `name` of each process group. None if no group has a value."""
        found = [getattr(group, name) for group in groups(sample)]
        return found if any(value is not None for value in found) else None

    def total(name: str, sample: Sample) -> float:
        return sum(value or 0 for value in values(name, sample) or ())

    def used(name: str) -> float:
        return window.used(partial(total, name))

    def count(name: str) -> int | None:
        found = window.around(partial(values, name))
        if found is None or None in found[1]:
            return None
        earlier, later, _ = found
        return max(round(sum(value or 0 for value in later) - sum(value or 0 for value in earlier)), 0)

    def peak(name: str) -> int:
        return int(max(total(name, sample) for sample in window.inside))

    def memory(name: str) -> int | None:
        known = [sample for sample in window.samples if sample.t_ns >= window.start_ns and values(name, sample)]
        return int(total(name, known[-1])) if known else None

    def is_known(name: str) -> bool:
        return any(values(name, sample) for sample in window.inside)

    counts = (
        "minor_faults", "major_faults", "voluntary_switches", "involuntary_switches", "disk_read_bytes",
        "disk_written_bytes", "rchar_bytes", "wchar_bytes", "throttled_periods",
    )  # fmt: skip
    return {
        "cpu_user_s": used("cpu_user_s"),
        "cpu_system_s": used("cpu_system_s"),
        "peak_threads": peak("threads"),
        "peak_processes": peak("processes"),
        "peak_descriptors": peak("descriptors") if is_known("descriptors") else None,
        **{name: memory(name) for name in ("pss_bytes", "private_bytes", "swap_bytes")},
        **{name: count(name) for name in counts},
        "throttled_s": used("throttled_s") if is_known("throttled_s") else None,
    }


def _compute_pools(window: _Window, tier: str, groups: Callable[[Sample], Iterable[GroupSample]]) -> list[PoolUse]:
    """Returns the thread states of a tier by thread pool, summed over the tier's groups (replicas)."""

    def times(sample: Sample) -> dict[str, list[PoolTimes]] | None:
        known = [group.threads_by_state for group in groups(sample) if group.threads_by_state is not None]
        found: dict[str, list[PoolTimes]] = {}
        for pool in chain(*known):
            found.setdefault(pool.pool, []).append(pool)
        return found if known else None

    readings = window.around(times)
    if readings is None or not readings[2]:
        return []
    before, after, seconds = readings

    def mean(pool: str, state: str) -> float:
        spent: Callable[[PoolTimes], float] = attrgetter(f"{state}_s")
        return max(sum(map(spent, after[pool])) - sum(map(spent, before.get(pool, ()))), 0.0) / seconds

    found = []
    for pool, parts in after.items():
        in_state = {state: round(mean(pool, state), 4) for state in THREAD_STATES if mean(pool, state) > _LEAST_THREADS}
        if in_state:
            found.append(PoolUse(tier=tier, pool=pool, threads=sum(part.threads for part in parts), in_state=in_state))
    return found


def _compute_network(window: _Window, read: Callable[[Sample], NetworkSample | None]) -> NetworkUse | None:
    readings = window.around(read)
    if readings is None:
        return None
    before, after, _ = readings
    counts = ("tcp_retransmits", "listen_overflows", "listen_drops", "received_bytes", "sent_bytes", "loopback_bytes")
    inside = [found for sample in window.inside if (found := read(sample))]
    sockets = [reading.sockets.to_json() for reading in (before, *inside, after)]
    return NetworkUse(
        **{name: max(getattr(after, name) - getattr(before, name), 0) for name in counts},
        peak_sockets={state: max(reading[state] for reading in sockets) for state in sockets[0]},
    )


def _compute_pressure(window: _Window) -> dict[str, float]:
    readings = window.around(lambda sample: sample.pressure)
    if readings is None or not readings[2]:
        return {}
    before, after, seconds = readings
    kinds = [f"{resource}.{kind}" for resource in ("cpu", "memory", "io") for kind in ("some", "full")]
    stalls = {kind: attrgetter(f"{kind}_s") for kind in kinds}
    return {kind.replace(".", "_"): (stall(after) - stall(before)) / seconds for kind, stall in stalls.items()}


def _compute_steal(first: Sample, last: Sample, cpus: Sequence[int]) -> float | None:
    earlier = {cpu.cpu: cpu for cpu in first.cpus}
    pairs = [(earlier[cpu.cpu], cpu) for cpu in last.cpus if cpu.cpu in earlier and (not cpus or cpu.cpu in cpus)]
    total = sum(_total(b) - _total(a) for a, b in pairs)
    return sum(b.steal_s - a.steal_s for a, b in pairs) / total if total > 0 else None


def _total(cpu: CpuSample) -> float:
    return cpu.user_s + cpu.system_s + cpu.idle_s + cpu.iowait_s + cpu.irq_s + cpu.softirq_s + cpu.steal_s
