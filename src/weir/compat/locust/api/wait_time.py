"""`locust.user.wait_time`: pauses between tasks, in seconds, as `wait_time = …` of a class."""

import random
import time
from collections.abc import Callable
from typing import Any

WaitTime = Callable[[Any], float]


def between(min_wait: float, max_wait: float) -> WaitTime:
    """Any time between two as likely."""
    return lambda instance: random.uniform(min_wait, max_wait)


def constant(wait_time: float) -> WaitTime:
    """Always the same."""
    return lambda instance: wait_time


def poisson(lambda_value: float) -> WaitTime:
    """Exponential, with so many tasks a second on average."""
    return lambda instance: random.expovariate(lambda_value)


def constant_pacing(wait_time: float) -> WaitTime:
    """A task is due so long after the one before was due; at once where that took longer."""

    def wait(instance: Any) -> float:
        now_s = time.monotonic()
        due_s: float = max(now_s, instance._paced_s + wait_time)
        instance._paced_s = due_s
        return due_s - now_s

    return wait


def constant_throughput(task_runs_per_second: float) -> WaitTime:
    """So many tasks of each user a second."""
    return constant_pacing(1 / task_runs_per_second)
