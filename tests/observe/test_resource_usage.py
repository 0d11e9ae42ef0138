from dataclasses import replace

import pytest

from weir.model.observer_records import (
    CpuSample,
    GroupSample,
    NetworkSample,
    ObserverCost,
    PoolTimes,
    Pressure,
    Pressures,
    Sample,
    SocketCounts,
)
from weir.observe.resource_usage import compute_stack_resources

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
            CpuSample(
                cpu=cpu,
                user_s=t_s,
                system_s=0,
                idle_s=0,
                iowait_s=0,
                irq_s=0,
                softirq_s=0,
                steal_s=steal_s if cpu == 1 else 0,
            )
            for cpu in (0, 1)
        ],
    )


def test_cpu_time_is_that_of_the_window_even_when_the_readings_lie_beside_its_ends() -> None:
    samples = [sample(t / 10, user_s=0.8 * t / 10) for t in range(61)]
    found = compute_stack_resources(samples, start_ns=int(1.05 * SECOND), end_ns=int(5.05 * SECOND), stack_cpus=[1])
    assert found is not None
    assert found.cpu_user_s == pytest.approx(0.8 * 4)
    assert found.cpu_system_s == pytest.approx(0.4 * 4)
    assert found.cpu_s == pytest.approx(1.2 * 4)


