"""Computes results from one run file in parallel, on all CPUs of this process. Workers are forks of this process. Only
large runs use workers, because a fork costs time. A fork is safe only without other threads. So this module uses no
pool: pools have threads."""

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
Parameters = ParamSpec("Parameters")

MIN_TRIALS = 200
"""Minimum number of trials in a run file for workers. With fewer trials, workers save no time."""
_NUMBER = struct.Struct("=Q")
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""Parameters of `mallopt`, from malloc.h."""


def start_parallel(
    reader: RunReader, parts: Sequence[Part], function: Callable[[RunReader, Part], Result]
) -> Callable[[], list[Result]]:
    """Calls `function` for each part in worker processes. Each worker opens its own reader of the same file. Results
    must be picklable. Returns a second function, which waits for the workers and returns the results in order. Call the
    second function at most once. The second function raises the exception of `function`, or WeirError if a worker was
    killed. Workers never outlive this process."""
    workers = min(len(os.sched_getaffinity(0)), len(parts))
    if workers < 2 or threading.active_count() > 1 or len(reader.trials()) < MIN_TRIALS:
        return lambda: [function(reader, part) for part in parts]
    _keep_freed_memory()
    context = multiprocessing.get_context("fork")
    # All workers share this file's read position. Each worker reads the next number, so a slow worker reads fewer.
    filled = os.memfd_create("parts")
    os.write(filled, b"".join(map(_NUMBER.pack, range(len(parts)))))
    # Linux locks the read position of a file from `open`, but not of one from `memfd_create`. Without the lock, two
    # workers can read the same number.
    numbers = os.open(f"/proc/self/fd/{filled}", os.O_RDONLY)
    os.close(filled)
    begun = []
    for _ in range(workers):
        receiving, sending = context.Pipe(duplex=False)

        def work(receiving: Connection = receiving, sending: Connection = sending) -> None:
            # After the parent's end, sending must fail instead of blocking.
            receiving.close()
            # The parent handles Ctrl-C.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            done: dict[int, Result] | Exception
            try:
                # SQLite forbids the use of a connection after a fork.
                with RunReader(reader.path) as own:
                    taken = iter(lambda: os.read(numbers, _NUMBER.size), b"")
                    done = {number: function(own, parts[number]) for (number,) in map(_NUMBER.unpack, taken)}
            except Exception as error:
                done = error
            # The worker sends all results at the end. Earlier results would fill the pipe, and block the worker.
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
                # OSError: the worker was killed while it sent the results.
                except (EOFError, OSError) as error:
                    problem = f"{reader.path}: found a killed worker process, expected all worker processes to finish"
                    advice = "check whether the machine ran out of memory (dmesg), then repeat the command"
                    raise WeirError(problem, hint=f"{advice}: the run file is unchanged") from error
            process.join()
            if isinstance(done, Exception):
                raise done
            found |= done
        return [found[number] for number in range(len(parts))]

    return results


def without_gc(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Returns `function` without garbage collection. The many rows of a large run contain no cycles."""

    @wraps(function)
    def called(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            return function(*args, **kwargs)
        finally:
            if was_enabled:
                gc.enable()

    return called


def _keep_freed_memory() -> None:
    """Makes malloc keep freed memory for later use: each new page of memory costs a page fault."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    # Not every C library has `mallopt`.
    if mallopt is not None:
        mallopt(_M_TRIM_THRESHOLD, 1 << 30)
        mallopt(_M_MMAP_THRESHOLD, 1 << 25)
