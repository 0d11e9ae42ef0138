"""Runs `weir-engine` as a process that writes NDJSON records to its standard output.

The engine ends when its standard input closes, so the engine never outlives weir. A reader thread reads the records.
After the first record, the reader thread runs at nice 19 and leaves the CPU to the load.
"""

import contextlib
import json
import os
import subprocess
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Self

from weir.model.errors import ExitCode, TargetError, UsageError, WeirError
from weir.paths import find_engine_binary
from weir.priority import lower_priority

Record = dict[str, Any]


class Closing(ABC):
    """Base class of context managers that call `close` at the end of a `with` block."""

    @abstractmethod
    def close(self) -> None:
        """Ends all processes that this object has started."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Engine(ABC):
    """A running subcommand of `weir-engine` on any machine. The engine reads JSON lines and writes records. A reader
    thread calls `on_record` with every record, and `on_end` after the last record. If `on_record` raises an exception,
    the reader thread stores the exception in `failure` and stops reading."""

    pid: int
    """The engine's process id on the machine that runs the engine."""

    def __init__(self, name: str, on_record: Callable[[Record], None], on_end: Callable[[], None]) -> None:
        self.name = f"weir-engine {name}"
        self.failure: BaseException | None = None
        self._on_record = on_record
        self._on_end = on_end
        self.error_record: Record | None = None
        """The error that the engine has reported. None: the engine has reported no error."""

    @abstractmethod
    def write_line(self, value: Record) -> None:
        """Writes one JSON line to the engine's standard input. Does nothing if the engine has ended."""

    @abstractmethod
    def close_input(self) -> None:
        """Closes the engine's standard input, so that the engine ends."""

    @abstractmethod
    def signal(self, number: int) -> None:
        """Sends a signal to the engine's process."""

    @abstractmethod
    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits until the engine has ended and all records are read. Returns False after `timeout_s` seconds."""

    @abstractmethod
    def end(self, grace_s: float = 10.0) -> None:
        """Closes the engine's standard input, and waits for the engine's end. Kills the engine after `grace_s`."""

    @abstractmethod
    def _ending(self) -> tuple[int | None, bytes]:
        """Returns the engine's exit status and standard error. After a kill (signal 9), the exit status is -9."""

    def error(self) -> WeirError:
        """Returns an error with the reason of the engine's end. Call `wait` first."""
        if self.error_record is not None:
            kind = UsageError if self.error_record.get("code") == ExitCode.USAGE else TargetError
            return kind(str(self.error_record.get("message")), hint=str(self.error_record.get("hint") or ""))
        status, errors = self._ending()
        how = f"by signal {-status}" if status is not None and status < 0 else f"with exit status {status}"
        text = errors.decode("utf-8", "replace").strip()
        return TargetError(f"{self.name} ended unexpectedly {how}" + (f": {text[-500:]}" if text else ""))

    def _read_lines(self, lines: Iterable[bytes]) -> None:
        """Passes each record to `on_record`, until the engine writes no more records. Runs on the reader thread."""
        is_first = True
        try:
            for line in lines:
                record: Record = json.loads(line)
                if record.get("record") == "error" and "id" not in record:
                    self.error_record = record
                else:
                    self._on_record(record)
                if is_first:
                    is_first = False
                    lower_priority()
        except BaseException as error:
            self.failure = error
            self.close_input()
        finally:
            self._on_end()


StartEngine = Callable[..., Engine]
"""Starts a subcommand of `weir-engine`, on this machine (`EngineProcess`) or on another machine. Parameters: a list of
the subcommand and its arguments, `on_record` and `on_end`."""


class EngineProcess(Engine):
    """A running subcommand of `weir-engine` on this machine. `cpus`: CPUs of the engine; empty: the caller's CPUs."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        on_record: Callable[[Record], None],
        on_end: Callable[[], None] = lambda: None,
        cpus: Sequence[int] = (),
    ) -> None:
        super().__init__(arguments[0], on_record, on_end)
        binary = find_engine_binary()
        leads_session = arguments[0] == "host"
        try:
            with pin_to_cpus(cpus):
                self._process = subprocess.Popen(
                    [str(binary), *arguments],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    # Ctrl-C at the terminal must reach only weir, not the engine. A generator stays in weir's session:
                    # if the kernel groups CPU time by session ("autogroup"), niceness counts only within a session. The
                    # host has its own session, and sets that session's niceness.
                    start_new_session=leads_session,
                    process_group=-1 if leads_session else 0,
                )
        except OSError as error:
            message = f"{binary}: cannot be started: {error.strerror}"
            raise UsageError(message, hint="in a checkout of weir, run: make setup") from None
        self.pid = self._process.pid
        self._stderr = b""
        lines = self._process.stdout
        self._reader = threading.Thread(target=self._read_lines, args=(lines,), name=self.name, daemon=True)
        self._stderr_reader = threading.Thread(target=self._read_stderr, name=f"{self.name} stderr", daemon=True)
        self._reader.start()
        self._stderr_reader.start()

    def write_line(self, value: Record) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        with contextlib.suppress(BrokenPipeError):
            stdin.write(json.dumps(value).encode() + b"\n")
            stdin.flush()

    def close_input(self) -> None:
        stdin = self._process.stdin
        if stdin is not None and not stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                stdin.close()

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def wait(self, timeout_s: float | None = None) -> bool:
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
def pin_to_cpus(cpus: Sequence[int]) -> Iterator[None]:
    """Binds the calling thread, and all threads and processes that it starts, to `cpus`. Empty: changes nothing."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus or before)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
