"""Starts, samples and stops the processes of a trial through `weir-engine host`. All processes of a `Host` end when the
`Host` is closed, or when this Python process ends."""

import itertools
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from weir.engine_process import Closing, EngineProcess, Record, StartEngine
from weir.model.errors import ExitCode, GeneratorError, TargetError, WeirError
from weir.model.observer_records import Sample
from weir.model.records import convert
from weir.model.run_types import Limits, Network

_ANSWER_S = 60.0
"""Maximum time for a reply of the host, in seconds. `stop` adds the grace period."""


class HostGoneError(WeirError):
    """Raised after the end of the host and all its processes. This error ends the run. A stack's failure does not."""

    exit_code = ExitCode.TARGET


@dataclass(frozen=True, slots=True)
class User:
    """User id and group id. A process of this user has no other groups."""

    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class Started:
    """A process that the host has started."""

    pid: int
    address: str
    """The process's IP address: loopback, or an address in the process's own network."""


@dataclass(frozen=True, slots=True)
class Ability:
    """Whether the host can provide one feature on its machine."""

    possible: bool
    detail: str
    """How the host provides the feature, or the reason why it cannot."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Whether the host can provide each optional feature on its machine."""

    limits: Ability
    network: Ability
    port_translation: Ability
    """Whether the host can publish a port under another number (`Network.published_port`)."""
    netem: Ability
    """Whether the host can delay and drop packets (`Network.delay_ms`, `Network.loss`)."""


@dataclass(frozen=True, slots=True)
class Ended:
    """Exit status, CPU time and other facts about a process that has ended. CPU times include all descendants."""

    name: str
    exit_code: int | None
    signal: int | None
    killed: bool
    cpu_user_s: float
    cpu_system_s: float
    peak_rss_bytes: int
    oom_kills: int | None = None
    """Number of processes that the kernel killed at the memory limit. None: the process had no memory limit."""
    left_behind: tuple[str, ...] = ()
    """Names of descendants that still ran after SIGTERM. The host then killed these descendants."""
    written: tuple[str, ...] = ()
    """Files that the process wrote outside its folder and did not remove. Empty without `watch_writes`."""

    @property
    def how(self) -> str:
        how = f"by signal {self.signal}" if self.signal is not None else f"with exit status {self.exit_code}"
        return f"{how}, {self.out_of_memory}" if self.out_of_memory else how

    @property
    def out_of_memory(self) -> str:
        """Returns a text about kills by the kernel at the memory limit. Empty without kills."""
        if not self.oom_kills:
            return ""
        processes = "process" if self.oom_kills == 1 else "processes"
        return f"after the kernel had killed {self.oom_kills} {processes} at the memory limit"


