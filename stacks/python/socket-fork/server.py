"""A process per connection."""

import multiprocessing
import sys

from answering import answer, listening_socket

forking = multiprocessing.get_context("fork")

with listening_socket() as listener:
    while True:
        connection, _ = listener.accept()
        # The child has a copy; the connection ends when both are closed.
        with connection:
            try:
                # Each start takes the children that have ended, so that no more than the last few are zombies.
                forking.Process(target=answer, args=(connection,)).start()
            except OSError as error:
                print(f"a client was turned away: {error}", file=sys.stderr)
