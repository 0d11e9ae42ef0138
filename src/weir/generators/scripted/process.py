"""Runs a tool in the foreground with its own standard streams, and yields the records of its samples."""

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Protocol

from weir.generators.scripted.lines import Line
from weir.model.errors import UsageError
from weir.priority import lower_priority

_POLL_S = 0.1
_END_S = 10.0
_FROM_KERNEL = 0x80
"""The `si_code` of signals from the terminal. The terminal also sends such signals to the tool."""
_PR_SET_PDEATHSIG = 1


class Source(Protocol):
    """The origin of a tool's records."""

    def begin(self, pid: int) -> None:
        """Receives the process id of the tool after its start."""

    def read(self, timeout_s: float) -> Iterator[tuple[int, Line | None]]:
        """Yields the new records: the number of the process and a record. None: the process has closed its connection.
        Waits for records up to `timeout_s`."""

    def end(self) -> Iterator[tuple[int, Line | None]]:
        """Yields the last records after the end of the tool."""

    def close(self) -> None:
        """Releases files and connections."""


class NoSource:
    """The source of a command line that starts no load, such as `--version`."""

    def begin(self, pid: int) -> None:
        """Does nothing."""

    def read(self, timeout_s: float) -> Iterator[tuple[int, Line | None]]:
        time.sleep(timeout_s)
        yield from ()

    def end(self) -> Iterator[tuple[int, Line | None]]:
        yield from ()

    def close(self) -> None:
        """Does nothing."""


class ToolProcess(contextlib.AbstractContextManager["ToolProcess"]):
    """A running tool. At the end of the `with` block, the context manager ends the tool.

    `output`: a file for the output of the tool. None: the tool runs in the foreground, has weir's own streams, and
    receives the signals that weir receives. With a file, only `stop` interrupts the tool.
    """

    def __init__(
        self,
        command: Sequence[str],
        source: Source,
        *,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
        output: IO[bytes] | None = None,
        cpus: Sequence[int] = (),
    ) -> None:
        self.is_interrupted = False
        self._source = source
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if output is None else ()
        self._signals = {number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN}
        # `_forward_signals` reads the signals. An exception from a signal handler could lose received data.
        mask = self._mask_before = signal.pthread_sigmask(signal.SIG_BLOCK, self._signals)
        library = ctypes.CDLL(None)

        def prepare() -> None:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            # The kernel ends the tool if weir is killed.
            library.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
            if cpus:
                os.sched_setaffinity(0, cpus)

        streams: dict[str, Any] = {}
        if output is not None:
            streams = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": output, "start_new_session": True}
        try:
            self._process = subprocess.Popen(command, cwd=folder, env=environment, preexec_fn=prepare, **streams)
        except OSError as error:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            raise UsageError(f"{command[0]}: cannot be run: {error.strerror}") from None
        self.pid = self._process.pid
        source.begin(self.pid)

    def lines(self) -> Iterator[tuple[int, Line | None]]:
        """Yields the number of a process and a record about this process, until the tool has ended. The calling thread
        gets a low priority, so that weir takes no CPU from the tool."""
        lower_priority()
        while True:
            has_ended = self._process.poll() is not None
            found = False
            for numbered in self._source.read(0 if has_ended else _POLL_S):
                found = True
                yield numbered
            self._forward_signals()
            if has_ended and not found:
                yield from self._source.end()
                return

    def stop(self) -> None:
        """Interrupts the tool like Ctrl-C."""
        self.is_interrupted = True
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)

    @property
    def exit_code(self) -> int:
        """The tool's exit code; negative if a signal ended the tool."""
        return self._process.wait()

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_S)
            self._process.kill()
            self._process.wait()
        self._source.close()
        self._forward_signals()
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask_before)

    def _forward_signals(self) -> None:
        """Forwards to the tool each signal that only weir received."""
        while self._signals and (found := signal.sigtimedwait(self._signals, 0)) is not None:
            self.is_interrupted = True
            if found.si_code != _FROM_KERNEL and self._process.poll() is None:
                self._process.send_signal(found.si_signo)
