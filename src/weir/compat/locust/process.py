"""Runs Locust with weir's plugin, and reads the plugin's lines from each process of Locust."""

import contextlib
import selectors
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from weir.compat.locust.lines import LINE, Line

PLUGIN = Path(__file__).with_name("plugin.py")
_READ_BYTES = 1 << 18
_POLL_S = 0.1
_END_S = 10.0
_FROM_KERNEL = 0x80
"""The `si_code` of signals from the terminal. The terminal also sends such signals to Locust."""


class LocustProcess:
    """A running Locust. The context manager closes all connections at its exit: each process of Locust then ends."""

    def __init__(self, python: str, arguments: Sequence[str]) -> None:
        self.is_interrupted = False
        # Not in TMPDIR: the path of a Unix socket has 107 bytes at most.
        self._folder = TemporaryDirectory(prefix="weir-", dir="/tmp")
        path = f"{self._folder.name}/socket"
        self._selector = selectors.DefaultSelector()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen(1024)
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._connections: dict[int, socket.socket] = {}
        self._unread: list[bytes] = []
        """The received bytes of an incomplete line, by the number of the process."""
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        self._signals = {number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN}
        # `_forward_signals` reads the signals. An exception from a signal handler could lose received data.
        mask = self._mask_before = signal.pthread_sigmask(signal.SIG_BLOCK, self._signals)
        self._process = subprocess.Popen(
            [python, str(PLUGIN), path, *arguments], preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        )

    def lines(self) -> Iterator[tuple[int, Line | None]]:
        """Yields the number of a process and a line from this process, until Locust has ended.

        None instead of a line means that the process has closed its connection.
        """
        while True:
            has_ended = self._process.poll() is not None
            keys = self._selector.select(0 if has_ended else _POLL_S)
            for key, _ in keys:
                if key.fileobj is self._listener:
                    self._accept()
                else:
                    yield from self._read(key.data)
            self._forward_signals()
            if has_ended and not keys:
                for number in list(self._connections):
                    self._drop(number)
                    yield number, None
                return

    @property
    def exit_code(self) -> int:
        """Locust's exit code; negative if a signal ended Locust."""
        return self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_S)
            self._process.kill()
            self._process.wait()
        for number in list(self._connections):
            self._drop(number)
        self._listener.close()
        self._selector.close()
        self._folder.cleanup()
        self._forward_signals()
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask_before)

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        connection.setblocking(False)
        number = len(self._unread)
        self._connections[number] = connection
        self._unread.append(b"")
        self._selector.register(connection, selectors.EVENT_READ, number)

    def _read(self, number: int) -> Iterator[tuple[int, Line | None]]:
        try:
            data = self._connections[number].recv(_READ_BYTES)
        except ConnectionError:
            data = b""
        if not data:
            self._drop(number)
            yield number, None
            return
        *whole, self._unread[number] = (self._unread[number] + data).split(b"\n")
        for text in whole:
            yield number, LINE.validate_json(text)

    def _drop(self, number: int) -> None:
        connection = self._connections.pop(number)
        self._selector.unregister(connection)
        connection.close()

    def _forward_signals(self) -> None:
        """Forwards to Locust each signal that only weir received."""
        while (found := signal.sigtimedwait(self._signals, 0)) is not None:
            self.is_interrupted = True
            if found.si_code != _FROM_KERNEL and self._process.poll() is None:
                self._process.send_signal(found.si_signo)
