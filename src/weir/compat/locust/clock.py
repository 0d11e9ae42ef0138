"""When users of a worker wake: pauses that end on time, and how late they ended.

gevent's own timers end on whole milliseconds, which is as long as a good server takes to answer. One timerfd of the kernel, set to the
earliest of all pauses, wakes the loop to some 100 us. What remains is the time that a greenlet waits for the others of its worker: that is
kept on the greenlet, and is the schedule lag of its next request.
"""

import contextlib
import ctypes
import os
import time
from heapq import heappop, heappush
from itertools import count

import gevent
from gevent.hub import Waiter

_CLOCK_MONOTONIC = 1
_TFD_NONBLOCK = os.O_NONBLOCK
_ABSOLUTE = 1
_READ = 1
_SECOND_NS = 1_000_000_000
_yield_to_others = gevent.sleep


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _Timer(ctypes.Structure):
    _fields_ = (("every", _Timespec), ("at", _Timespec))


class Clock:
    """The pauses of one worker."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._timer = self._libc.timerfd_create(_CLOCK_MONOTONIC, _TFD_NONBLOCK | os.O_CLOEXEC)
        if self._timer < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        self._order = count()
        self._due: list[tuple[int, int, Waiter]] = []
        self._wakes = gevent.get_hub().loop.io(self._timer, _READ)
        self._wakes.start(self._wake)

    def sleep_until(self, due_ns: int) -> None:
        """Pauses this greenlet until a moment of CLOCK_MONOTONIC, and keeps how late it was woken. One that has passed lets others run."""
        if due_ns > time.monotonic_ns():
            waiter = Waiter()
            is_first = not self._due or due_ns < self._due[0][0]
            heappush(self._due, (due_ns, next(self._order), waiter))
            if is_first:
                self._set(due_ns)
            try:
                waiter.get()
            finally:
                waiter.clear()
        else:
            _yield_to_others(0)
        add_lag(time.monotonic_ns() - due_ns)

    def sleep(self, seconds: float = 0, ref: bool = True) -> None:
        """Stands in for `time.sleep` and `gevent.sleep` in locustfiles."""
        if seconds > 0:
            self.sleep_until(time.monotonic_ns() + int(seconds * _SECOND_NS))
        else:
            _yield_to_others(0, ref=ref)

    def _set(self, due_ns: int) -> None:
        at = _Timer(_Timespec(0, 0), _Timespec(*divmod(due_ns, _SECOND_NS)))
        self._libc.timerfd_settime(self._timer, _ABSOLUTE, ctypes.byref(at), None)

    def _wake(self) -> None:
        # It may have been set anew since it ended.
        with contextlib.suppress(BlockingIOError):
            os.read(self._timer, 8)
        now_ns = time.monotonic_ns()
        while self._due and self._due[0][0] <= now_ns:
            _, _, waiter = heappop(self._due)
            waiter.switch(None)
        if self._due:
            self._set(self._due[0][0])


def add_lag(lag_ns: int) -> None:
    """This greenlet has lost so much time to the others of its worker."""
    current = gevent.getcurrent()
    current.weir_lag_ns = getattr(current, "weir_lag_ns", 0) + lag_ns


def taken_lag_ns() -> int:
    """What this greenlet has lost since it was last asked."""
    current = gevent.getcurrent()
    lag_ns: int = getattr(current, "weir_lag_ns", 0)
    current.weir_lag_ns = 0
    return lag_ns
