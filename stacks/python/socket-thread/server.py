"""A thread per connection."""

import sys
import threading

from answering import answer, listening_socket

with listening_socket() as listener:
    while True:
        connection, _ = listener.accept()
        try:
            # Daemons, so that a client who keeps its connection open does not keep the server from ending.
            threading.Thread(target=answer, args=(connection,), daemon=True).start()
        except RuntimeError as error:
            print(f"a client was turned away: {error}", file=sys.stderr)
            connection.close()
