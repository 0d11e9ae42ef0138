"""What the socket servers have in common: where they listen, what they wait for, and the answer.

Each reads a request to the end of its head, answers with a short text and closes the connection, as HTTP/1.0 does. What they differ in, how
they wait for connections and who answers them, stands in their own files. Each of their folders links to this one.
"""

import argparse
import socket

END_OF_HEAD = b"\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\nConnection: close\r\n\r\nHello, world!"
_READ_BYTES = 65536


def asked() -> argparse.Namespace:
    """What the command line says: `address`, `port` and `backlog`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--backlog", type=int, required=True, help="connections that may wait to be accepted")
    return parser.parse_args()


def listening_socket() -> socket.socket:
    """A socket that listens where the command line says."""
    where = asked()
    return socket.create_server((where.address, where.port), backlog=where.backlog)


def proceed(connection: socket.socket, head: bytearray) -> bool:
    """Takes what has come on a connection, and answers and closes it once that is a whole request.

    Args:
        connection: blocking, or known to be readable.
        head: what had come before; grows.

    Returns:
        Whether the connection is done with: answered, or left by its client.
    """
    try:
        part = connection.recv(_READ_BYTES)
        head += part
        if part and END_OF_HEAD not in head:
            return False
        if part:
            # All of it at once, from a non-blocking socket too: nothing else waits in the buffer of a connection with one answer.
            connection.send(ANSWER)
    except ConnectionError:
        pass
    connection.close()
    return True


def answer(connection: socket.socket) -> None:
    """Answers a connection to its end; blocks as long as that takes."""
    head = bytearray()
    while not proceed(connection, head):
        pass
