"""Raises the priority of a JVM's compiler threads during the warm-up.

A JVM compiles frequent methods on separate threads. On the stack's CPUs, these compiler threads wait behind all threads
that serve requests. With 20 connections and one CPU, a Spring application served 3,000 requests/s for half a minute.
After ten seconds of CPU time for the compilers, the application served 20,000 requests/s. So weir runs the compilers
first during the warm-up, and gives them normal priority under the measured load.
"""

import os
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

_COMPILERS = ("C1 Compiler", "C2 Compiler", "JVMCI Compiler")
"""Name prefixes of HotSpot and Graal compiler threads. A new compiler thread inherits the niceness of its creator."""
_FIRST = -10


def can_raise_priority() -> bool:
    """Tries to raise the priority of a new thread, and returns whether this process may do so (CAP_SYS_NICE)."""
    with ThreadPoolExecutor(1) as pool:
        trying = pool.submit(lambda: os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _FIRST))
        return trying.exception() is None


@contextmanager
def prioritize_jit_threads(pids: Iterable[int]) -> Iterator[None]:
    """Context manager: raises the priority of the compiler threads of processes and their descendants. Does nothing
    without the right to do so (`can_raise_priority`); a stack then takes longer to warm up."""
    known = list(pids)
    # A thread may have ended, or weir lacks the right.
    for thread, _ in _find_jit_threads(known):
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, thread, _FIRST)
    try:
        yield
    finally:
        for thread, process in _find_jit_threads(known):
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, process))


def _find_jit_threads(pids: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yields (thread id, process id) for each compiler thread of these processes and their descendants."""
    for pid in pids:
        children: list[int] = []
        with suppress(OSError):
            for thread in Path(f"/proc/{pid}/task").iterdir():
                # A thread that has ended does not hide those after it.
                with suppress(OSError):
                    children += map(int, (thread / "children").read_text().split())
                    if (thread / "comm").read_text().startswith(_COMPILERS):
                        yield int(thread.name), pid
        yield from _find_jit_threads(children)
