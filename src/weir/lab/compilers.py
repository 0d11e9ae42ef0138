"""Where what compiles a stack's code works while the stack is primed.

A JVM compiles what was called often, on threads of its own. On the CPUs of its stack they stand in line behind all who answer, for as long
as the load lasts: with 20 connections and one CPU a Spring application was seen to answer 3,000 requests a second for half a minute, and
20,000 once its compilers had had their ten seconds of CPU. Priming is there to be through with that. So they have the CPUs of the
generator and of weir's control meanwhile, and nothing is measured then; the measured load finds them on the stack's.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from weir.model.run import Placement

_COMPILERS = ("C1 Compiler", "C2 Compiler", "JVMCI Compiler")
"""How the threads begin to be called on which HotSpot and Graal compile. They start each other, so that a new one is bound as they are."""


@contextmanager
def compilers_aside(pids: Iterable[int], placement: Placement) -> Iterator[None]:
    """Binds the compilers of processes and of their descendants to the CPUs beside the stack's while what is inside goes on, then to the
    stack's. Nothing changes where no CPU is beside them."""
    beside = {*placement.load, *placement.control} - {*placement.stack}
    if not beside:
        yield
        return
    known = list(pids)
    _bind(known, beside)
    try:
        yield
    finally:
        _bind(known, placement.stack)


def _bind(pids: Sequence[int], cpus: Iterable[int]) -> None:
    for pid in pids:
        for thread in _threads(pid):
            # It may have ended since, or be another user's.
            with suppress(OSError):
                if (thread / "comm").read_text().startswith(_COMPILERS):
                    os.sched_setaffinity(int(thread.name), cpus)


def _threads(pid: int) -> Iterator[Path]:
    """Those of a process and of all below it, in /proc."""
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            yield thread
            for child in (thread / "children").read_text().split():
                yield from _threads(int(child))
