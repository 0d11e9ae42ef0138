"""A thread per connection."""

import sys
import threading

from answering import answer, listening_socket

with listening_socket() as listener:
    while True:
        connection, _ = listener.accept()
        try:
            # Daemon threads do not keep the server from ending while a client keeps its connection open.
            threading.Thread(target=answer, args=(connection,), daemon=True).start()
        except RuntimeError as error:
            print(f"a client was turned away: {error}", file=sys.stderr)
            connection.close()
