"""What a worker and its parent say to one another over a socket: values of Python's built-in types, each with its length before it.

`marshal` and not JSON: most of what is sent are buckets of histograms, whose keys are numbers, and both ends are the same Python.
"""

import marshal
import struct
from collections.abc import Iterator
from socket import socket
from typing import Any

_LENGTH = struct.Struct(">I")
Message = tuple[Any, ...]
"""A word that says what it is, and what belongs to it."""


def send(to: socket, *message: Any) -> None:
    """Sends a message.

    Raises:
        OSError: nobody is there any more.
    """
    data = marshal.dumps(message)
    to.sendall(_LENGTH.pack(len(data)) + data)


class Incoming:
    """Bytes as they come, made into messages."""

    def __init__(self) -> None:
        self._bytes = b""

    def take(self, data: bytes) -> Iterator[Message]:
        """The messages that are whole now."""
        self._bytes += data
        while len(self._bytes) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._bytes)
            end = _LENGTH.size + length
            if len(self._bytes) < end:
                return
            message: Message = marshal.loads(self._bytes[_LENGTH.size : end])
            self._bytes = self._bytes[end:]
            yield message
