import os
from pathlib import Path
from typing import Any

import pytest

from weir.lab.placement import place, use_all_cpus
from weir.lab.study_run import plan_placement
from weir.model.errors import UsageError
from weir.model.run_types import Limits, Network
from weir.study.file import Cpus
from weir.study.file import Network as NetworkTable
from weir.study.study import parse_study


def test_with_two_cpus_the_stack_has_its_own_and_control_runs_beside_the_generator() -> None:
    placement = place(Cpus(), available=[0, 1])
    assert (placement.load, placement.stack, placement.services, placement.control) == ((0,), (1,), (), (0,))
    assert any("control shares the generator's CPU" in said for said in placement.shared)


def test_with_two_cpus_services_run_beside_the_stack_unless_the_study_says_otherwise() -> None:
    beside_stack = place(Cpus(), with_services=True, available=[0, 1])
    assert (beside_stack.load, beside_stack.stack, beside_stack.services, beside_stack.control) == (
        (0,),
        (1,),
        (1,),
        (0,),
    )
    assert "The stack and the services share a CPU: the figures of both are mixed." in beside_stack.shared
    beside_load = place(Cpus(services="load"), with_services=True, available=[0, 1])
    assert (beside_load.stack, beside_load.services) == ((1,), (0,))
    assert "The generator and the services share a CPU: the figures of both are mixed." in beside_load.shared


@pytest.mark.parametrize("count", range(3, 20))
def test_with_more_cpus_all_roles_are_disjoint_and_the_stack_has_at_least_as_many_as_the_generator(count: int) -> None:
    placement = place(Cpus(), available=range(count))
    assert len({*placement.load, *placement.stack, *placement.control}) == count
    assert len(placement.load) + len(placement.stack) + len(placement.control) == count
    assert len(placement.stack) >= len(placement.load) >= 1
    assert len(placement.control) == 1


@pytest.mark.parametrize("count", range(3, 20))
def test_services_get_cpus_of_their_own_from_three_on_and_control_from_four_on(count: int) -> None:
    placement = place(Cpus(), with_services=True, available=range(count))
    apart = [*placement.load, *placement.stack, *placement.services]
    assert len(set(apart)) == len(apart)
    assert len(placement.stack) >= len(placement.services) >= len(placement.load) >= 1
    assert (not set(placement.control) & set(apart)) == (count >= 4)


def test_with_one_cpu_everything_is_shared_and_said() -> None:
    placement = place(Cpus(), with_services=True, available=[0])
    assert placement.load == placement.stack == placement.services == (0,)
    assert sum("share a CPU" in said for said in placement.shared) == 3


def test_lists_are_taken_as_they_are_and_counts_filled_from_the_rest() -> None:
    placement = place(Cpus(load=[3], stack=2), available=[0, 1, 2, 3])
    assert (placement.load, placement.stack, placement.control) == ((3,), (1, 2), (0,))


def test_a_count_is_kept_whatever_the_roles_that_are_automatic_would_like() -> None:
    placement = place(Cpus(load=3), available=[0, 1, 2, 3])
    assert (len(placement.load), len(placement.stack), placement.control) == (3, 1, placement.load)


def test_a_count_of_control_is_kept() -> None:
    placement = place(Cpus(control=2), available=range(6))
    assert (len(placement.control), len(placement.stack), len(placement.load)) == (2, 2, 2)


def test_more_cpus_than_there_are_is_an_error_that_counts_them() -> None:
    with pytest.raises(UsageError, match="found stack 4, load 4, 8 CPUs in total, expected at most the 2 CPUs"):
        place(Cpus(load=4, stack=4), available=[0, 1])
    with pytest.raises(
        UsageError, match=r"found load 2, 2 CPUs in total in addition to listed CPUs \(1\), expected at most the 2"
    ):
        place(Cpus(load=2, stack=[0]), available=[0, 1])


def test_a_cpu_that_is_not_there_is_named() -> None:
    with pytest.raises(UsageError, match=r"cpus\.stack: found \[9\], expected CPUs that weir may use: \[0, 1\]"):
        place(Cpus(stack=[9]), available=[0, 1])


def test_a_place_for_services_that_no_stack_needs_is_an_error() -> None:
    with pytest.raises(UsageError, match="found 'stack', expected none: no stack of this study needs a service"):
        place(Cpus(services="stack"), available=[0, 1])


def test_a_study_of_several_widths_is_placed_for_the_widest() -> None:
    placement = place(Cpus(load=[0], control=[0]), stack_cpus=3, available=range(4))
    assert (placement.stack, placement.load) == ((1, 2, 3), (0,))


def test_quotas_and_sizes_become_limits_of_tiers() -> None:
    cpus = Cpus(quota={"app": 0.5, "postgres": 0.3}, quota_period_ms=10, memory={"app": "512 MB"})
    limits = place(cpus, available=[0, 1]).limits
    assert limits == {"app": Limits(0.5, 10, 512_000_000), "postgres": Limits(0.3, 10, None)}


def test_a_network_is_published_on_its_own_port_unless_the_study_says_otherwise() -> None:
    assert place(Cpus(), NetworkTable(), available=[0, 1]).network is None
    container = NetworkTable(isolation="netns", port=8000, publish=1234)
    assert place(Cpus(), container, available=[0, 1]).network == Network(8000, 1234)
    placement = place(Cpus(), NetworkTable(isolation="netns"), available=[0, 1])
    assert placement.network == Network(8000, 8000)
    assert not any("loopback" in said for said in placement.shared)


@pytest.mark.parametrize(
    ("stack", "workload", "served"), [("nest-typeorm", "user-by-id", True), ("sanic", "hello", False)]
)
def test_a_study_whose_stacks_need_services_has_a_place_for_them(
    stack: str, workload: str, served: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WEIR_POSTGRES_URL", raising=False)
    study: dict[str, Any] = {
        "schema": 1,
        "title": "Mine",
        "question": "Which?",
        "matrix": {"stacks": [stack], "workloads": [workload], "connections": [1]},
        "load": {"duration_s": 1},
        "method": {"blocks": 1, "baseline": stack},
    }
    placement = plan_placement(parse_study(Path("mine.toml"), "", study, None))
    assert bool(placement.services) == served
    monkeypatch.setenv("WEIR_POSTGRES_URL", "postgresql://user@127.0.0.1:5432/mine")
    assert plan_placement(parse_study(Path("mine.toml"), "", study, None)).services == ()


def test_where_nothing_is_measured_everything_has_all_cpus_and_the_limits_stay() -> None:
    placement = place(Cpus(quota={"app": 0.5}), with_services=True, available=[0, 1, 5])
    spread = use_all_cpus(placement)
    assert (spread.load, spread.stack, spread.services, spread.control) == ((0,), (0, 1, 5), (0, 1, 5), (0, 1, 5))
    assert spread.limits == placement.limits
    assert use_all_cpus().stack == tuple(sorted(os.sched_getaffinity(0)))
