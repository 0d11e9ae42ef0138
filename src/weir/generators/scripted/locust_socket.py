"""The Unix socket on which weir receives the records of all processes of Locust."""

import json
import selectors
import socket
import struct
from collections.abc import Iterator
from itertools import accumulate, pairwise
from tempfile import TemporaryDirectory

from weir.generators.scripted.lines import LINE, Line

_READ_BYTES = 1 << 18
_SIZES = struct.Struct("=3I")
"""The sizes of the parts of a record: JSON, `News.requests` and `News.begun`. The parts follow the sizes."""


class LocustSocket:
    """A source of records (`process.Source`). When weir closes the connections, each process of Locust ends."""

    def __init__(self) -> None:
        # Not in TMPDIR: the path of a Unix socket has 107 bytes at most.
        self._folder = TemporaryDirectory(prefix="weir-", dir="/tmp")
        self.path = f"{self._folder.name}/socket"
        self._selector = selectors.DefaultSelector()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen(1024)
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._connections: dict[int, socket.socket] = {}
        self._unread: list[bytes] = []
        """The received bytes of an incomplete record, by the number of the process."""

    def begin(self, pid: int) -> None:
        """Does nothing: each process reports its own CPU time."""

    def read(self, timeout_s: float) -> Iterator[tuple[int, Line | None]]:
        for key, _ in self._selector.select(timeout_s):
            if key.fileobj is self._listener:
                self._accept()
            else:
                yield from self._receive(key.data)

    def end(self) -> Iterator[tuple[int, Line | None]]:
        for number in list(self._connections):
            self._drop(number)
            yield number, None

    def close(self) -> None:
        for number in list(self._connections):
            self._drop(number)
        self._listener.close()
        self._selector.close()
        self._folder.cleanup()

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        connection.setblocking(False)
        number = len(self._unread)
        self._connections[number] = connection
        self._unread.append(b"")
        self._selector.register(connection, selectors.EVENT_READ, number)

    def _receive(self, number: int) -> Iterator[tuple[int, Line | None]]:
        try:
            data = self._connections[number].recv(_READ_BYTES)
        except ConnectionError:
            data = b""
        if not data:
            self._drop(number)
            yield number, None
            return
        unread, start = self._unread[number] + data, 0
        while len(unread) >= start + _SIZES.size:
            bounds = [*accumulate(_SIZES.unpack_from(unread, start), initial=start + _SIZES.size)]
            if len(unread) < bounds[-1]:
                break
            text, requests, begun = (unread[first:after] for first, after in pairwise(bounds))
            start = bounds[-1]
            yield number, LINE.validate_python({"requests": requests, "begun": begun, **json.loads(text)})
        self._unread[number] = unread[start:]

    def _drop(self, number: int) -> None:
        connection = self._connections.pop(number)
        self._selector.unregister(connection)
        connection.close()
