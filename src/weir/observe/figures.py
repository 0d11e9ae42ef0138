"""Samples into figures: what the processes used between two moments. Pure arithmetic on records."""

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import Any

from weir.model.records import THREAD_STATES, CpuSample, GroupSample, NetworkSample, PoolTimes, Sample
from weir.model.resources import NetworkUse, PoolUse, StackResources, TierResources

_Figure = Callable[[Sample], float]
_LEAST_THREADS = 0.0005
"""A mean number of threads below this is rounding."""


def stack_resources(
    samples: Sequence[Sample],
    *,
    start_ns: int,
    end_ns: int,
    stack_cpus: Sequence[int],
    services: Collection[str] = (),
    elsewhere: Sequence[Sample] = (),
) -> StackResources | None:
    """What all groups in `samples` used between two moments, in all and by tier.

    CPU time is cumulative and read every 100 ms or so, so its value at a moment is interpolated between the readings around it. What is
    read once a second is the difference of the readings around the window.

    Args:
        samples: readings, in any order: those on the grid and those asked for come by different ways.
        start_ns: start of the window, CLOCK_MONOTONIC.
        end_ns: its end.
        stack_cpus: the CPUs whose steal matters; empty: all.
        services: tiers of services: beside the stack's own, and no part of the sums.
        elsewhere: readings of services on another machine, which have moments of their own.

    Returns:
        None where the samples do not reach around the window.
    """
    window = _Window(sorted(samples, key=lambda sample: sample.t_ns), start_ns, end_ns)
    if not window.inside or window.before is None or window.after is None:
        return None
    tiers = _tiers(window)
    there = _Window(sorted(elsewhere, key=lambda sample: sample.t_ns), start_ns, end_ns)
    if there.inside and there.before is not None and there.after is not None:
        tiers |= _tiers(there)
    whole = _figures(window, lambda sample: [group for group in sample.groups if group.tier not in services])
    earlier, later = window.around(lambda sample: sample.observer is not None)
    cost = later.observer.cpu_s - earlier.observer.cpu_s if earlier and later and earlier.observer and later.observer else None
    return StackResources(
        **whole,
        network=_network(window, lambda sample: sample.network),
        pools=[pool for name, tier in tiers.items() if name not in services for pool in tier.pools],
        steal_fraction=_steal(window.inside[0], window.inside[-1], stack_cpus),
        tiers=tiers,
        pressure=_pressure(window),
        observer_cpu_s=cost,
        limits=sorted({limit for sample in window.samples for limit in sample.limits}),
    )


class _Window:
    """Readings in the order of time, and those that matter to a window."""

    def __init__(self, samples: Sequence[Sample], start_ns: int, end_ns: int) -> None:
        self.samples = samples
        self.start_ns, self.end_ns = start_ns, end_ns
        self.inside = [sample for sample in samples if start_ns <= sample.t_ns <= end_ns and sample.groups]
        self.before = _around(samples, start_ns)
        self.after = _around(samples, end_ns)

    def used(self, figure: _Figure) -> float:
        """What a figure that counts up grew by, interpolated at both ends. A group that is gone takes nothing back."""
        assert self.before is not None
        assert self.after is not None
        return max(_at(self.after, self.end_ns, figure) - _at(self.before, self.start_ns, figure), 0.0)

    def around(self, has_it: Callable[[Sample], bool]) -> tuple[Sample | None, Sample | None]:
        """Of the readings that hold something, the last one before the window (or the first) and the first one after it (or the last)."""
        found = [sample for sample in self.samples if has_it(sample)]
        if not found:
            return None, None
        before = [sample for sample in found if sample.t_ns <= self.start_ns]
        after = [sample for sample in found if sample.t_ns >= self.end_ns]
        return (before[-1] if before else found[0]), (after[0] if after else found[-1])


def _tiers(window: _Window) -> dict[str, TierResources]:
    return {tier: _of_tier(window, tier) for tier in sorted({group.tier for sample in window.inside for group in sample.groups})}


def _of_tier(window: _Window, tier: str) -> TierResources:
    def groups(sample: Sample) -> list[GroupSample]:
        return [group for group in sample.groups if group.tier == tier]

    def network(sample: Sample) -> NetworkSample | None:
        return next((group.network for group in groups(sample) if group.network is not None), None)

    return TierResources(**_figures(window, groups), network=_network(window, network), pools=_pools(window, tier, groups))


