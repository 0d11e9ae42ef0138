"""Much work on one run file: on all CPUs that this process may use, and without looking for garbage meanwhile.

Several processes only where there is much of it: a worker is a copy of this process (fork), which costs something, and is safe while no
other thread runs. Whatever works alone otherwise gives the same. What a page or the findings need besides is made meanwhile.
"""

import gc
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from weir.model.errors import WeirError
from weir.store import RunReader

Part = TypeVar("Part")
Result = TypeVar("Result")
Given = ParamSpec("Given")

FEWEST_TRIALS = 200
"""With fewer of them there is little to gain."""

_work: Callable[[int], Any] | None = None
"""Of a worker: what it gives for the part of a number."""


def for_each(reader: RunReader, parts: Sequence[Part], function: Callable[[RunReader, Part], Result]) -> Callable[[], list[Result]]:
    """Begin with `function` of each part. The caller goes on with work of its own, until it asks what is returned here for the results.

    Args:
        reader: the run, opened; `function` may get another one of the same file.
        parts: what there is to do.
        function: must give something that can be pickled.

    Returns:
        What waits for the results and gives them, in the order of the parts; to be called once. It raises what `function` raised, and
        WeirError where a worker was ended from outside.
    """
    workers = min(len(os.sched_getaffinity(0)), len(parts))
    if workers < 2 or threading.active_count() > 1 or len(reader.trials()) < FEWEST_TRIALS:
        return lambda: [function(reader, part) for part in parts]

    def begin() -> None:
        global _work
        # Ctrl-C is for whoever waits for them.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        # SQLite forbids to use a connection on both sides of a fork.
        own = RunReader(reader.path)

        def work(number: int) -> Result:
            return function(own, parts[number])

        _work = work

    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("fork"), begin)
    found = pool.map(_of_number, range(len(parts)))

    def results() -> list[Result]:
        try:
            with pool:
                return list(found)
        except BrokenProcessPool as error:
            raise WeirError(
                f"{reader.path}: a process that worked on it was killed, expected it to end by itself",
                hint="see whether the machine ran out of memory (dmesg), then ask again: the run file is as it was",
            ) from error

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


def _of_number(number: int) -> Any:
    assert _work is not None
    return _work(number)
