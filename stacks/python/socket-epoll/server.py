"""One process that multiplexes its connections with epoll."""

import select
import socket

from answering import listening_socket, proceed

connections: dict[int, tuple[socket.socket, bytearray]] = {}

with listening_socket() as listener, select.epoll() as poll:
    listener.setblocking(False)
    poll.register(listener, select.EPOLLIN)
    while True:
        for descriptor, _ in poll.poll():
            if descriptor in connections:
                connection, head = connections[descriptor]
                if proceed(connection, head):
                    # Closing the socket has removed it from the poll.
                    del connections[descriptor]
                continue
            while True:
                try:
                    connection, _ = listener.accept()
                except BlockingIOError:
                    break
                connection.setblocking(False)
                connections[connection.fileno()] = connection, bytearray()
                poll.register(connection, select.EPOLLIN)
