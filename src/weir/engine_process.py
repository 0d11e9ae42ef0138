"""A running `weir-engine`: a process whose standard output is a stream of NDJSON records.

It is started in a session of its own, so that a Ctrl-C at the terminal reaches weir alone, and it ends when its standard input closes, so
that it never outlives weir. Records are read on a thread at nice 19: what weir does with them must not take a CPU from the load.
"""

import contextlib
import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from weir.model.errors import ExitCode, TargetError, UsageError, WeirError
from weir.places import engine_binary

Record = dict[str, Any]
_READER_NICE = 19


class EngineProcess:
    """One subcommand of `weir-engine`, running.

    Args:
        arguments: the subcommand and its arguments.
        on_record: called on the reader's thread with every record. What it raises ends the reading and is kept in `failure`.
        on_end: called on the reader's thread when the stream has ended.
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
        self.name = f"weir-engine {arguments[0]}"
        self._on_record = on_record
        self._on_end = on_end
        self._fatal: Record | None = None
        self.failure: BaseException | None = None
        binary = engine_binary()
        try:
            with _bound_to(cpus):
                self._process = subprocess.Popen(
                    [str(binary), *arguments],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                )
        except OSError as error:
            raise UsageError(f"{binary}: cannot be started: {error.strerror}", hint="in a checkout: make setup") from None
        self._stderr = b""
        self._reader = threading.Thread(target=self._read, name=self.name, daemon=True)
        self._stderr_reader = threading.Thread(target=self._read_stderr, name=f"{self.name} stderr", daemon=True)
        self._reader.start()
        self._stderr_reader.start()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def write_line(self, value: Record) -> None:
        """Writes one JSON line to its standard input, and leaves that open. A process that has ended is noticed by its reader, not here."""
        stdin = self._process.stdin
        assert stdin is not None
        with contextlib.suppress(BrokenPipeError):
            stdin.write(json.dumps(value).encode() + b"\n")
            stdin.flush()

    def close_input(self) -> None:
        """Closes its standard input, which ends it."""
        stdin = self._process.stdin
        if stdin is not None and not stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                stdin.close()

    def signal(self, number: int) -> None:
        """Sends a signal to it."""
        self._process.send_signal(number)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits until its stream has ended and it is gone; False when that took longer than `timeout_s`."""
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
        """Closes its input, waits for its end, and kills it if that takes longer than `grace_s`."""
        self.close_input()
        if not self.wait(grace_s):
            self._process.kill()
            self.wait()
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    def error(self) -> WeirError:
        """Why it ended, as it said itself or as its exit status says. Call after `wait`."""
        if self._fatal is not None:
            kind = UsageError if self._fatal.get("code") == ExitCode.USAGE else TargetError
            return kind(str(self._fatal.get("message")), hint=str(self._fatal.get("hint") or ""))
        status = self._process.returncode
        how = f"by signal {-status}" if status is not None and status < 0 else f"with exit status {status}"
        said = self._stderr.decode("utf-8", "replace").strip()
        return TargetError(f"{self.name} ended unexpectedly {how}" + (f": {said[-500:]}" if said else ""))

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _READER_NICE)
        stdout = self._process.stdout
        assert stdout is not None
        try:
            for line in stdout:
                record: Record = json.loads(line)
                if record.get("record") == "error" and "id" not in record:
                    self._fatal = record
                else:
                    self._on_record(record)
        except BaseException as error:
            self.failure = error
            self.close_input()
        finally:
            self._on_end()

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
