"""Reads the engine's request log, which has one record per request (`docs/reference/engine.md`). Times are nanoseconds
since the start of the load. The time -1 means that the event did not happen."""

from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

REQUEST_DTYPE = np.dtype([
    ("intended_ns", "<i8"), ("written_ns", "<i8"), ("first_byte_ns", "<i8"), ("last_byte_ns", "<i8"),
    ("connect_ns", "<i8"), ("received_bytes", "<u4"), ("body_bytes", "<u4"), ("sent_bytes", "<u4"), ("user", "<u4"),
    ("step", "<u2"), ("target", "<u2"), ("status", "<u2"), ("outcome", "u1"), ("zero", "u1"),
])  # fmt: skip
"""The format of one record of 64 bytes."""
OUTCOMES = ("ok", "connect", "timeout", "reset", "protocol", "check", "unanswered")
"""Names of the outcomes. The field `outcome` of a record is an index into these names."""
NO_STEP = 65535
"""Value of `step` if a scenario's request failed before the engine had chosen a step."""


def read_requests(path: str | PathLike[str]) -> NDArray[Any]:
    """Returns the records of a request log in file order. A load thread wrote each record when its request ended. The
    array is read-only and mapped from the file: `requests["status"]` is a column. If the process was killed, the array
    lacks an incomplete last record. Raises OSError for an unreadable file."""
    with open(path, "rb") as file:
        count = file.seek(0, 2) // REQUEST_DTYPE.itemsize
        if not count:
            return np.empty(0, REQUEST_DTYPE)
        return np.memmap(file, REQUEST_DTYPE, "r", shape=(count,))
