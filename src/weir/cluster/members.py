"""Agents as this machine knows them: engines that run elsewhere and look as if they ran here.

One thread asks all agents for news. An agent that answers nothing for `LOST_S` is lost, and so is every engine of its: that is how the
death of an actor, of a node and of the way to it all look from here. It asks for no more than whoever listens here takes.
"""

import contextlib
import hashlib
import itertools
import json
import queue
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from weir.cluster import agent as agent_module
from weir.cluster.clock import Clock, clock_of
from weir.cluster.ray_cluster import Node, RayCluster, Role, first_line
from weir.cluster.travel import SENT_WITHIN_S, packed, packed_files
from weir.engine_process import Engine, Record
from weir.model.errors import GeneratorError, WeirError
from weir.places import engine_binary

LOST_S = 2.0
"""Within so long after its last answer it is noticed that an agent is lost."""
LEASE_S = 5.0
"""Without a question for so long an agent ends what it has started."""
_NEWS_WITHIN_S = 0.5
_UNREAD_LINES = 2048
"""Lines of an agent that may wait here for whoever listens, before it is asked for none and they wait there: minutes of a load, and of a
hundred agents, whose intervals have some kilobytes each, some hundred MiB at most."""
_PATIENT = (b'{"record":"interval"', b'{"record":"sample"')
"""How lines begin that may come some tenths of a second later."""
_LOOK_EVERY_S = 0.25
_STOOD_STILL_S = 1.0
"""Between two looks of a thread that looks several times a second: from here on it was itself that stood still."""
_BEGUN_WITHIN_S = 60.0
_READINGS = 40


class AgentLostError(GeneratorError):
    """A node is gone, or the way to it."""


class Awake:
    """Since when a thread that looks after agents has been awake itself.

    A process that was stopped, or had no CPU, finds all of them silent when it goes on, before it has read what waits for it.

    >>> awake = Awake(10.0)
    >>> awake.look(10.3), awake.look(13.3), awake.look(13.6)
    (10.0, 13.3, 13.3)
    """

    def __init__(self, now_s: float) -> None:
        self._looked_at = self._since = now_s

    def look(self, now_s: float) -> float:
        """Takes note of a look, and gives that time."""
        if now_s - self._looked_at > _STOOD_STILL_S:
            self._since = now_s
        self._looked_at = now_s
        return self._since


