"""Who goes first while a stack is primed: what compiles its code.

A JVM compiles what was called often, on threads of its own. On the stack's CPUs they stand in line behind all who answer, for as long as
the load lasts: with 20 connections and one CPU a Spring application was seen to answer 3,000 requests a second for half a minute, and
20,000 once its compilers had had their ten seconds of CPU. Priming is there to be through with that. So they go before everyone else of
the stack meanwhile, and nothing is measured then; the measured load finds them in line again.
"""

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

_COMPILERS = ("C1 Compiler", "C2 Compiler", "JVMCI Compiler")
"""How the threads begin to be called on which HotSpot and Graal compile. They start each other; a new one is as nice as the one before."""
_FIRST = -10


def may_go_first() -> bool:
    """Whether this process may give threads the higher priority (root may, CAP_SYS_NICE): tried on a thread that then ends."""
    allowed: list[bool] = []

    def try_it() -> None:
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _FIRST)
            allowed.append(True)

    trying = threading.Thread(target=try_it)
    trying.start()
    trying.join()
    return bool(allowed)


@contextmanager
def compilers_first(pids: Iterable[int]) -> Iterator[None]:
    """The compilers of processes and of their descendants have a higher priority while what is inside goes on.

    Where they may not (`may_go_first`) nothing changes, and a stack takes longer to get warm.
    """
    known = list(pids)
    for thread, _ in _compilers(known):
        _renice(thread, lambda: _FIRST)
    try:
        yield
    finally:
        for thread, process in _compilers(known):
            _renice(thread, partial(os.getpriority, os.PRIO_PROCESS, process))


def _renice(thread: int, niceness: Callable[[], int]) -> None:
    # It may have ended since, or weir may not.
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, thread, niceness())


def _compilers(pids: Iterable[int]) -> Iterator[tuple[int, int]]:
    """The threads, each with its process, which is its first thread."""
    for pid in pids:
        children: list[int] = []
        with suppress(OSError):
            for thread in Path(f"/proc/{pid}/task").iterdir():
                children += map(int, (thread / "children").read_text().split())
                if (thread / "comm").read_text().startswith(_COMPILERS):
                    yield int(thread.name), pid
        yield from _compilers(children)
