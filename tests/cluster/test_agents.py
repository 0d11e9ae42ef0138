"""Tests agents as this machine sees them. Here the agents belong to this process, without a cluster between."""

import errno
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence

import pytest

from tests.support.local_ray import LEASE_S, LocalMember, asked
from weir.cluster.agent import LINES_AT_A_TIME, Agent
from weir.cluster.agents import _UNREAD_LINES, LOST_S, RemoteProcess
from weir.cluster.load import SharedLoad
from weir.cluster.remote_services import _convert_errors
from weir.model.errors import GeneratorError, TargetError
from weir.model.load import ClosedLoad, LoadPlan, Request

PLAN = LoadPlan(request=Request("GET", "http://127.0.0.1:1/"), load=ClosedLoad(4), duration_s=1.0, threads=1)


# More lines than the buffers on both ends and the pipe to an agent's process can hold.
MANY_LINES = 30_000


class Full(Agent):
    """An agent on a node that has no free file descriptors."""

    def start(self, engine: int, argv: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


class Silent(Agent):
    """An agent whose engine never reports that it is ready."""

    def start(self, engine: int, argv: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
        return super().start(engine, [sys.executable, "-c", "import sys; sys.stdin.read()"], environment)


def test_what_a_node_for_loads_cannot_do_is_told_as_the_generators_failure_and_not_as_the_stacks() -> None:
    with pytest.raises(GeneratorError, match=r"one: .*Too many open files"):
        SharedLoad([LocalMember("one", Full(LEASE_S))], PLAN)


def test_an_engine_that_never_gets_ready_is_the_generators_failure_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weir.cluster.load._READY_WITHIN_S", 0.2)
    one = LocalMember("one", Silent(LEASE_S))
    with asked(one), pytest.raises(GeneratorError, match=r"one: engine not ready within 0\.2 s"):
        SharedLoad([one], PLAN)


def test_what_the_node_for_services_cannot_do_is_no_generators_failure() -> None:
    member = LocalMember("services", Full(LEASE_S))
    with pytest.raises(TargetError, match=r"services: .*Too many open files") as raised, _convert_errors():
        member.call("start", 0, ["postgres"])
    assert not isinstance(raised.value, GeneratorError)


def until(holds: Callable[[], bool], within_s: float = 30.0) -> bool:
    end = time.monotonic() + within_s
    while not holds() and time.monotonic() < end:
        time.sleep(0.01)
    return holds()


def test_what_nobody_reads_here_waits_there_and_comes_in_its_order_once_somebody_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("weir.cluster.agents._POLL_WITHIN_S", 0.05)
    agent = Agent(LEASE_S)
    member = LocalMember("one", agent)
    heard: list[int] = []
    goes_on, ended = threading.Event(), threading.Event()

    def stand_still(line: bytes) -> None:
        goes_on.wait()
        heard.append(int(line))

    with asked(member):
        counting = [sys.executable, "-c", f"for number in range({MANY_LINES}): print(number)"]
        process = RemoteProcess(member, counting, stand_still, ended.set)
        try:
            assert until(agent._output.full)
            full_at = time.monotonic()
            # weir keeps asking the agent, and does not call it lost although it sends nothing.
            assert until(lambda: agent._asked_at > full_at)
            assert until(lambda: process.heard_at > full_at + LOST_S)
            assert process.unread <= _UNREAD_LINES + LINES_AT_A_TIME
            assert agent._output.full()
        finally:
            goes_on.set()
        assert ended.wait(30)
        process.end()
    assert member.lost is None
    assert process.exit_code == 0
    assert heard == list(range(MANY_LINES))
