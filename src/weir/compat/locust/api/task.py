"""`locust.user.task`: tasks, and sets of them, that a user does one after the other with pauses in between."""

import logging
import random
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from gevent import GreenletExit

from weir.compat.locust import clock
from weir.compat.locust.api.exception import (
    InterruptTaskSet,
    LocustError,
    RescheduleTask,
    RescheduleTaskImmediately,
    StopUser,
    missing,
)

if TYPE_CHECKING:
    from weir.compat.locust.api.users import User

logger = logging.getLogger("locust.user.task")

Task = Any
"""A function of a user or of a set of tasks, or a set of tasks."""
_HERE = str(Path(__file__).parent)
RUNNING, WAITING, STOPPING = "running", "waiting", "stopping"
_OF_2019 = {
    "min_wait": "of the locustio of 2019, in milliseconds; now wait_time = between(1, 5), in seconds",
    "max_wait": "of the locustio of 2019, in milliseconds; now wait_time = between(1, 5), in seconds",
    "wait_function": "of the locustio of 2019, in milliseconds; now wait_time, a function that returns seconds",
    "task_set": "of the locustio of 2019; now tasks = [MyTaskSet], or @task on methods of the user itself",
}


def task(weight: Any = 1) -> Any:
    """Makes a method, or a class of tasks inside of a class, a task: `@task`, or `@task(3)` for one that is chosen three times as often."""

    def decorate(found: Task) -> Task:
        if found.__name__ == "run":
            raise LocustError("run: a task has this name, which is that of the method that runs the user: name it otherwise")
        found.locust_task_weight = weight
        return found

    if callable(weight):
        found, weight = weight, 1
        return decorate(found)
    return decorate


def tag(*tags: str) -> Callable[[Task], Task]:
    """Gives tasks tags, by which `--tags` and `--exclude-tags` choose."""
    if not tags or callable(tags[0]):
        raise ValueError("@tag: found no tag, expected @tag('one', 'other')")

    def decorate(found: Task) -> Task:
        if hasattr(found, "tasks"):
            found.tasks = [decorate(one) for one in found.tasks]
        else:
            found.locust_tag_set = getattr(found, "locust_tag_set", set()) | set(tags)
        return found

    return decorate


class TaskHolder(type):
    """The class of classes that have tasks: gathers them from the bases, from `tasks` and from `@task`, each as often as it weighs."""

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> Any:
        """Checks what the class states, and gathers."""
        for old, instead in _OF_2019.items():
            if old in namespace:
                missing(f"{name}.{old}", instead)
        gathered = [one for base in bases for one in getattr(base, "tasks", ())]
        stated = namespace.get("tasks") or ()
        for one in stated.items() if isinstance(stated, dict) else stated:
            gathered += [one[0]] * one[1] if isinstance(one, tuple) else [one]
        for one in namespace.values():
            gathered += [one] * getattr(one, "locust_task_weight", 0)
        return super().__new__(cls, name, bases, {**namespace, "tasks": gathered})


def chosen_by_tags(holder: Any, tags: set[str] | None, excluded: set[str] | None) -> None:
    """Takes the tasks away from a class that `--tags` and `--exclude-tags` leave out."""
    kept = []
    for one in holder.tasks:
        if hasattr(one, "tasks"):
            chosen_by_tags(one, tags, excluded)
            if one.tasks:
                kept.append(one)
            continue
        its: set[str] = getattr(one, "locust_tag_set", set())
        if (tags is None or its & tags) and not (excluded and its & excluded):
            kept.append(one)
    holder.tasks = kept


def equally_weighted(holder: Any) -> None:
    """Makes every task of a class as likely as every other: `--equal-weights`."""
    holder.tasks = list(dict.fromkeys(holder.tasks))
    for one in holder.tasks:
        if hasattr(one, "tasks"):
            equally_weighted(one)


