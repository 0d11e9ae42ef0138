"""Runs engines on other nodes, with the interface of an engine on this machine.

One thread polls all agents. An agent without a reply for `LOST_S` seconds counts as lost, with all its engines. So weir
treats the loss of an actor, of a node and of the network alike. If too many lines are unread, polls request no lines.
"""

import contextlib
import hashlib
import itertools
import json
import math
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from weir.cluster import agent as agent_module
from weir.cluster.archive import SENT_WITHIN_S
from weir.cluster.clock import Clock, estimate_clock
from weir.cluster.ray_cluster import Node, RayCluster, Role, get_first_line
from weir.engine_process import Engine, Record
from weir.model.errors import GeneratorError, WeirError
from weir.paths import find_engine_binary

LOST_S = 2.0
"""Maximum time after a lost agent's last reply until weir detects the loss."""
LEASE_S = 5.0
"""The lease: an agent without a poll for this time ends its engines and itself."""
_POLL_WITHIN_S = 0.5
_UNREAD_LINES = 2048
"""Maximum number of an agent's unread lines on this machine. With more lines, a poll requests none, and lines wait on
the node. A load writes these lines in minutes. For a hundred agents, they need some hundred MiB."""
_PATIENT = (b'{"record":"interval"', b'{"record":"sample"')
"""Prefixes of lines that the agent may delay by some tenths of a second."""
_LOOK_EVERY_S = 0.25
_STOOD_STILL_S = 1.0
"""If more time passes between two checks for silent agents, the checking thread itself was probably paused."""
_BEGUN_WITHIN_S = 60.0
_READINGS = 40


CHECK_HINT = "weir cluster check lists the available nodes"


class AgentLostError(GeneratorError):
    """Raised if weir has lost a node, or the connection to a node."""


class StallGuard:
    """Determines when the thread that watches the agents last resumed after a pause. During a pause the thread reads no
    replies, so all agents seem silent. The thread ignores silence before the end of the pause.

    >>> guard = StallGuard(10.0)
    >>> guard.look(10.3), guard.look(13.3), guard.look(13.6)
    (10.0, 13.3, 13.3)
    """

    def __init__(self, now_s: float) -> None:
        self._looked_at = self._since = now_s

    def look(self, now_s: float) -> float:
        """Registers a check at `now_s`. Returns the time at which the thread last resumed, or started."""
        if now_s - self._looked_at > _STOOD_STILL_S:
            self._since = now_s
        self._looked_at = now_s
        return self._since


