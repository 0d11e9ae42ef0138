"""The end of a log file, which somebody is still writing."""

import os
from pathlib import Path

TAIL_BYTES = 16_384


def tail(path: Path, most_bytes: int = TAIL_BYTES) -> str:
    """The last lines of a file; empty where it is not there yet. What is not UTF-8 becomes question marks in diamonds."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - most_bytes))
            data = file.read(most_bytes)
    except OSError:
        return ""
    if size > most_bytes:
        # The first of these lines is most likely half of one.
        data = data.partition(b"\n")[2]
    return data.decode("utf-8", "replace")
