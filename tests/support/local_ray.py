"""The parts of Ray that agents in this process need: threads call the agents' methods, without a cluster."""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

from weir.cluster.agent import Agent
from weir.cluster.agents import AgentHandle, polled
from weir.cluster.ray_cluster import Node, RayCluster
from weir.paths import find_engine_binary

LEASE_S = 3600.0
"""At the end of its lease an agent ends its process, which is here the test's process."""


class RayError(Exception):
    """Replaces Ray's error of this name."""


class GetTimeoutError(RayError):
    """Replaces Ray's error of this name."""


class RayTaskError(RayError):
    """Replaces Ray's error of this name."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(cause)
        self.cause = cause


class LocalRay(ModuleType):
    """Replaces the module `ray` for handles of agents.

    Args:
        way_s: seconds that a result takes on its way.
    """

    exceptions = SimpleNamespace(RayError=RayError, GetTimeoutError=GetTimeoutError, RayTaskError=RayTaskError)

    def __init__(self, way_s: float = 0.0) -> None:
        super().__init__("ray")
        self._way_s = way_s

    def get(self, poll: "Future[Any]", timeout: float | None = None) -> Any:
        if not wait([poll], timeout).done:
            raise GetTimeoutError
        try:
            return poll.result()
        except RayError:
            raise
        except Exception as error:
            raise RayTaskError(error) from None

    def wait(
        self, questions: Sequence["Future[Any]"], *, num_returns: int, timeout: float
    ) -> tuple[list["Future[Any]"], list["Future[Any]"]]:
        ready = wait(questions, timeout, FIRST_COMPLETED).done
        time.sleep(self._way_s)
        return [one for one in questions if one in ready], [one for one in questions if one not in ready]

    def put(self, content: bytes) -> bytes:
        return content

    def kill(self, actor: "LocalActor") -> None:
        actor.close()


class LocalActor:
    """The handle of an agent."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._threads = ThreadPoolExecutor(8)

    def __getattr__(self, method: str) -> SimpleNamespace:
        return SimpleNamespace(remote=lambda *arguments: self._threads.submit(getattr(self._agent, method), *arguments))

    def close(self) -> None:
        self._threads.shutdown(wait=False)


class LocalMember(AgentHandle):
    """An agent in this process that starts this environment's engine."""

    def __init__(self, name: str, agent: Agent | None = None) -> None:
        actor = LocalActor(agent or Agent(LEASE_S))
        super().__init__(RayCluster(LocalRay()), actor, Node(name, "127.0.0.1", name, {}), name)
        self.engine_path = str(find_engine_binary())


@contextmanager
def asked(*members: AgentHandle, way_s: float = 0.0) -> Iterator[None]:
    """Lets weir poll these agents, as in a cluster."""
    for member in members:
        member.heard_at = member.watched_since = time.monotonic()
    with polled(LocalRay(way_s), members):
        yield