class AgentHandle:
    """An agent on a node: Ray's handle of the agent's actor, and the agent's name in messages."""

    def __init__(self, cluster: RayCluster, actor: Any, node: Node, name: str) -> None:
        self._cluster, self._ray = cluster, cluster.ray
        self.actor, self.node, self.name = actor, node, name
        self.lost: str | None = None
        """Reason why the agent is lost; None if the agent is not lost."""
        self.heard_at = time.monotonic()
        self.watched_since = math.inf
        """Time from which weir watches for silence of the agent."""
        self.clock = Clock(0, 0)
        self._engines: dict[int, RemoteEngine] = {}
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self.engine_path = ""
        self.facts: dict[str, Any] = {}

    def call(self, method: str, *arguments: Any, timeout_s: float = LOST_S) -> Any:
        """Calls a method of the agent and returns the result. Raises AgentLostError if the agent is lost or does not
        reply. Raises GeneratorError if the call failed, for example on a full disk."""
        if self.lost is not None:
            raise self.error()
        errors = self._ray.exceptions
        try:
            return self._ray.get(getattr(self.actor, method).remote(*arguments), timeout=timeout_s)
        except errors.RayTaskError as error:
            # This check comes first, because Ray's error is also an instance of the agent's error.
            raise GeneratorError(f"{self.name}: {error.cause or error}") from None
        except errors.GetTimeoutError:
            self.lose(f"no reply within {timeout_s:g} s")
        except errors.RayError as error:
            self.lose(self.describe_loss(error))
        raise self.error()

    def describe_loss(self, error: Exception) -> str:
        """Returns Ray's reason for the loss and the time since the last reply."""
        return f"{get_first_line(error)} ({time.monotonic() - self.heard_at:.1f} s after its last reply)"

    def apply(self, function: Callable[..., Any], *arguments: Any, timeout_s: float = LOST_S) -> Any:
        """Calls a function of Python's library or of `weir.cluster.agent` on the node. See `call`."""
        return self.call("apply", function, *arguments, timeout_s=timeout_s)

    def prepare(self) -> None:
        """Waits for the agent and sends the engine's program. Raises AgentLostError if the agent does not start."""
        self.facts = self.call("facts", timeout_s=_BEGUN_WITHIN_S)
        self.engine_path = self.send_file(find_engine_binary())
        self.read_clock()
        self.heard_at = time.monotonic()

    def read_clock(self, times: int = _READINGS) -> None:
        """Measures the offset of the node's clock again."""
        self.clock = estimate_clock(agent_module.read_clock(lambda: self.call("now_ns"), times))

    def send_file(self, file: Path) -> str:
        """Sends a file to the node, if the node has no copy. Returns the copy's path on the node."""
        content = file.read_bytes()
        path: str | None = self.call("find", hashlib.sha256(content).hexdigest(), file.name)
        return path or str(self.call("keep", self._cluster.store(content), file.name, timeout_s=_BEGUN_WITHIN_S))

    def send_archive(self, archive: bytes) -> str:
        """Sends an archive to the node, if the node has no copy. Returns the folder of the unpacked archive."""
        path: str | None = self.call("find", hashlib.sha256(archive).hexdigest())
        return path or str(self.call("unpack", self._cluster.store(archive), timeout_s=SENT_WITHIN_S))

    def put_archive(self, archive: bytes, folder: Path) -> None:
        """Sends an archive and unpacks it as `folder` on the node, if the node has no such folder."""
        self.call("unpack", self._cluster.store(archive), str(folder), timeout_s=SENT_WITHIN_S)

    def start_engine(
        self, arguments: Sequence[str], *, on_record: Callable[[Record], None], on_end: Callable[[], None]
    ) -> "RemoteEngine":
        """Starts an engine on the node, with the signature of `weir.engine_process.StartEngine`."""
        return RemoteEngine(self, [self.engine_path, *arguments], on_record, on_end)

    def register(self, engine: "RemoteEngine") -> int:
        """Returns a number for an engine. From now on, the engine gets the agent's output with this number."""
        with self._lock:
            number = next(self._numbers)
            self._engines[number] = engine
        return number

    def poll(self) -> Any:
        """Requests the agent's output, or only renews the lease if too many lines are unread. Returns an ObjectRef."""
        with self._lock:
            engines = list(self._engines.values())
        most = agent_module.LINES_AT_A_TIME
        if sum(engine.unread for engine in engines) > _UNREAD_LINES:
            most = 0
            for engine in engines:
                # A poll that requests no lines does not show whether the engine is alive.
                engine.heard_at = time.monotonic()
        return self.actor.output.remote(_POLL_WITHIN_S, _PATIENT, most)

    def deliver(self, output: Iterable[agent_module.Output]) -> None:
        for number, kind, what in output:
            with self._lock:
                engine = self._engines.get(number)
            if engine is not None:
                engine.take(kind, what)

    def lose(self, why: str) -> None:
        """Marks the agent as lost and ends all its engines. Later calls do not change the reason."""
        with self._lock:
            if self.lost is not None:
                return
            self.lost = why
            engines = list(self._engines.values())
        for engine in engines:
            engine.lose(self.error())
        with contextlib.suppress(Exception):
            self._ray.kill(self.actor)

    def error(self) -> AgentLostError:
        return AgentLostError(f"agent {self.name} is lost: {self.lost}", hint=CHECK_HINT)

    def forget(self, number: int) -> None:
        with self._lock:
            self._engines.pop(number, None)


class RemoteEngine(Engine):
    """A subcommand of `weir-engine` on a node."""

    pid = 0

    def __init__(
        self,
        agent: AgentHandle,
        argv: Sequence[str],
        on_record: Callable[[Any], None],
        on_end: Callable[[], None],
        environment: Mapping[str, str] = {},
    ) -> None:
        super().__init__(argv[1], on_record, on_end)
        self._agent = agent
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._end: tuple[int | None, bytes] = (None, b"")
        self._lost: WeirError | None = None
        self.heard_at = time.monotonic()
        """Time at which the engine's last line arrived."""
        self.has_ended = False
        """Whether the message about the engine's end has arrived. The reader may get this message much later."""
        lines = iter(self._lines.get, None)
        self._reader = threading.Thread(target=self._read_lines, args=(lines,), name=self.name, daemon=True)
        # Registers the engine before its start: the first line may arrive before the reply to `start`.
        self._number = agent.register(self)
        try:
            self.pid = agent.call("start", self._number, list(argv), environment)
        except WeirError:
            agent.forget(self._number)
            raise
        self._reader.start()

    def take(self, kind: str, what: Any) -> None:
        """Accepts a line of the engine, or the message about the engine's end."""
        self.heard_at = time.monotonic()
        if kind == "line":
            self._lines.put(what)
            return
        self._end = what
        self.has_ended = True
        self._lines.put(None)

    @property
    def unread(self) -> int:
        """Number of lines that the reader has not read."""
        return self._lines.qsize()

    def lose(self, error: WeirError) -> None:
        """Ends the engine with `error`, because its node is lost."""
        self._lost = error
        self.failure = self.failure or error
        self._lines.put(None)

    def write_line(self, value: Record) -> None:
        self._send("write", json.dumps(value).encode() + b"\n")

    def close_input(self) -> None:
        self._send("close_input")

    def signal(self, number: int) -> None:
        self._send("signal", number)

    def _send(self, method: str, *arguments: object) -> None:
        # The reader gets the error of a lost engine.
        with contextlib.suppress(WeirError):
            self._agent.call(method, self._number, *arguments)

    def wait(self, timeout_s: float | None = None) -> bool:
        self._reader.join(timeout_s)
        return not self._reader.is_alive()

    def end(self, grace_s: float = 10.0) -> None:
        self.close_input()
        if not self.wait(grace_s):
            self.signal(signal.SIGKILL)
            self.wait(LOST_S)
        self._agent.forget(self._number)

    def error(self) -> WeirError:
        return self._lost or super().error()

    def _ending(self) -> tuple[int | None, bytes]:
        return self._end