class Member:
    """One agent, on a node.

    Args:
        cluster: that it is of.
        actor: its handle.
        node: where it is.
        name: what it is called.
    """

    def __init__(self, cluster: RayCluster, actor: Any, node: Node, name: str) -> None:
        self._cluster = cluster
        self._ray = cluster.ray
        self.actor = actor
        self.node = node
        self.name = name
        self.lost: str | None = None
        """Why it is lost; None while it is there."""
        self.heard_at = time.monotonic()
        self.clock = Clock(0, 0)
        self._engines: dict[int, RemoteEngine] = {}
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self.engine_path = ""
        self.facts: dict[str, Any] = {}

    def call(self, method: str, *arguments: Any, timeout_s: float = LOST_S) -> Any:
        """Has it do something, and gives what that gives.

        Raises:
            AgentLostError: it is gone, or does not answer.
            GeneratorError: it could not do that, as where its node has no room left: no stack has failed by that.
        """
        if self.lost is not None:
            raise self.error()
        errors = self._ray.exceptions
        try:
            return self._ray.get(getattr(self.actor, method).remote(*arguments), timeout=timeout_s)
        except errors.RayTaskError as error:
            # Before the others: it is of their kinds too where the agent met one.
            raise GeneratorError(f"{self.name}: {error.cause or error}") from None
        except errors.GetTimeoutError:
            self.lose(f"no answer within {timeout_s:g} s")
        except errors.RayError as error:
            self.lose(self.found_lost(error))
        raise self.error()

    def found_lost(self, error: Exception) -> str:
        """Why it is lost, as Ray says it, and how soon that came."""
        return f"{first_line(error)} ({time.monotonic() - self.heard_at:.1f} s after its last answer)"

    def prepare(self) -> None:
        """Waits until it is there, and gives it the engine.

        Raises:
            AgentLostError: it does not come up.
        """
        self.facts = self.call("facts", timeout_s=_BEGUN_WITHIN_S)
        self.engine_path = self.keep(engine_binary())
        self.read_clock()
        self.heard_at = time.monotonic()

    def read_clock(self, times: int = _READINGS) -> None:
        """Reads its clock anew."""
        readings = []
        for _ in range(times):
            before = time.monotonic_ns()
            said = self.call("now_ns")
            readings.append((before, said, time.monotonic_ns()))
        self.clock = clock_of(readings)

    def keep(self, file: Path) -> str:
        """Gives it a file, if it has none of that content, and tells its path there."""
        content = file.read_bytes()
        path: str | None = self.call("has", hashlib.sha256(content).hexdigest(), file.name)
        return path or str(self.call("keep", self._cluster.stored(content), file.name, timeout_s=_BEGUN_WITHIN_S))

    def keep_folder(self, folder: Path, what: str, *, leave_out: Collection[str] = ()) -> str:
        """Gives it the files of a folder but for those of some names, if it has not those already, and tells the folder's path there.

        Raises:
            UsageError: one cannot be read, or they are too large to travel; `what` is what they are called then.
        """
        return self._keep_archive(packed(folder, what, leave_out=leave_out))

    def put_folder(self, folder: Path, path: str) -> None:
        """Has a folder with its files at this path there, unless something is there.

        Raises:
            UsageError: one cannot be read, or they are too large to travel.
        """
        self.call("unpack_to", self._cluster.stored(packed(folder, str(folder), dated=True)), path, timeout_s=SENT_WITHIN_S)

    def keep_files(self, files: Mapping[str, Path], what: str) -> str:
        """Gives it some files, if it has not those already, and tells the path of the folder there in which each has its own path.

        Raises:
            UsageError: one cannot be read, or they are too many to travel; `what` is what they are called then.
        """
        return self._keep_archive(packed_files(files, what))

    def _keep_archive(self, archive: bytes) -> str:
        path: str | None = self.call("has_folder", hashlib.sha256(archive).hexdigest())
        return path or str(self.call("unpack", self._cluster.stored(archive), timeout_s=SENT_WITHIN_S))

    def start_engine(self, arguments: Sequence[str], *, on_record: Callable[[Record], None], on_end: Callable[[], None]) -> "RemoteEngine":
        """A `weir.engine_process.StartEngine`."""
        number = next(self._numbers)
        engine = RemoteEngine(self, number, arguments[0], on_record, on_end)
        self._begin(number, engine, [self.engine_path, *arguments], {})
        return engine

    def start_process(
        self, argv: Sequence[str], environment: dict[str, str], *, on_line: Callable[[bytes], None], on_end: Callable[[], None]
    ) -> "RemoteProcess":
        """Starts any program there, whose lines are told as they come."""
        number = next(self._numbers)
        process = RemoteProcess(self, number, argv[0], on_line, on_end)
        self._begin(number, process, argv, environment)
        return process

    def _begin(self, number: int, engine: "RemoteEngine", argv: Sequence[str], environment: dict[str, str]) -> None:
        # Known before it starts: its first line may be here before the answer is.
        with self._lock:
            self._engines[number] = engine
        try:
            engine.begin(self.call("start", number, list(argv), environment))
        except WeirError:
            self.forget(number)
            raise

    def question(self) -> Any:
        """Asks it for news: for none while too much of it waits here to be read. It is what Ray gives at once for an answer."""
        with self._lock:
            engines = list(self._engines.values())
        most = agent_module.LINES_AT_A_TIME
        if sum(engine.unread for engine in engines) > _UNREAD_LINES:
            most = 0
            for engine in engines:
                engine.is_not_asked()
        return self.actor.news.remote(_NEWS_WITHIN_S, _PATIENT, most)

    def take(self, news: Iterable[agent_module.News]) -> None:
        """What it has told."""
        for number, kind, what in news:
            with self._lock:
                engine = self._engines.get(number)
            if engine is not None:
                engine.take(kind, what)

    def lose(self, why: str) -> None:
        """It is gone: all its engines end. The first reason stays."""
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
        """That it is lost."""
        return AgentLostError(f"agent {self.name} is lost: {self.lost}", hint="weir cluster check shows the nodes that are there")

    def forget(self, number: int) -> None:
        """An engine of its has ended."""
        with self._lock:
            self._engines.pop(number, None)


