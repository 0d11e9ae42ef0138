"""The host of a machine, from Python: starts, observes and stops the processes of a trial through `weir-engine host`.

Closing it stops everything that it started, and so does the death of this Python process.
"""

import itertools
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from weir.engine_process import EngineProcess, Record, StartEngine
from weir.model.errors import ExitCode, GeneratorError, TargetError, WeirError
from weir.model.records import Sample
from weir.model.run import Limits, Network

_ANSWER_S = 60.0
"""How long the host may take to answer; a stop may take its grace period on top."""


class HostGoneError(WeirError):
    """The host itself is gone, and with it everything that it started. Unlike a stack's failure this ends a run."""

    exit_code = ExitCode.TARGET


@dataclass(frozen=True, slots=True)
class User:
    """A user of this machine by number, with no group but its own."""

    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class Cgroup:
    """The control group of a process that has limits."""

    version: int
    cpu: Path
    """Where its CPU is limited and throttling counted (`cpu.stat`)."""
    memory: Path
    """In version 2 the same."""


@dataclass(frozen=True, slots=True)
class Started:
    """A process that runs."""

    pid: int
    cgroup: Cgroup | None
    """None where it has no limits."""
    address: str
    """The IP address that it is reached at: loopback, or that of a network of its own."""


@dataclass(frozen=True, slots=True)
class Ability:
    """Something that the host can do on this machine, or not."""

    possible: bool
    detail: str
    """By which means, or why not."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What can be asked for when a process is started."""

    limits: Ability
    network: Ability
    port_translation: Ability
    """Of `Network.published_port` to another port."""
    netem: Ability
    """Of `Network.delay_ms` and `Network.loss`."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process of the host ended, by itself or stopped. CPU covers all its descendants."""

    name: str
    exit_code: int | None
    signal: int | None
    killed: bool
    cpu_user_s: float
    cpu_system_s: float
    peak_rss_bytes: int
    oom_kills: int | None = None
    """How many of its processes the kernel killed at their limit of memory; None without one."""
    left_behind: tuple[str, ...] = ()
    """Names of the processes that it left when it ended as it was told to; they were killed then."""
    written: tuple[str, ...] = ()
    """Files that it wrote outside its folder and that are still there; empty where nobody looked."""

    @property
    def how(self) -> str:
        """In words."""
        how = f"by signal {self.signal}" if self.signal is not None else f"with exit status {self.exit_code}"
        return f"{how}, {self.out_of_memory}" if self.out_of_memory else how

    @property
    def out_of_memory(self) -> str:
        """What its limit of memory did to it, in words; empty where that did nothing."""
        if not self.oom_kills:
            return ""
        processes = "process" if self.oom_kills == 1 else "processes"
        return f"after the kernel had killed {self.oom_kills} {processes} of it at its limit of memory"


