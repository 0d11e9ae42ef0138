"""A load of several agents, which here are of this process: their engines are real, and no cluster is between."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, cast

from weir.cluster.agent import Agent
from weir.cluster.clock import Clock
from weir.cluster.load import SharedLoad
from weir.cluster.members import LOST_S, Member
from weir.cluster.ray_cluster import Node, RayCluster
from weir.generators.engine import LoadListener
from weir.model.load import ClosedLoad, LoadPlan, Request
from weir.model.records import FEWER_AGENTS, Interval
from weir.places import engine_binary

Serve = Callable[..., str]

# An agent whose lease ends takes the process that it lives in with it.
LEASE_S = 3600.0


class Here(Member):
    """An agent that is asked without a way between."""

    def __init__(self, name: str) -> None:
        super().__init__(RayCluster(ModuleType("ray")), None, cast(Node, None), name)
        self.agent = Agent(LEASE_S)
        self.engine_path = str(engine_binary())

    def call(self, method: str, *arguments: Any, timeout_s: float = LOST_S) -> Any:
        if self.lost is not None:
            raise self.error()
        return getattr(self.agent, method)(*arguments)


@contextmanager
def asked(*members: Here) -> Iterator[None]:
    """What they tell is heard as it comes."""
    over = threading.Event()

    def ask(member: Here) -> None:
        while not over.is_set():
            member.take(member.agent.news(0.1))

    threads = [threading.Thread(target=ask, args=(member,)) for member in members]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


def plan(address: str, duration_s: float) -> LoadPlan:
    return LoadPlan(request=Request("GET", f"http://{address}/"), load=ClosedLoad(4), duration_s=duration_s, threads=1)


def test_agents_are_not_lost_because_whoever_listens_takes_his_time(serve: Serve) -> None:
    one, other = Here("one"), Here("other")
    heard: list[Interval] = []

    def take_long(interval: Interval) -> None:
        heard.append(interval)
        if len(heard) == 1:
            # As a disk or a terminal that stands still.
            threading.Event().wait(LOST_S + 1.0)

    duration_s = LOST_S + 2.0
    with asked(one, other), SharedLoad([one, other], plan(serve("null"), duration_s), LoadListener(on_interval=take_long)) as load:
        end = load.result()
    assert end.summary.verdict.validity != "invalid", end.summary.verdict
    assert (one.lost, other.lost) == (None, None)
    assert sum(interval.completed for interval in heard) == end.summary.requests.completed


class Told(Here):
    """An agent that is far, and notices how long before a load it is told of that."""

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
            # Nobody answers before all are told.
            self.all_told.wait(timeout_s)
        return super().call(method, *arguments, timeout_s=timeout_s)


def test_all_agents_are_told_at_once_when_to_begin_and_the_way_to_them_is_reckoned_in(serve: Serve) -> None:
    all_told = threading.Barrier(3)
    told = [Told(name, all_told) for name in ("one", "other", "third")]
    with asked(*told), SharedLoad(told, plan(serve("null"), 0.3)) as load:
        end = load.result()
    assert end.summary.verdict.validity != "invalid", end.summary.verdict
    assert all(member.ahead_ns > member.ROUND_TRIP_NS // 2 for member in told)


def test_a_load_without_an_agent_that_was_lost_before_says_so_and_the_others_keep_their_threads(serve: Serve) -> None:
    gone, left = Here("gone"), Here("left")
    gone.lose("its node ended")
    with asked(left), SharedLoad([gone, left], plan(serve("null"), 0.3), threads=[1, 2]) as load:
        summary = load.result().summary
    assert [agent.generator.threads for agent in summary.agents or []] == [2]
    verdict = summary.verdict
    assert verdict.validity == "suspect"
    assert verdict.reasons[verdict.kinds.index(FEWER_AGENTS)] == "agent gone is lost: its node ended: this load was made by the other 1"
