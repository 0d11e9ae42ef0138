"""Samples into figures: what the processes used between two moments. Pure arithmetic on records."""

from collections.abc import Callable, Sequence
from itertools import pairwise

from weir.model.records import CpuSample, Sample
from weir.model.run import StackResources


def stack_resources(samples: Sequence[Sample], *, start_ns: int, end_ns: int, stack_cpus: Sequence[int]) -> StackResources | None:
    """What all groups in `samples` used between two moments.

    CPU time is cumulative and read every 100 ms or so, so its value at a moment is interpolated between the readings around it.

    Args:
        samples: readings, in any order: those on the grid and those asked for come by different ways.
        start_ns: start of the window, CLOCK_MONOTONIC.
        end_ns: its end.
        stack_cpus: the CPUs whose steal matters; empty: all.

    Returns:
        None where the samples do not reach around the window.
    """
    samples = sorted(samples, key=lambda sample: sample.t_ns)
    inside = [sample for sample in samples if start_ns <= sample.t_ns <= end_ns and sample.groups]
    if not inside:
        return None
    before, after = _around(samples, start_ns), _around(samples, end_ns)
    if before is None or after is None:
        return None
    user = _at(after, end_ns, _user) - _at(before, start_ns, _user)
    system = _at(after, end_ns, _system) - _at(before, start_ns, _system)
    with_memory = [sample for sample in samples if sample.t_ns >= start_ns and any(group.pss_bytes is not None for group in sample.groups)]
    memory = with_memory[-1].groups if with_memory else []
    return StackResources(
        cpu_user_s=max(user, 0.0),
        cpu_system_s=max(system, 0.0),
        peak_threads=max(sum(group.threads for group in sample.groups) for sample in inside),
        peak_processes=max(sum(group.processes for group in sample.groups) for sample in inside),
        pss_bytes=sum(group.pss_bytes or 0 for group in memory) if memory else None,
        private_bytes=sum(group.private_bytes or 0 for group in memory) if memory else None,
        steal_fraction=_steal(inside[0], inside[-1], stack_cpus),
    )


def _user(sample: Sample) -> float:
    return sum(group.cpu_user_s for group in sample.groups)


def _system(sample: Sample) -> float:
    return sum(group.cpu_system_s for group in sample.groups)


def _around(samples: Sequence[Sample], moment_ns: int) -> tuple[Sample, Sample] | None:
    """The readings at or before and at or after a moment; the last two readings where the moment is after the last."""
    for earlier, later in pairwise(samples):
        if earlier.t_ns <= moment_ns <= later.t_ns:
            return earlier, later
    if len(samples) >= 2 and samples[-1].t_ns < moment_ns:
        return samples[-1], samples[-1]
    return None


def _at(pair: tuple[Sample, Sample], moment_ns: int, figure: Callable[[Sample], float]) -> float:
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
