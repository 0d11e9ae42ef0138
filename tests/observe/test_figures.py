import pytest

from weir.model.records import CpuSample, GroupSample, Sample
from weir.observe.figures import stack_resources

SECOND = 1_000_000_000


def sample(t_s: float, *, user_s: float, threads: int = 2, pss: int | None = None, steal_s: float = 0.0) -> Sample:
    return Sample(
        t_ns=int(t_s * SECOND),
        groups=[
            GroupSample(
                name="app",
                tier="app",
                processes=1,
                threads=threads,
                cpu_user_s=user_s,
                cpu_system_s=user_s / 2,
                rss_bytes=1,
                pss_bytes=pss,
                private_bytes=pss,
            )
        ],
        cpus=[
            CpuSample(cpu=cpu, user_s=t_s, system_s=0, idle_s=0, iowait_s=0, irq_s=0, softirq_s=0, steal_s=steal_s if cpu == 1 else 0)
            for cpu in (0, 1)
        ],
    )


def test_cpu_time_is_that_of_the_window_even_when_the_readings_lie_beside_its_ends() -> None:
    samples = [sample(t / 10, user_s=0.8 * t / 10) for t in range(61)]
    found = stack_resources(samples, start_ns=int(1.05 * SECOND), end_ns=int(5.05 * SECOND), stack_cpus=[1])
    assert found is not None
    assert found.cpu_user_s == pytest.approx(0.8 * 4)
    assert found.cpu_system_s == pytest.approx(0.4 * 4)
    assert found.cpu_s == pytest.approx(1.2 * 4)


def test_threads_are_the_most_seen_and_memory_the_last_sweep_under_load() -> None:
    samples = [sample(0, user_s=0, pss=1), sample(1, user_s=1, threads=9), sample(2, user_s=2, pss=7), sample(3, user_s=3)]
    found = stack_resources(samples, start_ns=SECOND // 2, end_ns=int(2.5 * SECOND), stack_cpus=[])
    assert found is not None
    assert (found.peak_threads, found.pss_bytes, found.private_bytes) == (9, 7, 7)


def test_steal_counts_on_the_cpus_of_the_stack_alone() -> None:
    samples = [sample(0, user_s=0), sample(1, user_s=1), sample(2, user_s=2), sample(3, user_s=3, steal_s=2), sample(4, user_s=3)]
    on_stack = stack_resources(samples, start_ns=SECOND, end_ns=3 * SECOND, stack_cpus=[1])
    elsewhere = stack_resources(samples, start_ns=SECOND, end_ns=3 * SECOND, stack_cpus=[0])
    assert on_stack is not None
    assert elsewhere is not None
    assert on_stack.steal_fraction == pytest.approx(0.5)
    assert elsewhere.steal_fraction == 0


def test_samples_that_do_not_reach_around_the_window_give_nothing() -> None:
    assert stack_resources([], start_ns=0, end_ns=SECOND, stack_cpus=[]) is None
    assert stack_resources([sample(2, user_s=1), sample(3, user_s=2)], start_ns=SECOND, end_ns=3 * SECOND, stack_cpus=[]) is None
