"""Which users a worker has, and when they come and go.

All workers count all users, and each has every n-th of them, so that nobody has to tell them who is next.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import gevent

from weir.compat.locust import clock as clocks
from weir.compat.locust.api.task import logger, trace_of
from weir.compat.locust.clock import Clock

_SECOND_NS = 1_000_000_000


def classes_in_order(classes: Sequence[Any]) -> Iterator[Any]:
    """The class of each user, from the first on: those with a fixed count first, then by weight, at every moment as evenly as it goes.

    It ends where all classes have a fixed count.
    """
    for one in classes:
        for _ in range(one.fixed_count):
            yield one
    weights = {one: float(one.weight) for one in classes if not one.fixed_count and one.weight > 0}
    total = sum(weights.values())
    given = dict.fromkeys(weights, 0)
    while weights:
        count = sum(given.values()) + 1
        furthest_behind = max(weights, key=lambda one: weights[one] / total * count - given[one])
        given[furthest_behind] += 1
        yield furthest_behind


class Population:
    """The users of one worker.

    Args:
        index: which worker this is, from 0.
        workers: how many there are.
        classes: of all users, in their order.
        environment: what users are given.
        on_complete: called when all users that were asked for are there.
    """

    def __init__(
        self, index: int, workers: int, classes: Iterator[Any], environment: Any, clock: Clock, on_complete: Callable[[int], None]
    ) -> None:
        self._index, self._workers = index, workers
        self._classes = classes
        self._order: list[Any] = []
        self._environment = environment
        self._clock = clock
        self._on_complete = on_complete
        self._count = 0
        self._mine: dict[int, Any] = {}
        self._moving: Any = None

    @property
    def alive(self) -> int:
        """Users of this worker that do tasks."""
        return len(self._mine)

    @property
    def count(self) -> int:
        """Users of all workers that were asked for so far."""
        return self._count

    def aim(self, users: int, rate: float, at_ns: int) -> None:
        """From a moment on, so many users a second come or go until there are `users`."""
        if self._moving is not None:
            self._moving.kill(block=False)
        self._moving = gevent.spawn(self._move, users, rate, at_ns)

    def stop(self, timeout_s: float) -> None:
        """Ends all users: at once, or with their tasks within a time."""
        if self._moving is not None:
            self._moving.kill(block=True)
        users = [(user, user._greenlet) for user in self._mine.values()]
        if timeout_s > 0:
            for user, _ in users:
                user.stop()
            gevent.joinall([greenlet for _, greenlet in users], timeout=timeout_s)
        gevent.killall([greenlet for _, greenlet in users], block=True, timeout=5)

    def _move(self, users: int, rate: float, at_ns: int) -> None:
        step = 1 if users > self._count else -1
        for number in range(abs(users - self._count)):
            due_ns = at_ns + int(number / rate * _SECOND_NS)
            who = self._count if step > 0 else self._count - 1
            if who % self._workers == self._index:
                self._clock.sleep_until(due_ns)
                if step > 0:
                    self._begin(who, clocks.taken_lag_ns())
                elif who in self._mine:
                    self._mine[who].stop()
            self._count += step
        if step > 0:
            self._on_complete(self._count)

    def _begin(self, who: int, lag_ns: int) -> None:
        while len(self._order) <= who:
            following = next(self._classes, None)
            if following is None:
                return
            self._order.append(following)
        try:
            user = self._order[who](self._environment)
        except Exception as error:
            self._environment.recorder.record_exception(str(error), trace_of(error))
            logger.error("%s could not begin: %s", self._order[who].__name__, error)
            return
        self._mine[who] = user
        greenlet = user.start()
        # The user wanted to begin when it was due.
        greenlet.weir_lag_ns = lag_ns
        greenlet.link(lambda _: self._mine.pop(who, None))