def test_threads_are_the_most_seen_and_memory_the_last_sweep_under_load() -> None:
    samples = [
        sample(0, user_s=0, pss=1),
        sample(1, user_s=1, threads=9),
        sample(2, user_s=2, pss=7),
        sample(3, user_s=3),
    ]
    found = compute_stack_resources(samples, start_ns=SECOND // 2, end_ns=int(2.5 * SECOND), stack_cpus=[])
    assert found is not None
    assert (found.peak_threads, found.pss_bytes, found.private_bytes) == (9, 7, 7)


def test_steal_counts_on_the_cpus_of_the_stack_alone() -> None:
    samples = [
        sample(0, user_s=0),
        sample(1, user_s=1),
        sample(2, user_s=2),
        sample(3, user_s=3, steal_s=2),
        sample(4, user_s=3),
    ]
    on_stack = compute_stack_resources(samples, start_ns=SECOND, end_ns=3 * SECOND, stack_cpus=[1])
    elsewhere = compute_stack_resources(samples, start_ns=SECOND, end_ns=3 * SECOND, stack_cpus=[0])
    assert on_stack is not None
    assert elsewhere is not None
    assert on_stack.steal_fraction == pytest.approx(0.5)
    assert elsewhere.steal_fraction == 0


def test_a_service_on_another_machine_is_a_tier_with_moments_of_its_own_and_no_part_of_the_sums() -> None:
    here = [sample(t / 10, user_s=0.8 * t / 10) for t in range(61)]
    there = [
        replace(one, cpus=[], groups=[replace(one.groups[0], tier="delay")])
        for one in (sample(t / 10 + 0.03, user_s=0.2 * (t / 10 + 0.03)) for t in range(61))
    ]
    alone = compute_stack_resources(here, start_ns=SECOND, end_ns=5 * SECOND, stack_cpus=[1])
    found = compute_stack_resources(
        here, start_ns=SECOND, end_ns=5 * SECOND, stack_cpus=[1], services=["delay"], elsewhere=there
    )
    assert alone is not None
    assert found is not None
    assert found.cpu_s == alone.cpu_s
    assert found.tiers["app"] == alone.tiers["app"]
    assert found.tiers["delay"].cpu_user_s == pytest.approx(0.2 * 4)


def test_samples_that_do_not_reach_around_the_window_give_nothing() -> None:
    assert compute_stack_resources([], start_ns=0, end_ns=SECOND, stack_cpus=[]) is None
    assert (
        compute_stack_resources(
            [sample(2, user_s=1), sample(3, user_s=2)], start_ns=SECOND, end_ns=3 * SECOND, stack_cpus=[]
        )
        is None
    )


def full(t_s: float, *, tier: str = "app", spent_s: float = 0.0, counted: int = 0, slow: bool = True) -> Sample:
    """Returns a sample of one group; with `slow` also the values that are read once a second."""
    pool = PoolTimes(
        pool="http", threads=3, on_cpu_s=spent_s, runnable_s=0, socket_io_s=2 * spent_s, event_wait_s=0, lock_s=0, accept_s=0, disk_s=0,
        sleep_s=0, other_s=0,
    )  # fmt: skip
    network = NetworkSample(
        tcp_retransmits=counted, listen_overflows=counted, listen_drops=2 * counted, received_bytes=0, sent_bytes=0,
        loopback_bytes=counted, sockets=SocketCounts(established=counted, time_wait=1, orphaned=0, in_use=2),
    )  # fmt: skip
    none = Pressure(some_s=0, full_s=0)
    base = sample(t_s, user_s=spent_s)
    group = replace(
        base.groups[0], tier=tier, major_faults=counted, disk_read_bytes=counted, descriptors=10 + counted,
        throttled_s=counted / 10, threads_by_state=[pool] if slow else None,
    )  # fmt: skip
    return replace(
        base,
        groups=[group],
        network=network if slow else None,
        pressure=Pressures(cpu=Pressure(some_s=t_s / 2, full_s=0), memory=none, io=none) if slow else None,
        observer=ObserverCost(cpu_s=t_s / 100, sweeps=int(t_s * 10), thread_sweeps=int(t_s * 10)),
    )


def test_what_is_read_once_a_second_is_the_difference_of_the_readings_around_the_window() -> None:
    samples = [full(t / 10, spent_s=t / 10, counted=t, slow=t % 10 == 0) for t in range(61)]
    found = compute_stack_resources(samples, start_ns=int(1.5 * SECOND), end_ns=int(4.5 * SECOND), stack_cpus=[])
    assert found is not None
    # These values were read at 1 s and at 5 s.
    assert found.network is not None
    assert (found.network.tcp_retransmits, found.network.listen_overflows, found.network.listen_drops) == (40, 40, 80)
    assert found.network.peak_sockets == {"established": 50, "time_wait": 1, "orphaned": 0, "in_use": 2}
    assert found.networks == [found.network]
    assert found.pressure["cpu_some"] == pytest.approx(0.5)
    (pool,) = found.pools
    assert (pool.tier, pool.pool, pool.threads) == ("app", "http", 3)
    assert pool.in_state == {"on_cpu": 1.0, "socket_io": 2.0}
    # Every sample has these values.
    assert (found.major_faults, found.disk_read_bytes, found.peak_descriptors) == (30, 30, 55)
    assert found.throttled_s == pytest.approx(3.0)
    assert found.observer_cpu_s == pytest.approx(0.03)
    assert found.wchar_bytes is None


def test_tiers_are_told_apart_and_add_up() -> None:
    samples = []
    for t in range(41):
        app, database = (
            full(t / 10, spent_s=t / 10, counted=t),
            full(t / 10, tier="database", spent_s=t / 5, counted=2 * t),
        )
        samples.append(replace(app, groups=[*app.groups, *database.groups]))
    found = compute_stack_resources(samples, start_ns=SECOND, end_ns=3 * SECOND, stack_cpus=[])
    assert found is not None
    assert set(found.tiers) == {"app", "database"}
    assert found.tiers["app"].cpu_user_s == pytest.approx(2.0)
    assert found.tiers["database"].cpu_user_s == pytest.approx(4.0)
    assert found.cpu_user_s == pytest.approx(6.0)
    assert found.tiers["database"].major_faults == 40
    assert found.major_faults == 60
    assert [pool.tier for pool in found.pools] == ["app", "database"]
    assert found.tiers["app"].network is None


def test_a_figure_that_one_process_does_not_give_is_none_in_all_and_there_in_the_other_tier() -> None:
    samples = []
    for t in range(41):
        app, other = full(t / 10, counted=t), full(t / 10, tier="other")
        hidden = replace(other.groups[0], disk_read_bytes=None)
        limits = ["Another user's."]
        samples.append(replace(app, groups=[*app.groups, hidden], limits=limits))
    found = compute_stack_resources(samples, start_ns=SECOND, end_ns=3 * SECOND, stack_cpus=[])
    assert found is not None
    assert found.tiers["app"].disk_read_bytes == 20
    assert found.tiers["other"].disk_read_bytes is None
    assert found.disk_read_bytes is None
    assert found.limits == ["Another user's."]
