"""Tests a stack's bottleneck in runs whose truth is known."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.synthetic_run import NETTY, SANIC, SyntheticStudy, put_elsewhere, write_run
from weir.findings import of_run
from weir.findings.types import Bottleneck
from weir.model.load import ClosedLoad
from weir.model.resources import NetworkUse, PoolUse, TierResources
from weir.model.run_types import TrialResult, UpperBound
from weir.store import RunReader

STUDY = SyntheticStudy(stacks=(SANIC,), baseline="sanic", aa=None, blocks=2, duration_s=1.0)
SLOW = replace(SANIC, throughput_rps=190, cpu_us_per_request=500)
BLOCKED = replace(
    SANIC, throughput_rps=9.7, cpu_us_per_request=2_000, model="event loop per process, blocking I/O on it"
)


def only(path: Path, study: SyntheticStudy) -> Bottleneck:
    with RunReader(write_run(path / "run.weir", study)) as reader:
        (found,) = of_run(reader).bottlenecks
    return found


def changed(**resources: object) -> Callable[[str, int, TrialResult], TrialResult]:
    def change(_: str, __: int, result: TrialResult) -> TrialResult:
        assert result.resources is not None
        return replace(result, resources=replace(result.resources, **resources))  # type: ignore[arg-type]

    return change


def pool(name: str, threads: int, **in_state: float) -> PoolUse:
    return PoolUse(tier="app", pool=name, threads=threads, in_state=in_state)


def tier(cpu_s: float) -> TierResources:
    return TierResources(
        cpu_user_s=cpu_s, cpu_system_s=0.0, peak_threads=1, peak_processes=1, pss_bytes=None, private_bytes=None
    )  # fmt: skip


def test_a_full_cpu_is_the_bottleneck_and_its_width_is_one_over_the_demand(tmp_path: Path) -> None:
    found = only(tmp_path, STUDY)
    assert found.kind == "resource"
    assert found.what == "CPU 1 (app)"
    # A request takes 92 us of CPU.
    assert found.most_rps == pytest.approx(1e6 / 92, rel=0.05)
    assert "is full" in found.sentence
    assert "2 CPUs instead of 1 CPU: expect" in found.would_prove


def test_tiers_on_one_cpu_share_it_and_have_widths_of_their_own(tmp_path: Path) -> None:
    # 9,900 req/s for 1 s use 0.6 and 0.3 CPU seconds, so the capacities are as 1 : 2.
    found = only(tmp_path, replace(STUDY, change=changed(tiers={"node": tier(0.6), "proxy": tier(0.3)})))
    assert found.kind == "resource"
    assert {one.tier: round(one.relative_width, 1) for one in found.tiers} == {"node": 1.0, "proxy": 2.0}
    assert "The throughputs that node : proxy allow have the ratio 1.0 : 2.0" in found.sentence
    (cpu,) = [use for use in found.resources if use.tiers]
    assert cpu.tiers == ("node", "proxy")
    assert cpu.utilisation == pytest.approx(0.9, rel=0.02)


def elsewhere(path: Path, postgres_s: float, cpus: int | None = 2) -> Bottleneck:
    """Returns a run with a database on a node and a proxy beside the stack."""

    def change(_: str, __: int, result: TrialResult) -> TrialResult:
        assert result.resources is not None
        tiers = {"app": tier(0.4), "nginx": tier(0.1), "postgres": tier(postgres_s)}
        logs = {name: f"{name}.log" for name in tiers}
        return replace(result, resources=replace(result.resources, tiers=tiers), logs=logs)

    run_file = write_run(path / "run.weir", replace(STUDY, change=change))
    put_elsewhere(run_file, ["postgres"], "10.0.0.3", cpus)
    with RunReader(run_file) as reader:
        (found,) = of_run(reader).bottlenecks
    return found


def test_a_service_on_a_node_works_with_the_cpus_of_that_and_a_proxy_with_those_beside_the_stack(
    tmp_path: Path,
) -> None:
    found = elsewhere(tmp_path, 0.9)
    assert {use.name: (use.tiers, round(use.utilisation, 2)) for use in found.resources if use.tiers} == {
        "CPU 1 (app and nginx)": (("app", "nginx"), 0.5),
        "2 CPUs of 10.0.0.3 (postgres)": (("postgres",), 0.45),
    }
    # At 9,900 req/s a request takes 91 us of the node's 2 CPUs.
    assert {one.tier: one.width_rps for one in found.tiers}["postgres"] == pytest.approx(22_000, rel=0.05)
    assert found.kind == "unknown"


def test_a_node_for_services_that_is_full_is_the_bottleneck(tmp_path: Path) -> None:
    found = elsewhere(tmp_path, 1.9)
    assert (found.kind, found.what) == ("resource", "2 CPUs of 10.0.0.3 (postgres)")
    assert "2 CPUs of 10.0.0.3 (postgres) are full (95%)" in found.sentence
    assert "Add capacity to 2 CPUs of 10.0.0.3 (postgres): up to about" in found.would_prove


def test_a_node_of_which_nobody_knows_the_cpus_is_never_said_to_be_full(tmp_path: Path) -> None:
    found = elsewhere(tmp_path, 1.9, cpus=None)
    assert [use.name for use in found.resources if use.tiers] == ["CPU 1 (app and nginx)"]


def test_a_load_that_asks_for_no_more_is_named_as_the_limit(tmp_path: Path) -> None:
    bound = UpperBound("load", 200.0, "20 users ÷ 0.1 s")
    found = only(tmp_path, replace(STUDY, stacks=(SLOW,), upper_bounds={"sanic": (bound,)}))
    assert (found.kind, found.what, found.most_rps) == ("load", "20 users ÷ 0.1 s", 200.0)
    assert "the load is the limit" in found.sentence


def test_threads_that_all_wait_are_a_limit_of_the_software(tmp_path: Path) -> None:
    bound = UpperBound("stack", 200.0, "20 threads ÷ 0.1 s")
    found = only(
        tmp_path,
        replace(
            STUDY, stacks=(replace(SLOW, model="thread per request, blocking I/O"),), upper_bounds={"sanic": (bound,)}
        ),
    )
    assert (found.kind, found.what) == ("software limit", "20 threads ÷ 0.1 s")


@pytest.mark.parametrize(
    ("full_in", "expected"),
    [
        ((1, 2), "a full listen queue (68 connections in 2 of 2 trials)"),
        ((2,), "a full listen queue (34 connections in 1 of 2 trials)"),
        ((), "no resource that weir observed is full"),
    ],
)
def test_a_full_listen_queue_is_a_limit_of_the_software(
    tmp_path: Path, full_in: tuple[int, ...], expected: str
) -> None:
    def change(_: str, block: int, result: TrialResult) -> TrialResult:
        overflows = 34 if block in full_in else 0
        network = NetworkUse(
            tcp_retransmits=0, listen_overflows=overflows, listen_drops=overflows, received_bytes=0, sent_bytes=0, loopback_bytes=0,
            peak_sockets={},
        )  # fmt: skip
        assert result.resources is not None
        return replace(result, resources=replace(result.resources, network=network))

    found = only(tmp_path, replace(STUDY, stacks=(SLOW,), change=change))
    assert (found.kind, found.what) == ("software limit" if full_in else "unknown", expected)


def test_an_event_loop_that_waits_in_calls_is_named_as_blocked(tmp_path: Path) -> None:
    change = changed(
        pools=[], tiers={"app": replace(tier(0.02), pools=[pool("sanic", 1, sleep=0.95, on_cpu=0.02, event_wait=0.03)])}
    )
    bound = UpperBound("stack", 10.0, "1 worker ÷ 0.1 s")
    found = only(tmp_path, replace(STUDY, stacks=(BLOCKED,), change=change, upper_bounds={"sanic": (bound,)}))
    assert found.kind == "blocked event loop"
    assert "in 1 thread named sanic, blocking calls take 95% of the time, most of it asleep" in found.what
    assert found.most_rps == 10.0
    assert "calls that do not block" in found.would_prove


@pytest.mark.parametrize(
    ("why", "pools"),
    [
        ("it waits for events", [pool("sanic", 1, event_wait=0.9, on_cpu=0.02, sleep=0.08)]),
        ("its pool is there to wait", [pool("elastic-", 100, socket_io=95.0, on_cpu=0.2), pool("loop", 1, event_wait=0.9, on_cpu=0.01)]),
        ("what waits is the JVM's", [pool("C2 CompilerThre", 1, lock=0.8, on_cpu=0.2), pool("reactor-", 4, event_wait=3.9, on_cpu=0.1)]),
        ("nobody looked", []),
    ],
)  # fmt: skip
def test_an_event_loop_is_not_called_blocked_where(tmp_path: Path, why: str, pools: list[PoolUse]) -> None:
    change = changed(tiers={"app": replace(tier(0.02), pools=pools)})
    assert only(tmp_path, replace(STUDY, stacks=(BLOCKED,), change=change)).kind == "unknown", why


def test_threads_per_request_are_no_event_loop(tmp_path: Path) -> None:
    stack = replace(BLOCKED, model="thread per request, blocking I/O")
    change = changed(tiers={"app": replace(tier(0.02), pools=[pool("http-nio-exec", 1, socket_io=0.98, on_cpu=0.02)])})
    found = only(tmp_path, replace(STUDY, stacks=(stack,), change=change))
    # One worker has twenty requests under way.
    assert (found.kind, found.what.split(",")[0]) == ("software limit", "workers 1")


def test_a_busy_generator_is_named_before_the_stack(tmp_path: Path) -> None:
    def change(_: str, __: int, result: TrialResult) -> TrialResult:
        assert result.summary is not None
        generator = replace(result.summary.generator, busy_fraction=0.97)
        return replace(result, summary=replace(result.summary, generator=generator))

    found = only(tmp_path, replace(STUDY, stacks=(replace(SANIC, cpu_us_per_request=30),), change=change))
    assert found.kind == "generator"
    assert "the generator is the limit" in found.sentence


def test_demands_come_from_every_load_of_a_stack(tmp_path: Path) -> None:
    stack = replace(NETTY, warm_up=0.0, variation=0.01, growth=lambda n: n / 64)
    loads = [ClosedLoad(4), ClosedLoad(16), ClosedLoad(64)]
    found = only(tmp_path, replace(STUDY, stacks=(stack,), baseline="spring-webflux", loads=loads))
    (node,) = found.tiers
    assert node.demand.per_request_s.value == pytest.approx(84e-6, rel=0.05)
    assert found.at == "64 connections"


def test_a_burst_that_fills_all_threads_is_held_back_by_them_though_the_upper_bound_is_far(tmp_path: Path) -> None:
    # In a burst most of the time belongs to the last wave, so throughput is far below threads ÷ wait. Twenty requests
    # under way fill the threads.
    bound = UpperBound("stack", 400.0, "20 threads ÷ 0.05 s", 20, 0.05)
    stack = replace(SLOW, model="thread per request, blocking I/O")
    found = only(tmp_path, replace(STUDY, stacks=(stack,), upper_bounds={"sanic": (bound,)}))
    assert found.kind == "software limit"
    assert found.what.startswith("20 threads ÷ 0.05 s, with ")