class RemoteEngine(Engine):
    """One subcommand of `weir-engine`, running on a node."""

    def __init__(self, member: Member, number: int, name: str, on_record: Callable[[Record], None], on_end: Callable[[], None]) -> None:
        super().__init__(name, on_record, on_end)
        self._member = member
        self._number = number
        self._pid = 0
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._end: tuple[int | None, bytes] = (None, b"")
        self._lost: WeirError | None = None
        self.heard_at = time.monotonic()
        """When the last line of it came here."""
        self.has_ended = False
        """Whether its end came here, which whoever listens may hear much later."""
        self._reader = threading.Thread(target=self._read_lines, args=(iter(self._lines.get, None),), name=self.name, daemon=True)

    def begin(self, pid: int) -> None:
        """It runs, as this process there."""
        self._pid = pid
        self._reader.start()

    def take(self, kind: str, what: Any) -> None:
        """A line that it has written, or its end."""
        self.heard_at = time.monotonic()
        if kind == "line":
            self._lines.put(what)
            return
        self._end = what
        self.has_ended = True
        self._lines.put(None)

    @property
    def unread(self) -> int:
        """Lines of it that nobody has taken yet."""
        return self._lines.qsize()

    def is_not_asked(self) -> None:
        """It may have lines there: that none comes here is not its silence."""
        self.heard_at = time.monotonic()

    def lose(self, error: WeirError) -> None:
        """Its node is gone."""
        self._lost = error
        self.failure = self.failure or error
        self._lines.put(None)

    @property
    def pid(self) -> int:
        """As `Engine`."""
        return self._pid

    def write_line(self, value: Record) -> None:
        """As `Engine`."""
        # Whoever reads meets what becomes of an engine that is gone.
        with contextlib.suppress(WeirError):
            self._member.call("write", self._number, json.dumps(value).encode() + b"\n")

    def close_input(self) -> None:
        """As `Engine`."""
        with contextlib.suppress(WeirError):
            self._member.call("close_input", self._number)

    def signal(self, number: int) -> None:
        """As `Engine`."""
        with contextlib.suppress(WeirError):
            self._member.call("signal", self._number, number)

    def wait(self, timeout_s: float | None = None) -> bool:
        """As `Engine`."""
        self._reader.join(timeout_s)
        return not self._reader.is_alive()

    def end(self, grace_s: float = 10.0) -> None:
        """As `Engine`."""
        self.close_input()
        if not self.wait(grace_s):
            self.signal(signal.SIGKILL)
            self.wait(LOST_S)
        self._member.forget(self._number)

    def error(self) -> WeirError:
        """As `Engine`."""
        return self._lost or super().error()

    def _ending(self) -> tuple[int | None, bytes]:
        return self._end


