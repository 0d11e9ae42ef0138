"""The request log that the engine writes: one record a request, as `docs/reference/engine.md` describes it.

Moments are nanoseconds since the start of the load, -1 where they never came.
"""

from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

REQUEST_DTYPE = np.dtype(
    [
        ("intended_ns", "<i8"),
        ("written_ns", "<i8"),
        ("first_byte_ns", "<i8"),
        ("last_byte_ns", "<i8"),
        ("connect_ns", "<i8"),
        ("received_bytes", "<u4"),
        ("body_bytes", "<u4"),
        ("sent_bytes", "<u4"),
        ("user", "<u4"),
        ("step", "<u2"),
        ("target", "<u2"),
        ("status", "<u2"),
        ("outcome", "u1"),
        ("zero", "u1"),
    ]
)
"""One record: 64 bytes."""
OUTCOMES = ("ok", "connect", "timeout", "reset", "protocol", "check", "unanswered")
"""What `outcome` numbers."""
NO_STEP = 65535
"""`step` of a request of a scenario that failed before it was known which."""


def read_requests(path: str | PathLike[str]) -> NDArray[Any]:
    """The records of a request log, in the order of the file: that in which requests ended on each load thread.

    Args:
        path: the file. Of a record that was cut off at its end, as by a load that was killed, nothing is given.

    Returns:
        An array of `REQUEST_DTYPE`, mapped from the file and not to be written to; `requests["status"]` is a column of it.

    Raises:
        OSError: it cannot be read.
    """
    with open(path, "rb") as file:
        count = file.seek(0, 2) // REQUEST_DTYPE.itemsize
        if not count:
            return np.empty(0, REQUEST_DTYPE)
        return np.memmap(file, REQUEST_DTYPE, "r", shape=(count,))
