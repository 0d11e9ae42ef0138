"""A thread per connection, and a main thread that waits for each before it accepts the next: built wrong on purpose."""

import threading

from answering import answer, listening_socket

with listening_socket() as listener:
    while True:
        connection, _ = listener.accept()
        thread = threading.Thread(target=answer, args=(connection,), daemon=True)
        thread.start()
        thread.join()
