"""Tests the upper bound of a cell: the lower of threads ÷ wait and users ÷ wait."""

import pytest

from weir.load_spec import KEY_NAMES, LoadSpec
from weir.model.load import ClosedLoad, OpenLoad, Think
from weir.model.run_types import Cell, UpperBound
from weir.stacks.manifest import Limit, Needed
from weir.study.cell_bounds import find_upper_bounds
from weir.study.study import read_study

DELAYED = {"delay": Needed(settings={"delay": "500ms"})}
LIMITS = {
    "threads": Limit(default=50, arg="--threads={value}", requests_each=1),
    "accept-queue": Limit(default=100, arg="--queue={value}"),
}
LOAD = LoadSpec(duration_s=10)


def cell(load: ClosedLoad | OpenLoad, *, threads: int = 50, replicas: int = 1) -> Cell:
    return Cell(
        1, "pool", None, "ping", load, settings={"threads": str(threads), "accept-queue": "100"}, replicas=replicas
    )


def test_threads_and_users_that_wait_are_upper_bounds_the_lower_first() -> None:
    assert find_upper_bounds(cell(ClosedLoad(200)), LOAD, LIMITS, DELAYED) == (
        UpperBound("stack", 100, "50 threads ÷ 0.5 s", at_once=50, wait_s=0.5),
        UpperBound("load", 400, "200 users ÷ 0.5 s"),
    )
    lowest, _ = find_upper_bounds(cell(ClosedLoad(20)), LOAD, LIMITS, DELAYED)
    assert (lowest.of, lowest.throughput_rps) == ("load", 40)


def test_users_who_think_ask_less_often_and_those_who_come_one_by_one_are_there_for_less_long() -> None:
    _, users = find_upper_bounds(cell(ClosedLoad(100, Think(1.0, 2.0)), threads=10), LOAD, LIMITS, DELAYED)
    assert users == UpperBound("load", 50, "100 users ÷ 2 s a request")
    ramp = LoadSpec(users=2000.0, duration_s=600, ramp_s=50, loops=5)
    _, users = find_upper_bounds(
        cell(ramp.to_load(KEY_NAMES), threads=10), ramp, LIMITS, {"delay": Needed(settings={"delay": "2s"})}
    )
    assert users.throughput_rps == pytest.approx(2000 * 5 / 60)
    assert users.because == "2000 users × 5 requests ÷ (50 s + 5 × 2 s)"


def test_processes_and_workers_with_several_requests_each_add_up() -> None:
    limits = {"threads": Limit(default=1, arg="--workers={value}", requests_each=8)}
    (found,) = find_upper_bounds(cell(OpenLoad(1000.0, 64), threads=2, replicas=3), LOAD, limits, DELAYED)
    assert (found.throughput_rps, found.because) == (96, "2 threads × 8 requests × 3 processes ÷ 0.5 s")


def test_an_upstream_that_works_on_so_many_at_once_is_a_upper_bound_too() -> None:
    queueing = {"delay": Needed(settings={"delay": "exp:200ms", "servers": "4"})}
    lowest, *_ = find_upper_bounds(cell(ClosedLoad(200)), LOAD, LIMITS, queueing)
    assert lowest == UpperBound("upstream", 20, "4 servers of the upstream ÷ 0.2 s")


def test_nothing_is_said_of_a_cell_that_waits_for_no_upstream() -> None:
    assert find_upper_bounds(cell(ClosedLoad(200)), LOAD, LIMITS, {}) == ()


def test_the_studies_of_waiting_keep_both_upper_bounds_apart() -> None:
    for study in ("mvc-vs-webflux", "threadpool-exhaustion"):
        planned = read_study(study, scale="quick").cells(1)
        of_stack = {
            one.stack.label: {bound.of: bound.throughput_rps for bound in one.cell.upper_bounds} for one in planned
        }
        assert of_stack["spring-mvc"]["stack"] < of_stack["spring-mvc"]["load"] == of_stack["spring-webflux"]["load"]
        assert "stack" not in of_stack["spring-webflux"]
