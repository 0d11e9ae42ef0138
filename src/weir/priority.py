"""The lowest priority, for weir's own threads that work during a load."""

import contextlib
import ctypes
import os
import struct
import threading

NICE = 19
SLICE_NS = 100_000
"""The shortest time slice that Linux accepts."""
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
"""The number of the system call `sched_setattr`, by processor."""


def lower_priority() -> None:
    """Gives the calling thread the lowest priority and a short time slice. Without permission, nothing changes."""
    thread = threading.get_native_id()
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, thread, NICE)
    # Linux lets a thread finish its slice, 1.4 ms on two CPUs, even if the load waits for this CPU. Before version
    # 6.12, Linux ignores the slice.
    if number := _SCHED_SETATTR.get(os.uname().machine):
        fields = struct.Struct("=IIQiIQQQ")
        policy, flags, realtime_priority, deadline, period = os.SCHED_OTHER, 0, 0, 0, 0
        attributes = fields.pack(fields.size, policy, flags, NICE, realtime_priority, SLICE_NS, deadline, period)
        ctypes.CDLL(None).syscall(number, thread, attributes, 0)
