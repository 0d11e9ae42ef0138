"""`locust.shape`: how many users there are over time, by a class of the locustfile."""

import time
from typing import Any


class LoadTestShape:
    """Asked once a second by `tick` how many users there should be, and how fast they come or go."""

    abstract = False
    runner: Any = None

    def __init__(self) -> None:
        self._began_s = time.monotonic()

    def reset_time(self) -> None:
        """The time that `get_run_time` says begins now."""
        self._began_s = time.monotonic()

    def get_run_time(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._began_s

    def get_current_user_count(self) -> int:
        """How many users there are."""
        count: int = self.runner.user_count
        return count

    def tick(self) -> Any:
        """(users, users a second that come or go); None: the load is over."""
        return None
