"""`locust.user.users`: users, each a greenlet that does its tasks."""

import time
from typing import TYPE_CHECKING, Any

import gevent
from gevent import GreenletExit

from weir.compat.locust.api.clients import HttpSession
from weir.compat.locust.api.exception import LocustError, StopUser
from weir.compat.locust.api.task import RUNNING, STOPPING, WAITING, DefaultTaskSet, TaskHolder, TaskSet, logger, trace_of
from weir.compat.locust.api.wait_time import constant

if TYPE_CHECKING:
    from weir.compat.locust.api.env import Environment


class UserClass(TaskHolder):
    """The class of classes of users: one is abstract only if it says so itself."""

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> Any:
        """As `TaskHolder`."""
        return super().__new__(cls, name, bases, {"abstract": False, **namespace})


class User(metaclass=UserClass):
    """Somebody who does tasks. A class of the file with a client of its own begins here."""

    abstract = True
    host: str | None = None
    """Where to, without a path: `http://127.0.0.1:8000`. `--host` goes before."""
    weight: float = 1
    """How many there are of it, beside those of the other classes."""
    fixed_count = 0
    """So many and no more, before all others; 0: as many as it weighs."""
    wait_time: Any = constant(0)
    tasks: Any = ()
    client: Any = None

    def __init__(self, environment: "Environment") -> None:
        self.environment = environment
        self._state = RUNNING
        self._paced_s = time.monotonic()
        self._greenlet: Any = None
        self._tasks: TaskSet | None = None

    def on_start(self) -> None:
        """Called when this user begins."""

    def on_stop(self) -> None:
        """Called when it ends."""

    def context(self) -> dict[str, Any]:
        """What `events.request` is told of this user as `context`."""
        return {}

    def run(self) -> None:
        """Does tasks until the user stops."""
        self._tasks = DefaultTaskSet(self)
        try:
            self.on_start()
            self._tasks.run()
        except (GreenletExit, StopUser):
            self.on_stop()

    def wait(self) -> None:
        """Pauses as between two tasks."""
        assert self._tasks is not None
        self._tasks.wait()

    def start(self) -> Any:
        """Begins, in a greenlet of its own."""
        self._greenlet = gevent.spawn(self._run)
        return self._greenlet

    def stop(self, force: bool = False) -> None:
        """Ends this user: at once, or with the task that it is doing."""
        if force or self._state == WAITING:
            self._greenlet.kill(block=False)
        else:
            self._state = STOPPING

    def _failed(self, error: Exception, where: Any) -> None:
        # A task has raised what nobody caught: it counts, and the user goes on.
        trace = trace_of(error)
        self.environment.recorder.record_exception(str(error), trace)
        self.environment.events.user_error.fire(user_instance=where, exception=error, tb=error.__traceback__)
        logger.error("%s\n%s", error, trace)

    def _run(self) -> None:
        try:
            self.run()
        except Exception as error:
            self._failed(error, self)


class HttpUser(User):
    """A user with `client`, which is a session of requests."""

    abstract = True
    pool_manager: Any = None

    def __init__(self, environment: "Environment") -> None:
        super().__init__(environment)
        self.client = HttpSession(base_url=base_url(self), user=self, pool_manager=self.pool_manager)


def base_url(user: User) -> str:
    """Where a user's requests go.

    Raises:
        LocustError: nobody says.
    """
    if not user.host:
        raise LocustError(f"{type(user).__name__}: found no host, expected --host http://HOST:PORT, or host = ... in the class")
    return user.host.rstrip("/")