def _figures(window: _Window, groups: Callable[[Sample], Sequence[GroupSample]]) -> dict[str, Any]:
    """The fields of `TierResources` that are sums over groups."""

    def total(name: str) -> _Figure:
        field = attrgetter(name)
        return lambda sample: sum(field(group) or 0 for group in groups(sample))

    def count(name: str) -> int | None:
        field = attrgetter(name)
        earlier, later = window.around(lambda sample: any(field(group) is not None for group in groups(sample)))
        if earlier is None or later is None or any(field(group) is None for group in groups(later)):
            return None
        return max(round(total(name)(later) - total(name)(earlier)), 0)

    def peak(name: str) -> int:
        return int(max(total(name)(sample) for sample in window.inside))

    def memory(name: str) -> int | None:
        field = attrgetter(name)
        with_memory = [
            sample for sample in window.samples if sample.t_ns >= window.start_ns and any(field(one) is not None for one in groups(sample))
        ]
        return int(total(name)(with_memory[-1])) if with_memory else None

    counts = ("minor_faults", "major_faults", "voluntary_switches", "involuntary_switches", "disk_read_bytes", "disk_written_bytes",
              "rchar_bytes", "wchar_bytes", "throttled_periods")  # fmt: skip
    is_throttled = any(group.throttled_s is not None for sample in window.inside for group in groups(sample))
    has_descriptors = any(group.descriptors is not None for sample in window.inside for group in groups(sample))
    return {
        "cpu_user_s": window.used(total("cpu_user_s")),
        "cpu_system_s": window.used(total("cpu_system_s")),
        "peak_threads": peak("threads"),
        "peak_processes": peak("processes"),
        "peak_descriptors": peak("descriptors") if has_descriptors else None,
        **{name: memory(name) for name in ("pss_bytes", "private_bytes", "swap_bytes")},
        **{name: count(name) for name in counts},
        "throttled_s": window.used(total("throttled_s")) if is_throttled else None,
    }


def _pools(window: _Window, tier: str, groups: Callable[[Sample], Iterable[GroupSample]]) -> list[PoolUse]:
    """What the tier's threads did; groups of one tier (replicas) are added up by pool."""

    def times(sample: Sample) -> dict[str, list[PoolTimes]]:
        found: dict[str, list[PoolTimes]] = {}
        for pool in (pool for group in groups(sample) for pool in group.threads_by_state or ()):
            found.setdefault(pool.pool, []).append(pool)
        return found

    earlier, later = window.around(lambda sample: any(group.threads_by_state is not None for group in groups(sample)))
    if earlier is None or later is None or earlier.t_ns == later.t_ns:
        return []
    seconds = (later.t_ns - earlier.t_ns) / 1e9
    before, after = times(earlier), times(later)

    def mean(pool: str, state: str) -> float:
        spent: Callable[[PoolTimes], float] = attrgetter(f"{state}_s")
        return max(sum(map(spent, after[pool])) - sum(map(spent, before.get(pool, ()))), 0.0) / seconds

    found = []
    for pool, parts in after.items():
        in_state = {state: round(mean(pool, state), 4) for state in THREAD_STATES if mean(pool, state) > _LEAST_THREADS}
        if in_state:
            found.append(PoolUse(tier=tier, pool=pool, threads=sum(part.threads for part in parts), in_state=in_state))
    return found


def _network(window: _Window, of: Callable[[Sample], NetworkSample | None]) -> NetworkUse | None:
    earlier, later = window.around(lambda sample: of(sample) is not None)
    before, after = (of(sample) if sample else None for sample in (earlier, later))
    if before is None or after is None:
        return None
    counts = ("tcp_retransmits", "listen_overflows", "listen_drops", "received_bytes", "sent_bytes", "loopback_bytes")
    sockets = [found.sockets.model_dump() for sample in (earlier, *window.inside, later) if sample and (found := of(sample))]
    return NetworkUse(
        **{name: max(getattr(after, name) - getattr(before, name), 0) for name in counts},
        peak_sockets={state: max(reading[state] for reading in sockets) for state in sockets[0]},
    )


def _pressure(window: _Window) -> dict[str, float]:
    earlier, later = window.around(lambda sample: sample.pressure is not None)
    if earlier is None or later is None or earlier.pressure is None or later.pressure is None or earlier.t_ns == later.t_ns:
        return {}
    seconds = (later.t_ns - earlier.t_ns) / 1e9
    return {
        f"{resource}_{kind}": (attrgetter(f"{resource}.{kind}_s")(later.pressure) - attrgetter(f"{resource}.{kind}_s")(earlier.pressure))
        / seconds
        for resource in ("cpu", "memory", "io")
        for kind in ("some", "full")
    }


def _around(samples: Sequence[Sample], moment_ns: int) -> tuple[Sample, Sample] | None:
    """The readings at or before and at or after a moment; the last two readings where the moment is after the last."""
    for earlier, later in pairwise(samples):
        if earlier.t_ns <= moment_ns <= later.t_ns:
            return earlier, later
    if len(samples) >= 2 and samples[-1].t_ns < moment_ns:
        return samples[-1], samples[-1]
    return None


def _at(pair: tuple[Sample, Sample], moment_ns: int, figure: _Figure) -> float:
    """`figure` at a moment, on the line between two readings."""
    earlier, later = pair
    span_ns = later.t_ns - earlier.t_ns
    share = (moment_ns - earlier.t_ns) / span_ns if span_ns else 0.0
    return figure(earlier) + share * (figure(later) - figure(earlier))


def _steal(first: Sample, last: Sample, cpus: Sequence[int]) -> float | None:
    earlier = {cpu.cpu: cpu for cpu in first.cpus}
    pairs = [(earlier[cpu.cpu], cpu) for cpu in last.cpus if cpu.cpu in earlier and (not cpus or cpu.cpu in cpus)]
    total = sum(_total(b) - _total(a) for a, b in pairs)
    return sum(b.steal_s - a.steal_s for a, b in pairs) / total if total > 0 else None


def _total(cpu: CpuSample) -> float:
    return cpu.user_s + cpu.system_s + cpu.idle_s + cpu.iowait_s + cpu.irq_s + cpu.softirq_s + cpu.steal_s