class TaskSet(metaclass=TaskHolder):
    """Tasks that belong together: one is chosen at random, done, and followed by a pause; over and over."""

    tasks: Any = ()
    """Functions and other sets, in a list, or with weights in a dict or in pairs."""

    def __init__(self, parent: "TaskSet | User") -> None:
        self._parent = parent
        self._user: User = parent.user if isinstance(parent, TaskSet) else parent
        self._task_queue: list[Task] = []
        self._paced_s = time.monotonic()

    @property
    def user(self) -> "User":
        """Whose tasks these are."""
        return self._user

    @property
    def parent(self) -> "TaskSet | User":
        """The set around this one, or the user."""
        return self._parent

    @property
    def client(self) -> Any:
        """The user's."""
        return self.user.client

    def on_start(self) -> None:
        """Called when a user begins with this set."""

    def on_stop(self) -> None:
        """Called when a user leaves it."""

    def run(self) -> None:
        """Does tasks until the set is left, or the user stops."""
        try:
            self.on_start()
        except InterruptTaskSet as interruption:
            _leave(interruption)
        while True:
            try:
                self._next()
            except InterruptTaskSet as interruption:
                self._left()
                _leave(interruption)
            except (StopUser, GreenletExit):
                self._left()
                raise

    def _next(self) -> None:
        try:
            if not self._task_queue:
                self.schedule_task(self.get_next_task())
            if self.user._state == STOPPING:
                raise StopUser
            self.execute_next_task()
        except RescheduleTaskImmediately:
            return
        except RescheduleTask:
            pass
        except (InterruptTaskSet, StopUser):
            raise
        except Exception as error:
            self.user._failed(error, self)
        self.wait()

    def _left(self) -> None:
        try:
            self.on_stop()
        except StopUser:
            raise
        except Exception as error:
            self.user._failed(error, self)

    def get_next_task(self) -> Task:
        """Which task is next."""
        if not self.tasks:
            raise LocustError(f"{type(self).__name__}: found no tasks, expected @task on its methods, or tasks = [...]")
        return random.choice(self.tasks)

    def schedule_task(self, task_callable: Task, first: bool = False) -> None:
        """Puts a task into the queue, or at its head."""
        self._task_queue.insert(0 if first else len(self._task_queue), task_callable)

    def execute_next_task(self) -> None:
        """Does what the queue holds first."""
        self.execute_task(self._task_queue.pop(0))

    def execute_task(self, task: Task) -> None:
        """Does a task."""
        self._do(task, self)

    def _do(self, task: Task, holder: "TaskSet | User") -> None:
        if getattr(task, "__self__", None) is holder:
            task()
        elif isinstance(task, TaskHolder):
            task(holder).run()
        else:
            task(holder)

    def wait_time(self) -> float:
        """How long the pause is, in seconds: the user's, where the set states none of its own."""
        pause_s: float = self.user.wait_time()
        return pause_s

    def wait(self) -> None:
        """Pauses. When the pause ends the user wants to go on: what is later than that is the worker's lag."""
        user = self.user
        if user._state == STOPPING:
            raise StopUser
        user._state = WAITING
        due_ns = time.monotonic_ns() + int(self.wait_time() * 1e9)
        clock.taken_lag_ns()
        user.environment.clock.sleep_until(due_ns)
        # The user may have been told to stop meanwhile.
        if user._state == STOPPING:
            raise StopUser
        user._state = RUNNING

    def interrupt(self, reschedule: bool = True) -> NoReturn:
        """Leaves this set for the one around it."""
        raise InterruptTaskSet(reschedule)


class SequentialTaskSet(TaskSet):
    """Tasks in their order."""

    def __init__(self, parent: "TaskSet | User") -> None:
        super().__init__(parent)
        self._done = 0

    def get_next_task(self) -> Task:
        """The one behind the last; the first again behind all."""
        if not self.tasks:
            return super().get_next_task()
        self._done += 1
        return self.tasks[(self._done - 1) % len(self.tasks)]


class DefaultTaskSet(TaskSet):
    """The tasks of a user itself."""

    def get_next_task(self) -> Task:
        """One of the user's."""
        return random.choice(self.user.tasks)

    def execute_task(self, task: Task) -> None:
        """With the user in place of a set."""
        self._do(task, self.user)


def _leave(interruption: InterruptTaskSet) -> NoReturn:
    raise (RescheduleTaskImmediately if interruption.reschedule else RescheduleTask) from interruption


def trace_of(error: BaseException) -> str:
    """Where an exception came from, as Python tells it, from the file's own first line on."""
    begin = error.__traceback__
    while begin is not None and begin.tb_next is not None and begin.tb_frame.f_code.co_filename.startswith(_HERE):
        begin = begin.tb_next
    return "".join(traceback.format_exception(error.with_traceback(begin)))


def name_of(task: Task) -> str:
    """Of a task, for people."""
    return str(getattr(task, "__name__", task))