class Host:
    """One `weir-engine host`. Use it as a context manager.

    Args:
        start_engine: starts it, on this machine or on another, whose paths and CPUs are then meant.

    Raises:
        UsageError: there is no engine.
        HostGoneError: the host could not start, or died (from any of its methods).
    """

    def __init__(self, start_engine: StartEngine = EngineProcess) -> None:
        self._answers: dict[int, queue.SimpleQueue[Record | None]] = {}
        self._ids = itertools.count(1)
        self._lock = threading.Lock()
        self._hello: queue.SimpleQueue[Record | None] = queue.SimpleQueue()
        self._ended: dict[str, Ended] = {}
        self._changed = threading.Condition()
        self._gone = False
        self.on_sample: Callable[[Sample], None] = lambda _: None
        self.on_exit: Callable[[Ended], None] = lambda _: None
        self.on_gone: Callable[[], None] = lambda: None
        """Called on the reader's thread when the host, or the machine that it is on, is gone."""
        self._process = start_engine(["host"], on_record=self._take, on_end=self._stream_ended)
        hello = self._hello.get()
        if hello is None:
            raise self._why_gone()
        self.isolation: str = hello["isolation"]
        self.isolation_detail: str = hello["isolation_detail"]

    @property
    def pid(self) -> int:
        """The host's process id."""
        return self._process.pid

    def start(
        self,
        name: str,
        argv: Sequence[str],
        *,
        tier: str,
        cwd: Path,
        env: Mapping[str, str],
        log: Path,
        cpus: Sequence[int] = (),
        user: User | None = None,
        limits: Limits | None = None,
        network: Network | None = None,
        watch_writes: bool = False,
    ) -> Started:
        """Starts a process.

        Args:
            name: what it is called until it has ended.
            argv: command and arguments.
            tier: its tier, for samples.
            cwd: its working directory.
            env: its whole environment.
            log: file that its output is appended to.
            cpus: CPUs that it and its children are bound to; empty: unbound.
            user: whom it runs as; None: whoever weir is. It takes root.
            limits: the most that it may use, with everything below it.
            network: a network of its own; None: loopback.
            watch_writes: whether its end is to tell which files it wrote outside `cwd` and the log's folder. It takes root.

        Raises:
            TargetError: it could not be started.
        """
        with self._changed:
            self._ended.pop(name, None)
        answer = self._ask(
            "start",
            name=name,
            tier=tier,
            argv=list(argv),
            env=dict(env),
            cwd=str(cwd),
            cpus=list(cpus),
            log=str(log),
            user=None if user is None else asdict(user),
            limits=None if limits is None else asdict(limits),
            network=None if network is None else asdict(network),
            watch_writes=watch_writes,
        )
        cgroup = answer["cgroup"]
        return Started(
            pid=int(answer["pid"]),
            cgroup=None if cgroup is None else Cgroup(cgroup["version"], Path(cgroup["cpu"]), Path(cgroup["memory"])),
            address=answer["address"] or "127.0.0.1",
        )

    def stop(self, name: str, *, grace_s: float = 5.0) -> Ended:
        """Stops a process with everything below it: SIGTERM, `grace_s`, SIGKILL."""
        answer = self._ask("stop", name=name, grace_s=grace_s, wait_s=_ANSWER_S + grace_s)
        return _ended(answer)

    def ended(self, name: str) -> Ended | None:
        """How a process ended by itself; None while it runs."""
        with self._changed:
            return self._ended.get(name)

    @property
    def is_gone(self) -> bool:
        """Whether it has ended, and what it started with it."""
        return self._gone

    def wait_ended(self, name: str, timeout_s: float | None = None) -> Ended | None:
        """Waits until a process has ended by itself; None when that took longer than `timeout_s`."""
        with self._changed:
            self._changed.wait_for(lambda: name in self._ended or self._gone, timeout_s)
            if name not in self._ended and self._gone:
                raise self._why_gone()
            return self._ended.get(name)

    def observe(self, *, period_s: float = 0.1, memory_period_s: float = 5.0) -> None:
        """Starts sampling; every sample goes to `on_sample`, on the reader's thread."""
        self._ask("observe", period_s=period_s, memory_period_s=memory_period_s)

    def unobserve(self) -> None:
        """Ends sampling."""
        self._ask("unobserve")

    def sample(self) -> Sample:
        """One reading now, with memory."""
        return Sample.model_validate(self._ask("sample"))

    def capabilities(self) -> Capabilities:
        """What this machine lets the host do, found out by doing it."""
        answer = self._ask("capabilities")
        return Capabilities(**{field.name: Ability(**answer[field.name]) for field in fields(Capabilities)})

    def run(
        self,
        name: str,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        log: Path,
        cpus: Sequence[int] = (),
        user: User | None = None,
    ) -> Ended:
        """Runs a command to its end, which also comes when weir dies."""
        self.start(name, argv, tier="build", cwd=cwd, env=env, log=log, cpus=cpus, user=user)
        ended = self.wait_ended(name)
        assert ended is not None
        return ended

    def close(self) -> None:
        """Stops everything and ends the host."""
        self._process.end(grace_s=30.0)

    def __enter__(self) -> "Host":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, command: str, *, wait_s: float = _ANSWER_S, **arguments: Any) -> Record:
        identity = next(self._ids)
        box: queue.SimpleQueue[Record | None] = queue.SimpleQueue()
        with self._lock:
            if self._gone:
                raise self._why_gone()
            self._answers[identity] = box
        self._process.write_line({"id": identity, "command": command, **arguments})
        try:
            answer = box.get(timeout=wait_s)
        except queue.Empty:
            raise HostGoneError(f"weir-engine host: no answer to {command!r} within {wait_s:g} s") from None
        finally:
            with self._lock:
                self._answers.pop(identity, None)
        if answer is None:
            raise self._why_gone()
        if answer["record"] == "error":
            raise TargetError(str(answer.get("message")), hint=str(answer.get("hint") or ""))
        return answer

    def _take(self, record: Record) -> None:
        if "id" in record:
            with self._lock:
                box = self._answers.get(record["id"])
            if box is not None:
                box.put(record)
            return
        match record.get("record"):
            case "hello":
                self._hello.put(record)
            case "exited":
                ended = _ended(record)
                with self._changed:
                    self._ended[ended.name] = ended
                    self._changed.notify_all()
                self.on_exit(ended)
            case "sample":
                self.on_sample(Sample.model_validate(record))

    def _stream_ended(self) -> None:
        with self._lock:
            self._gone = True
            for box in self._answers.values():
                box.put(None)
        self._hello.put(None)
        with self._changed:
            self._changed.notify_all()
        self.on_gone()

    def _why_gone(self) -> WeirError:
        failure = self._process.failure
        if isinstance(failure, GeneratorError):
            # The machine that it was on is gone, as its agent says.
            return HostGoneError(failure.message, hint=failure.hint)
        if isinstance(failure, WeirError):
            # Of whoever takes the samples: the disk is full, and not the host gone.
            return failure
        if failure is not None:
            return HostGoneError(f"weir-engine host: {failure}")
        self._process.wait(_ANSWER_S)
        error = self._process.error()
        return HostGoneError(error.message, hint=error.hint)


def _ended(record: Record) -> Ended:
    return Ended(
        name=record["name"],
        exit_code=record.get("exit_code"),
        signal=record.get("signal"),
        killed=bool(record.get("killed", False)),
        cpu_user_s=record["cpu_user_s"],
        cpu_system_s=record["cpu_system_s"],
        peak_rss_bytes=record["peak_rss_bytes"],
        oom_kills=record.get("oom_kills"),
        left_behind=tuple(record.get("left_behind") or ()),
        written=tuple(record.get("written") or ()),
    )
