"""Much work on one run file: on all CPUs that this process may use, and without looking for garbage meanwhile.

Several processes only where there is much of it: a worker is a copy of this process (fork), which costs something, and is safe while no
other thread runs. Whatever works alone otherwise gives the same.
"""

import gc
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from weir.store import RunReader

Part = TypeVar("Part")
Result = TypeVar("Result")
Given = ParamSpec("Given")

FEWEST_TRIALS = 200
"""With fewer of them there is little to gain."""

_work: Callable[[int], Any] | None = None
"""Of a worker: what it gives for the part of a number."""


def for_each(reader: RunReader, parts: Sequence[Part], function: Callable[[RunReader, Part], Result]) -> list[Result]:
    """What `function` gives for each part, in their order.

    Args:
        reader: the run, opened; `function` may get another one of the same file.
        parts: what there is to do.
        function: must give something that can be pickled.
    """
    workers = min(len(os.sched_getaffinity(0)), len(parts))
    if workers < 2 or threading.active_count() > 1 or len(reader.trials()) < FEWEST_TRIALS:
        return [function(reader, part) for part in parts]

    def begin() -> None:
        global _work
        # Ctrl-C is for whoever waits for them.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        # SQLite forbids to use a connection on both sides of a fork.
        own = RunReader(reader.path)

        def work(number: int) -> Result:
            return function(own, parts[number])

        _work = work

    with ProcessPoolExecutor(workers, multiprocessing.get_context("fork"), begin) as pool:
        return list(pool.map(_of_number, range(len(parts))))


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
