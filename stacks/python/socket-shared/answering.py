"""The common code of the socket servers: the listening socket, the reading of a request, and the response.

Each server reads a request to the end of its head, sends a short text and closes the connection, as in HTTP/1.0. The
servers' own files hold the differences: how they wait for connections, and who answers. Each of their folders links to
this file.
"""

import argparse
import socket

END_OF_HEAD = b"\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\nConnection: close\r\n\r\nHello, world!"
_READ_BYTES = 65536


def asked() -> argparse.Namespace:
    """Returns `address`, `port` and `backlog` from the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--backlog", type=int, required=True, help="connections that may wait to be accepted")
    return parser.parse_args()


def listening_socket() -> socket.socket:
    """Returns a socket that listens at the address of the command line."""
    where = asked()
    return socket.create_server((where.address, where.port), backlog=where.backlog)


def proceed(connection: socket.socket, head: bytearray) -> bool:
    """Reads from a connection; after a whole request, answers and closes the connection.

    Args:
        connection: blocking, or known to be readable.
        head: the bytes that came before; grows.

    Returns:
        Whether the connection is finished: answered, or left by its client.
    """
    try:
        part = connection.recv(_READ_BYTES)
        head += part
        if part and END_OF_HEAD not in head:
            return False
        if part:
            # One call sends the whole response, also on a non-blocking socket, because the buffer of the connection is
            # empty.
            connection.send(ANSWER)
    except ConnectionError:
        pass
    connection.close()
    return True


def answer(connection: socket.socket) -> None:
    """Answers and closes a connection; blocks until the connection is closed."""
    head = bytearray()
    while not proceed(connection, head):
        pass
