"""As much of Ray as agents take that are of this process: their methods are called on threads, and no cluster is
between."""

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
"""An agent whose lease ends takes the process that it lives in with it."""


class RayError(Exception):
    """As Ray's."""


class GetTimeoutError(RayError):
    """As Ray's."""


class RayTaskError(RayError):
    """As Ray's."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(cause)
        self.cause = cause


class LocalRay(ModuleType):
    """Ray, as members use it.

    Args:
        way_s: how long an answer to a question that is waited for is on its way.
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
    """An agent of this process, that starts the engine which lies here."""

    def __init__(self, name: str, agent: Agent | None = None) -> None:
        actor = LocalActor(agent or Agent(LEASE_S))
        super().__init__(RayCluster(LocalRay()), actor, Node(name, "127.0.0.1", name, {}), name)
        self.engine_path = str(find_engine_binary())


@contextmanager
def asked(*members: AgentHandle, way_s: float = 0.0) -> Iterator[None]:
    """They are asked for news, as in a cluster."""
    for member in members:
        member.heard_at = member.watched_since = time.monotonic()
    with polled(LocalRay(way_s), members):
        yield
