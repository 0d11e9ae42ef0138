"""`locust.runners`: who runs the users. Listeners ask which of these `environment.runner` is."""

from collections.abc import Callable
from typing import Any, NoReturn

from weir.compat.locust.api.exception import missing

STATE_INIT, STATE_SPAWNING, STATE_RUNNING, STATE_CLEANUP, STATE_STOPPING, STATE_STOPPED, STATE_MISSING = (
    "ready", "spawning", "running", "cleanup", "stopping", "stopped", "missing",
)  # fmt: skip


class Runner:
    """Of one worker.

    Args:
        environment: the worker's.
        users: how many users it has now.
        quit_: ends the load of all workers.
    """

    def __init__(self, environment: Any, users: Callable[[], int], quit_: Callable[[], None]) -> None:
        self.environment = environment
        self._users = users
        self._quit = quit_
        self.state = STATE_INIT

    @property
    def user_count(self) -> int:
        """Users of this worker; for a shape those of all."""
        return self._users()

    @property
    def stats(self) -> Any:
        """As `environment.stats`."""
        return self.environment.stats

    def quit(self) -> None:
        """Ends the load."""
        self._quit()

    stop = quit

    def __getattr__(self, name: str) -> NoReturn:
        """Says what there is in place of what weir does not have."""
        if name in ("register_message", "send_message"):
            missing(f"environment.runner.{name}", "weir's workers do not talk to one another")
        raise AttributeError(f"environment.runner has no {name}; weir's has user_count, state, stats and quit()")


class LocalRunner(Runner):
    """The only one."""


class WorkerRunner(Runner):
    """One of several."""


class MasterRunner(Runner):
    """Never what a file meets: weir itself brings the workers' figures together."""