class Host(Closing):
    """A running `weir-engine host`. `start_engine` starts the host on this or another machine. All paths and CPUs are
    those of that machine. Raises UsageError if the engine is missing, and HostGoneError if the host does not start.
    Methods raise HostGoneError after the host's end."""

    def __init__(self, start_engine: StartEngine = EngineProcess) -> None:
        self._answers: dict[int, queue.SimpleQueue[Record | None]] = {}
        self._ids = itertools.count(1)
        self._lock = threading.Lock()
        self._hello: queue.SimpleQueue[Record | None] = queue.SimpleQueue()
        self._ended: dict[str, Ended] = {}
        self._changed = threading.Condition()
        self.is_gone = False
        """Whether the host and all its processes have ended."""
        self.on_sample: Callable[[Sample], None] = lambda _: None
        self.on_exit: Callable[[Ended], None] = lambda _: None
        self.on_gone: Callable[[], None] = lambda: None
        """Function that the reader thread calls at the end of the host or of its machine."""
        self._process = start_engine(["host"], on_record=self._take, on_end=self._stream_ended)
        self.pid = self._process.pid
        hello = self._hello.get()
        if hello is None:
            raise self._why_gone()
        self.isolation: str = hello["isolation"]
        self.isolation_detail: str = hello["isolation_detail"]

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
        """Starts a process. Raises TargetError if the start fails.

        Args:
            name: name of the process, unique until the process has ended.
            tier: name of the tier to which samples assign the process.
            env: all environment variables of the process.
            log: file to which the host appends the output of the process.
            cpus: CPUs of the process and its descendants. Empty: all CPUs.
            user: user of the process. None: weir's user. Any other user needs root.
            network: the process's own network. None: the process has no own network, and listens on loopback.
            watch_writes: whether `Ended.written` lists files outside `cwd` and the log's folder. Needs root.
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
            watch_writes=watch_writes,
            user=user and asdict(user),
            limits=limits and asdict(limits),
            network=network and asdict(network),
        )
        return Started(int(answer["pid"]), answer["address"] or "127.0.0.1")

    def stop(self, name: str, *, grace_s: float = 5.0) -> Ended:
        """Stops a process and its descendants with SIGTERM, and after `grace_s` seconds with SIGKILL."""
        return _parse_end(self._ask("stop", name=name, grace_s=grace_s, wait_s=_ANSWER_S + grace_s))

    def ended(self, name: str) -> Ended | None:
        """Returns the `Ended` of a process that ended without `stop`. None while the process runs."""
        with self._changed:
            return self._ended.get(name)

    def wait_ended(self, name: str, timeout_s: float | None = None) -> Ended | None:
        """Waits until a process ends without `stop`. Returns None if the process still runs after the timeout."""
        with self._changed:
            self._changed.wait_for(lambda: name in self._ended or self.is_gone, timeout_s)
            if name not in self._ended and self.is_gone:
                raise self._why_gone()
            return self._ended.get(name)

    def observe(self) -> None:
        """Starts regular sampling. The reader thread passes every sample to `on_sample`."""
        self._ask("observe", period_s=0.1, memory_period_s=5.0)

    def unobserve(self) -> None:
        self._ask("unobserve")

    def sample(self) -> Sample:
        """Takes one sample with all memory figures, and returns this sample."""
        return Sample.from_json(self._ask("sample"))

    def capabilities(self) -> Capabilities:
        """Tries all optional features on the host's machine, and returns the results."""
        return convert(self._ask("capabilities"), Capabilities)

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
        """Runs a command and waits for its end. If weir ends, the command ends too."""
        self.start(name, argv, tier="build", cwd=cwd, env=env, log=log, cpus=cpus, user=user)
        ended = self.wait_ended(name)
        assert ended is not None
        return ended

    def close(self) -> None:
        self._process.end(grace_s=30.0)

    def _ask(self, command: str, *, wait_s: float = _ANSWER_S, **arguments: Any) -> Record:
        identity = next(self._ids)
        box: queue.SimpleQueue[Record | None] = queue.SimpleQueue()
        with self._lock:
            if self.is_gone:
                raise self._why_gone()
            self._answers[identity] = box
        self._process.write_line({"id": identity, "command": command, **arguments})
        try:
            answer = box.get(timeout=wait_s)
        except queue.Empty:
            raise HostGoneError(f"weir-engine host: no reply to {command!r} within {wait_s:g} s") from None
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
                ended = _parse_end(record)
                with self._changed:
                    self._ended[ended.name] = ended
                    self._changed.notify_all()
                self.on_exit(ended)
            case "sample":
                self.on_sample(Sample.from_json(record))

    def _stream_ended(self) -> None:
        with self._lock:
            self.is_gone = True
            for box in self._answers.values():
                box.put(None)
        self._hello.put(None)
        with self._changed:
            self._changed.notify_all()
        self.on_gone()

    def _why_gone(self) -> WeirError:
        failure = self._process.failure
        if isinstance(failure, GeneratorError):
            # The agent has reported the loss of the host's machine.
            return HostGoneError(failure.message, hint=failure.hint)
        if isinstance(failure, WeirError):
            # A function for samples failed, for example on a full disk. The host itself works.
            return failure
        if failure is not None:
            return HostGoneError(f"weir-engine host: {failure}")
        self._process.wait(_ANSWER_S)
        error = self._process.error()
        return HostGoneError(error.message, hint=error.hint)


def _parse_end(record: Record) -> Ended:
    found: dict[str, Any] = {field.name: record.get(field.name) for field in fields(Ended)}
    found |= {name: tuple(found[name] or ()) for name in ("left_behind", "written")}
    return Ended(**found | {"killed": bool(found["killed"])})
