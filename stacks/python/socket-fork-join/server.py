"""Starts a process per connection and waits for it before the next connection: built wrong on purpose."""

import multiprocessing

from answering import answer, listening_socket

forking = multiprocessing.get_context("fork")

with listening_socket() as listener:
    while True:
        connection, _ = listener.accept()
        with connection:
            child = forking.Process(target=answer, args=(connection,))
            child.start()
        child.join()
