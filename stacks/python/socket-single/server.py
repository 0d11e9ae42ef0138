"""One process that answers one connection after the other."""

from answering import answer, listening_socket

with listening_socket() as listener:
    while True:
        connection, _ = listener.accept()
        answer(connection)