class RemoteProcess(RemoteEngine):
    """A program on a node that speaks in lines of text."""

    def __init__(self, member: Member, number: int, name: str, on_line: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        super().__init__(member, number, name, lambda _: None, on_end)
        self._on_line = on_line

    @property
    def exit_code(self) -> int | None:
        """How it ended; None where its node is gone."""
        return None if self._lost is not None else self._end[0]

    def _read_lines(self, lines: Iterable[bytes]) -> None:
        try:
            for line in lines:
                self._on_line(line)
        finally:
            self._on_end()


@contextmanager
def members(cluster: RayCluster, role: Role | None, count: int, *, share_nodes: bool = False) -> Iterator[list[Member]]:
    """Agents of a role, ready to start engines; they and what they have started are gone in the end.

    Args:
        cluster: where.
        role: what they are for; None: for anything, whatever else a node is used for.
        count: how many.
        share_nodes: whether several may be on one node.

    Raises:
        UsageError: the cluster has no room for as many.
        TargetError: it gives them no place now.
        AgentLostError: one does not come up.
    """
    with begun(cluster, role, count, share_nodes=share_nodes) as (found, expect_answers):
        for member in found:
            member.prepare()
        expect_answers()
        yield found


@contextmanager
def begun(
    cluster: RayCluster, role: Role | None, count: int, *, share_nodes: bool = False
) -> Iterator[tuple[list[Member], Callable[[], None]]]:
    """The same before they are there, each of which may `prepare` or fail to, and what then says that all are: see `members`."""
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    ray = cluster.ray
    # By value: the nodes need no weir.
    ray.cloudpickle.register_pickle_by_value(agent_module)
    with cluster.placed(role, count, share_nodes=share_nodes) as (group, nodes):
        found: list[Member] = []
        asking: _Asking | None = None
        try:
            for index, node in enumerate(nodes):
                options = {
                    "num_cpus": 0,
                    "max_concurrency": 8,
                    "max_restarts": 0,
                    "scheduling_strategy": PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=index),
                }
                actor = ray.remote(agent_module.Agent).options(**options).remote(LEASE_S, naps=True)
                name = node.name if [one.id for one in nodes].count(node.id) == 1 else f"{node.name}#{index}"
                found.append(Member(cluster, actor, node, name))
            # Asked for news from the first moment on, so that none ends for want of a question.
            asking = _Asking(ray, found)
            yield found, asking.expect_answers
        finally:
            if asking is not None:
                asking.close()
            for member in found:
                with contextlib.suppress(Exception):
                    ray.kill(member.actor)


class _Asking:
    """The thread that asks agents for news."""

    def __init__(self, ray: Any, found: Sequence[Member]) -> None:
        self._ray = ray
        self._members = found
        self._closed = threading.Event()
        self._is_strict = threading.Event()
        self._thread = threading.Thread(target=self._ask, name="agents", daemon=True)
        self._thread.start()

    def expect_answers(self) -> None:
        """All of them are there: from now on one that says nothing is lost."""
        now = time.monotonic()
        for member in self._members:
            member.heard_at = now
        self._is_strict.set()

    def close(self) -> None:
        self._closed.set()
        self._thread.join()

    def _ask(self) -> None:
        try:
            self._ask_all()
        except Exception as error:
            # Nobody would hear of any of them any more.
            for member in self._members:
                member.lose(first_line(error))

    def _ask_all(self) -> None:
        asked = {member.question(): member for member in self._members}
        awake = Awake(time.monotonic())
        while asked and not self._closed.is_set():
            ready, _ = self._ray.wait(list(asked), num_returns=1, timeout=_LOOK_EVERY_S)
            if ready:
                # What else has come by now, in one go.
                ready, _ = self._ray.wait(list(asked), num_returns=len(asked), timeout=0)
            now = time.monotonic()
            awake_since = awake.look(now)
            for question in ready:
                member = asked.pop(question)
                try:
                    news = self._ray.get(question)
                except self._ray.exceptions.RayError as error:
                    member.lose(member.found_lost(error))
                    continue
                member.heard_at = now
                if member.lost is None:
                    member.take(news)
                    asked[member.question()] = member
            for question, member in list(asked.items()):
                silent_s = now - max(member.heard_at, awake_since)
                # Another look would come too late.
                if self._is_strict.is_set() and silent_s > LOST_S - _LOOK_EVERY_S:
                    member.lose(f"no answer for {silent_s:.1f} s")
                if member.lost is not None:
                    del asked[question]
