"""Starts a thread per connection and waits for it before the next connection: built wrong on purpose."""

import threading

from answering import answer, listening_socket

with listening_socket() as listener:
    while True:
        connection, _ = listener.accept()
        thread = threading.Thread(target=answer, args=(connection,), daemon=True)
        thread.start()
        thread.join()
