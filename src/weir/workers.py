"""Much work on one run file: on all CPUs that this process may use, and without looking for garbage meanwhile.

Several processes only where there is much of it: a worker is a copy of this process (fork), which costs something, and is safe while no
other thread runs, which is why no pool with a thread of its own is used. Whatever works alone otherwise gives the same. What a page or the
findings need besides is made meanwhile.
"""

import ctypes
import gc
import multiprocessing
import os
import signal
import struct
import threading
from collections.abc import Callable, Sequence
from functools import wraps
from multiprocessing.connection import Connection
from typing import ParamSpec, TypeVar

from weir.model.errors import WeirError
from weir.store import RunReader

Part = TypeVar("Part")
Result = TypeVar("Result")
Given = ParamSpec("Given")

FEWEST_TRIALS = 200
"""With fewer of them there is little to gain."""
_NUMBER = struct.Struct("=Q")
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""Of malloc.h."""


def for_each(reader: RunReader, parts: Sequence[Part], function: Callable[[RunReader, Part], Result]) -> Callable[[], list[Result]]:
    """Begin with `function` of each part. The caller goes on with work of its own, until it asks what is returned here for the results.

    Args:
        reader: the run, opened; `function` may get another one of the same file.
        parts: what there is to do.
        function: must give something that can be pickled.

    Returns:
        What waits for the results and gives them, in the order of the parts; to be called once. It raises what `function` raised, and
        WeirError where a worker was ended from outside. Whoever does not call it leaves nothing behind: workers end with this process.
    """
    workers = min(len(os.sched_getaffinity(0)), len(parts))
    if workers < 2 or threading.active_count() > 1 or len(reader.trials()) < FEWEST_TRIALS:
        return lambda: [function(reader, part) for part in parts]
    _keep_freed_memory()
    context = multiprocessing.get_context("fork")
    # A file whose place for reading all workers share: who reads a number has it for itself, and who is slower takes fewer.
    numbers = os.memfd_create("parts")
    os.write(numbers, b"".join(map(_NUMBER.pack, range(len(parts)))))
    os.lseek(numbers, 0, os.SEEK_SET)
    begun = []
    for _ in range(workers):
        receiving, sending = context.Pipe(duplex=False)

        def work(receiving: Connection = receiving, sending: Connection = sending) -> None:
            # Where the process that asked for it is gone, what is sent must fail rather than wait.
            receiving.close()
            # Ctrl-C is for whoever waits for them.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            done: dict[int, Result] | Exception
            try:
                # SQLite forbids to use a connection on both sides of a fork.
                with RunReader(reader.path) as own:
                    taken = iter(lambda: os.read(numbers, _NUMBER.size), b"")
                    done = {number: function(own, parts[number]) for (number,) in map(_NUMBER.unpack, taken)}
            except Exception as error:
                done = error
            # All at once: one by one they would fill the pipe, and wait for somebody who does not ask yet.
            sending.send(done)

        process = context.Process(target=work, daemon=True)
        process.start()
        sending.close()
        begun.append((process, receiving))
    os.close(numbers)

    def results() -> list[Result]:
        found: dict[int, Result] = {}
        for process, receiving in begun:
            with receiving:
                try:
                    done = receiving.recv()
                # The latter where it was killed while it sent.
                except (EOFError, OSError) as error:
                    raise WeirError(
                        f"{reader.path}: a process that worked on it was killed, expected it to end by itself",
                        hint="see whether the machine ran out of memory (dmesg), then ask again: the run file is as it was",
                    ) from error
            process.join()
            if isinstance(done, Exception):
                raise done
            found |= done
        return [found[number] for number in range(len(parts))]

    return results


def uncollected(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """The function without the search for cycles of garbage while it runs: the rows of a thousand trials have none, and are many."""

    @wraps(function)
    def called(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            return function(*args, **kwargs)
        finally:
            if was_enabled:
                gc.enable()

    return called


def _keep_freed_memory() -> None:
    """Give the kernel nothing back: what is freed after one part is wanted for the next, and new memory costs a fault for each page."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    # Not every C library has it, and some have it and do nothing.
    if mallopt is not None:
        mallopt(_M_TRIM_THRESHOLD, 1 << 30)
        mallopt(_M_MMAP_THRESHOLD, 1 << 25)
