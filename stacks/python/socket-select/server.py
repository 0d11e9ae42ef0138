"""One process that multiplexes its connections with select."""

import select
import socket

from answering import listening_socket, proceed

# select knows only descriptors below FD_SETSIZE (1024), and the process needs some of them. Other clients wait in the
# backlog.
MOST_CONNECTIONS = 1000

heads: dict[socket.socket, bytearray] = {}

with listening_socket() as listener:
    listener.setblocking(False)
    while True:
        awaited = [*heads, listener] if len(heads) < MOST_CONNECTIONS else [*heads]
        readable, _, _ = select.select(awaited, [], [])
        for ready in readable:
            if ready is not listener:
                if proceed(ready, heads[ready]):
                    del heads[ready]
                continue
            while len(heads) < MOST_CONNECTIONS:
                try:
                    connection, _ = listener.accept()
                except BlockingIOError:
                    break
                connection.setblocking(False)
                heads[connection] = bytearray()
