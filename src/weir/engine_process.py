"""A running `weir-engine`: a process whose standard output is a stream of NDJSON records.

On this machine it is started in a session of its own, so that a Ctrl-C at the terminal reaches weir alone, and it ends when its standard
input closes, so that it never outlives weir. Records are read on a thread at nice 19, but for the first, which tells that it has begun:
what weir does with them must not take a CPU from the load.
"""

import contextlib
import json
import os
import subprocess
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from weir.model.errors import ExitCode, TargetError, UsageError, WeirError
from weir.places import engine_binary

Record = dict[str, Any]
_READER_NICE = 19


class Engine(ABC):
    """One subcommand of `weir-engine`, running somewhere: records come out of it, lines go into it.

    Args:
        name: the subcommand, for messages.
        on_record: called on the reader's thread with every record. What it raises ends the reading and is kept in `failure`.
        on_end: called on the reader's thread when the stream has ended.
    """

    def __init__(self, name: str, on_record: Callable[[Record], None], on_end: Callable[[], None]) -> None:
        self.name = f"weir-engine {name}"
        self.failure: BaseException | None = None
        self._on_record = on_record
        self._on_end = on_end
        self._fatal: Record | None = None

    @property
    @abstractmethod
    def pid(self) -> int:
        """Its process id, where it runs."""

    @abstractmethod
    def write_line(self, value: Record) -> None:
        """Writes one JSON line to its standard input, and leaves that open. A process that has ended is noticed by its reader, not here."""

    @abstractmethod
    def close_input(self) -> None:
        """Closes its standard input, which ends it."""

    @abstractmethod
    def signal(self, number: int) -> None:
        """Sends a signal to it."""

    @abstractmethod
    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits until its stream has ended and it is gone; False when that took longer than `timeout_s`."""

    @abstractmethod
    def end(self, grace_s: float = 10.0) -> None:
        """Closes its input, waits for its end, and kills it if that takes longer than `grace_s`."""

    @abstractmethod
    def _ending(self) -> tuple[int | None, bytes]:
        """Its exit status, negative if a signal ended it, and what it wrote to standard error."""

    @property
    def has_said_why(self) -> bool:
        """Whether it said itself why it ended."""
        return self._fatal is not None

    def error(self) -> WeirError:
        """Why it ended, as it said itself or as its exit status says. Call after `wait`."""
        if self._fatal is not None:
            kind = UsageError if self._fatal.get("code") == ExitCode.USAGE else TargetError
            return kind(str(self._fatal.get("message")), hint=str(self._fatal.get("hint") or ""))
        status, errors = self._ending()
        how = f"by signal {-status}" if status is not None and status < 0 else f"with exit status {status}"
        said = errors.decode("utf-8", "replace").strip()
        return TargetError(f"{self.name} ended unexpectedly {how}" + (f": {said[-500:]}" if said else ""))

    def _read_lines(self, lines: Iterable[bytes]) -> None:
        """The life of the reader's thread."""
        is_first = True
        try:
            for line in lines:
                record: Record = json.loads(line)
                if record.get("record") == "error" and "id" not in record:
                    self._fatal = record
                else:
                    self._on_record(record)
                if is_first:
                    is_first = False
                    with contextlib.suppress(OSError):
                        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _READER_NICE)
        except BaseException as error:
            self.failure = error
            self.close_input()
        finally:
            self._on_end()


class StartEngine(Protocol):
    """Starts a subcommand of `weir-engine`, on this machine (`EngineProcess`) or on another."""

    def __call__(self, arguments: Sequence[str], *, on_record: Callable[[Record], None], on_end: Callable[[], None]) -> Engine:
        """The arguments begin with the subcommand; see `Engine` for the rest."""
        ...


class EngineProcess(Engine):
    """One subcommand of `weir-engine`, running on this machine.

    Args:
        arguments: the subcommand and its arguments.
        on_record: as of `Engine`.
        on_end: as of `Engine`.
        cpus: CPUs that it is bound to; empty: those of this thread.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        on_record: Callable[[Record], None],
        on_end: Callable[[], None] = lambda: None,
        cpus: Sequence[int] = (),
    ) -> None:
        super().__init__(arguments[0], on_record, on_end)
        binary = engine_binary()
        leads_session = arguments[0] == "host"
        try:
            with _bound_to(cpus):
                self._process = subprocess.Popen(
                    [str(binary), *arguments],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    # Neither gets the terminal's signals. A generator stays in weir's session: where the kernel groups CPU time by
                    # session ("autogroup"), weir's threads are nicer than it only there. The host makes its own session as nice as they.
                    start_new_session=leads_session,
                    process_group=-1 if leads_session else 0,
                )
        except OSError as error:
            raise UsageError(f"{binary}: cannot be started: {error.strerror}", hint="in a checkout: make setup") from None
        assert self._process.stdout is not None
        self._stderr = b""
        self._reader = threading.Thread(target=self._read_lines, args=(self._process.stdout,), name=self.name, daemon=True)
        self._stderr_reader = threading.Thread(target=self._read_stderr, name=f"{self.name} stderr", daemon=True)
        self._reader.start()
        self._stderr_reader.start()

    @property
    def pid(self) -> int:
        """As `Engine`."""
        return self._process.pid

    def write_line(self, value: Record) -> None:
        """As `Engine`."""
        stdin = self._process.stdin
        assert stdin is not None
        with contextlib.suppress(BrokenPipeError):
            stdin.write(json.dumps(value).encode() + b"\n")
            stdin.flush()

    def close_input(self) -> None:
        """As `Engine`."""
        stdin = self._process.stdin
        if stdin is not None and not stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                stdin.close()

    def signal(self, number: int) -> None:
        """As `Engine`."""
        self._process.send_signal(number)

    def wait(self, timeout_s: float | None = None) -> bool:
        """As `Engine`."""
        self._reader.join(timeout_s)
        if self._reader.is_alive():
            return False
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        self._stderr_reader.join()
        return True

    def end(self, grace_s: float = 10.0) -> None:
        """As `Engine`."""
        self.close_input()
        if not self.wait(grace_s):
            self._process.kill()
            self.wait()
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    def _ending(self) -> tuple[int | None, bytes]:
        return self._process.returncode, self._stderr

    def _read_stderr(self) -> None:
        stderr = self._process.stderr
        assert stderr is not None
        self._stderr = stderr.read()


@contextlib.contextmanager
def _bound_to(cpus: Sequence[int]) -> Iterator[None]:
    """Binds this thread for as long as it takes to start a process, which inherits that."""
    if not cpus:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
