"""Tests a load of several agents in this process: their engines are real, but there is no cluster."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.cluster.conftest import assert_losses_noticed_in_time
from tests.support.local_ray import LocalMember, asked
from tests.support.observing import observer
from weir.cluster.agent import get_machine_id
from weir.cluster.agents import LOST_S, AgentHandle
from weir.cluster.clock import Clock
from weir.cluster.load import SharedLoad, assign_cpus
from weir.model.load import ClosedLoad, LoadPlan, Request
from weir.model.load_records import FEWER_AGENTS, LOST_AGENT, Interval

Serve = Callable[..., str]


def plan(address: str, duration_s: float, interval_s: float = 0.1) -> LoadPlan:
    request = Request("GET", f"http://{address}/")
    return LoadPlan(request=request, load=ClosedLoad(4), duration_s=duration_s, threads=1, interval_s=interval_s)


HERE, FAR, FARTHER = get_machine_id(), "far", "farther"


@pytest.mark.parametrize(
    ("places", "threads", "expected"),
    [
        ([(HERE, [0, 1, 2, 3])], [2], [(2, 3)]),
        # A node of this machine that must not use the CPUs.
        ([(HERE, [0, 1])], [1], [()]),
        ([(FAR, [0, 1, 2, 3])], [2], [(0, 1)]),
        ([(FAR, [4, 5]), (FARTHER, [4, 5])], [2, 1], [(4, 5), (4,)]),
        ([(FAR, [4, 5, 6]), (FAR, [4, 5, 6])], [1, 2], [(4,), (5, 6)]),
        # One node has too few CPUs, so all nodes wait in the same way.
        ([(FAR, [4, 5]), (FARTHER, [4, 5])], [2, 3], [(), ()]),
        ([(FAR, [4, 5]), (FAR, [4, 5])], [1, 2], [(), ()]),
    ],
)
def test_agents_of_a_bound_load_have_a_cpu_for_every_thread_or_none_of_them_has(
    places: list[tuple[str, list[int]]], threads: list[int], expected: list[tuple[int, ...]]
) -> None:
    agents: dict[AgentHandle, int] = {}
    for (where, cpus), own in zip(places, threads, strict=True):
        agents[agent := LocalMember("one")] = own
        agent.facts = {"machine": where, "cpus": cpus}
    assert list(assign_cpus((2, 3), agents).values()) == expected
    assert list(assign_cpus((), agents).values()) == [()] * len(places)


# The short load ends before the slow observer continues.
@pytest.mark.parametrize("duration_s", [LOST_S + 2.0, 0.5])
def test_agents_are_not_lost_because_whoever_listens_takes_his_time(duration_s: float, serve: Serve) -> None:
    one, other = LocalMember("one"), LocalMember("other")
    heard: list[Interval] = []

    def take_long(interval: Interval) -> None:
        heard.append(interval)
        if len(heard) == 1:
            # Like a disk or a terminal that does not respond.
            threading.Event().wait(LOST_S + 1.0)

    with (
        asked(one, other),
        SharedLoad([one, other], plan(serve("null"), duration_s), observer(on_interval=take_long)) as load,
    ):
        end = load.result()
    assert LOST_AGENT not in end.summary.verdict.kinds, end.summary.verdict
    assert (one.lost, other.lost) == (None, None)
    assert sum(interval.completed for interval in heard) == end.summary.requests.completed


class Told(LocalMember):
    """A distant agent that notes how long before the load it gets its start time."""

    ROUND_TRIP_NS = 500_000_000

    def __init__(self, name: str, all_told: threading.Barrier) -> None:
        super().__init__(name)
        self.all_told = all_told
        self.ahead_ns = 0

    def read_clock(self, times: int = 1) -> None:
        self.clock = Clock(0, self.ROUND_TRIP_NS // 2)

    def call(self, method: str, *arguments: Any, timeout_s: float = LOST_S) -> Any:
        line = json.loads(arguments[1]) if method == "write" else {}
        if set(line) == {"start_monotonic_ns"}:
            self.ahead_ns = line["start_monotonic_ns"] - time.monotonic_ns()
            # No agent responds before all have their start time.
            self.all_told.wait(timeout_s)
        return super().call(method, *arguments, timeout_s=timeout_s)


def test_all_agents_are_told_at_once_when_to_begin_and_the_way_to_them_is_reckoned_in(serve: Serve) -> None:
    all_told = threading.Barrier(3)
    told = [Told(name, all_told) for name in ("one", "other", "third")]
    with asked(*told), SharedLoad(told, plan(serve("null"), 0.3)) as load:
        end = load.result()
    assert LOST_AGENT not in end.summary.verdict.kinds, end.summary.verdict
    assert all(member.ahead_ns > member.ROUND_TRIP_NS // 2 for member in told)


def test_a_load_without_an_agent_that_was_lost_before_says_so_and_the_others_keep_their_threads(serve: Serve) -> None:
    gone, left = LocalMember("gone"), LocalMember("left")
    gone.lose("its node ended")
    with asked(left), SharedLoad([gone, left], plan(serve("null"), 0.3), threads=[1, 2]) as load:
        summary = load.result().summary
    assert [agent.generator.threads for agent in summary.agents or []] == [2]
    verdict = summary.verdict
    # If the machine stood still too, the verdict is invalid.
    assert verdict.validity != "valid"
    assert (
        verdict.reasons[verdict.kinds.index(FEWER_AGENTS)]
        == "agent gone is lost: its node ended: the other agents (1) generated this load"
    )


@pytest.mark.parametrize("interval_s", [0.1, 1.0])
def test_an_agent_whose_engine_stands_still_is_noticed_in_time_however_long_intervals_are(
    interval_s: float, serve: Serve
) -> None:
    one, other = LocalMember("one"), LocalMember("other")
    begun = threading.Event()
    listener = observer(on_interval=lambda _: begun.set())
    with asked(one, other), SharedLoad([one, other], plan(serve("null"), 60.0, interval_s), listener) as load:
        assert begun.wait(30)
        engine = one._engines[0]
        os.kill(engine.pid, signal.SIGSTOP)
        try:
            assert load.wait(30)
        finally:
            os.kill(engine.pid, signal.SIGKILL)
        reasons = load.result().summary.verdict.reasons
    (reason,) = [reason for reason in reasons if "agent one is lost" in reason]
    assert_losses_noticed_in_time(reason)
    assert other.lost is None


def test_a_process_that_stood_still_itself_finds_no_agent_lost_when_it_goes_on(serve: Serve) -> None:
    # Longer than the time after which a silent agent is lost.
    duration_s = 2 * LOST_S + 2.0
    script = f"""
from tests.cluster.test_shared_load import LocalMember, SharedLoad, asked, observer, plan
one, other = LocalMember("one"), LocalMember("other")
begun = lambda interval: print(interval.index, flush=True)
load = plan({serve("null")!r}, {duration_s})
with asked(one, other, way_s=0.2), SharedLoad([one, other], load, observer(on_interval=begun)) as load:
    load.wait()
print(one.lost, other.lost)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "0\n"
        process.send_signal(signal.SIGSTOP)
        try:
            time.sleep(LOST_S + 1.0)
        finally:
            process.send_signal(signal.SIGCONT)
        *_, lost = process.stdout.read().splitlines()
    assert lost == "None None"
