"""The lowest priority, for weir's own threads that work during a load."""

import ctypes
import os
import platform
import struct
import threading

import pytest

from weir.priority import NICE, SLICE_NS, lower_priority

SCHED_GETATTR = {"x86_64": 315, "aarch64": 275}
FIELDS = struct.Struct("=IIQiIQQQ")


def read_attributes() -> tuple[int, int]:
    """Returns the nice value and the time slice of this thread, as Linux has them."""
    buffer = ctypes.create_string_buffer(FIELDS.size)
    ctypes.CDLL(None).syscall(SCHED_GETATTR[os.uname().machine], 0, buffer, FIELDS.size, 0)
    _, _, _, nice, _, slice_ns, _, _ = FIELDS.unpack(buffer.raw)
    return nice, slice_ns


def read_attributes_of_thread_with_lowest_priority() -> tuple[int, int]:
    found = []

    def work() -> None:
        lower_priority()
        found.append(read_attributes())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return found[0]


def test_a_thread_of_weir_gets_the_lowest_priority_and_other_threads_keep_theirs() -> None:
    before = read_attributes()
    assert read_attributes_of_thread_with_lowest_priority()[0] == NICE
    assert read_attributes() == before


@pytest.mark.skipif(tuple(map(int, platform.release().split(".")[:2])) < (6, 12), reason="needs Linux 6.12 or later")
def test_the_time_slice_of_a_thread_with_the_lowest_priority_is_short() -> None:
    assert read_attributes_of_thread_with_lowest_priority() == (NICE, SLICE_NS)
