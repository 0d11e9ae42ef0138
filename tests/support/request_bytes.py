"""Captures the bytes of a program's request as a server receives them."""

import re
import socket
import subprocess
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

_END_S = 200.0
_LENGTH = re.compile(rb"^content-length: *(\d+)", re.IGNORECASE | re.MULTILINE)
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"


def bytes_sent_by(command: Callable[[str], Sequence[str]], folder: Path) -> bytes:
    """Returns the last request of the program `command(ADDRESS)`, started in `folder`; `HOST` replaces the address in
    it."""
    requests: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        thread = threading.Thread(target=_serve, args=(listener, requests))
        thread.start()
        try:
            subprocess.run(command(f"127.0.0.1:{port}"), cwd=folder, capture_output=True, timeout=_END_S)
        finally:
            # This ends the server thread's `accept`.
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
    return requests[-1].replace(f"127.0.0.1:{port}".encode(), b"HOST")


def _serve(listener: socket.socket, requests: list[bytes]) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            # A connection without a request only checks whether a server listens.
            if request := _request(connection):
                requests.append(request)
                connection.sendall(_ANSWER)


def _request(connection: socket.socket) -> bytes:
    data = b""
    while chunk := connection.recv(65536):
        data += chunk
        head, end, body = data.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if end and len(body) >= int(length[1] if length else 0):
            return data
    return data