class RemoteProcess(RemoteEngine):
    """A program on a node that prints lines of text; `on_record` receives them."""

    @property
    def exit_code(self) -> int | None:
        """Exit status of the program; None if its node is lost."""
        return None if self._lost is not None else self._end[0]

    def _read_lines(self, lines: Iterable[Any]) -> None:
        try:
            for line in lines:
                self._on_record(line)
        finally:
            self._on_end()


@contextmanager
def start_agents(
    cluster: RayCluster, role: Role | None, count: int, *, share_nodes: bool = False
) -> Iterator[list[AgentHandle]]:
    """Yields agents that are ready to start engines. Finally ends the agents and their processes. With `role` None, any
    node will do. Raises UsageError if the cluster is too small, TargetError if the cluster cannot place the agents now,
    and AgentLostError if an agent does not start."""
    with launch_agents(cluster, role, count, share_nodes=share_nodes) as found:
        for agent in found:
            agent.prepare()
        for agent in found:
            agent.watched_since = time.monotonic()
        yield found


@contextmanager
def launch_agents(
    cluster: RayCluster, role: Role | None, count: int, *, share_nodes: bool = False
) -> Iterator[list[AgentHandle]]:
    """Yields agents at once, even while some are starting. The caller must call `prepare` of each agent."""
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    ray = cluster.ray
    # Ray sends the module by value, so that nodes do not need weir.
    ray.cloudpickle.register_pickle_by_value(agent_module)
    with cluster.reserve_nodes(role, count, share_nodes=share_nodes) as (group, nodes):
        found: list[AgentHandle] = []
        try:
            for index, node in enumerate(nodes):
                place = PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=index)
                options = {"num_cpus": 0, "max_concurrency": 8, "max_restarts": 0, "scheduling_strategy": place}
                actor = ray.remote(agent_module.Agent).options(**options).remote(LEASE_S, naps=True)
                name = node.name if [one.id for one in nodes].count(node.id) == 1 else f"{node.name}#{index}"
                found.append(AgentHandle(cluster, actor, node, name))
            # The poll must begin before a lease expires.
            with polled(ray, found):
                yield found
        finally:
            for agent in found:
                with contextlib.suppress(Exception):
                    ray.kill(agent.actor)


@contextmanager
def polled(ray: Any, agents: Sequence[AgentHandle]) -> Iterator[None]:
    """Context manager: polls the agents on a separate thread in the `with` block."""
    is_over = threading.Event()

    def poll() -> None:
        try:
            _poll_agents(ray, agents, is_over)
        except Exception as error:
            # Without this thread, weir would get no more replies from agents.
            for agent in agents:
                agent.lose(get_first_line(error))

    thread = threading.Thread(target=poll, name="agents", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _poll_agents(ray: Any, agents: Sequence[AgentHandle], is_over: threading.Event) -> None:
    asked = {agent.poll(): agent for agent in agents}
    guard = StallGuard(time.monotonic())
    while asked and not is_over.is_set():
        ready, _ = ray.wait(list(asked), num_returns=1, timeout=_LOOK_EVERY_S)
        if ready:
            # Takes all replies that have arrived.
            ready, _ = ray.wait(list(asked), num_returns=len(asked), timeout=0)
        now = time.monotonic()
        resumed_at = guard.look(now)
        for poll in ready:
            agent = asked.pop(poll)
            try:
                output = ray.get(poll)
            except ray.exceptions.RayError as error:
                agent.lose(agent.describe_loss(error))
                continue
            agent.heard_at = now
            if agent.lost is None:
                agent.deliver(output)
                asked[agent.poll()] = agent
        for poll, agent in list(asked.items()):
            silent_s = now - max(agent.heard_at, resumed_at, agent.watched_since)
            # The next check would be too late.
            if silent_s > LOST_S - _LOOK_EVERY_S:
                agent.lose(f"no reply for {silent_s:.1f} s")
            if agent.lost is not None:
                del asked[poll]
