"""A process per connection."""

import multiprocessing
import sys

from answering import answer, listening_socket

forking = multiprocessing.get_context("fork")

with listening_socket() as listener:
    while True:
        connection, _ = listener.accept()
        # The child has a copy of the socket. The connection ends when both copies are closed.
        with connection:
            try:
                # Each start reaps the ended children, so at most the last few stay zombies.
                forking.Process(target=answer, args=(connection,)).start()
            except OSError as error:
                print(f"a client was turned away: {error}", file=sys.stderr)
