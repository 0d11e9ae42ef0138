"""The module `locust` that a locustfile imports: weir's own, in a worker process. `install` puts it there.

What Locust has and weir does not, and what the `locustio` of 2019 had, gives an error that says what there is in its place.
"""

import sys
from typing import Any

from weir.compat.locust.api import (
    clients,
    contrib,
    env,
    event,
    exception,
    fasthttp,
    runners,
    shape,
    user,
    users,
)
from weir.compat.locust.api import (
    task as _task,
)
from weir.compat.locust.api import (
    wait_time as _wait_time,
)
from weir.compat.locust.api.event import Events
from weir.compat.locust.api.exception import InterruptTaskSet, missing
from weir.compat.locust.api.fasthttp import FastHttpUser
from weir.compat.locust.api.shape import LoadTestShape
from weir.compat.locust.api.task import SequentialTaskSet, TaskSet, tag, task
from weir.compat.locust.api.users import HttpUser, User
from weir.compat.locust.api.wait_time import between, constant, constant_pacing, constant_throughput, poisson

__all__ = [
    "FastHttpUser", "HttpUser", "InterruptTaskSet", "LoadTestShape", "SequentialTaskSet", "TaskSet", "User", "between", "constant",
    "constant_pacing", "constant_throughput", "events", "poisson", "run_single_user", "tag", "task",
]  # fmt: skip

events = Events()

_OF_2019 = "of the locustio of 2019; now"
_MISSING = {
    "HttpLocust": f"{_OF_2019} HttpUser",
    "FastHttpLocust": f"{_OF_2019} FastHttpUser",
    "Locust": f"{_OF_2019} User, or HttpUser for one that speaks HTTP",
    "TaskSequence": f"{_OF_2019} SequentialTaskSet",
    "seq_task": f"{_OF_2019} SequentialTaskSet, whose tasks go in the order in which they stand",
    "MarkovTaskSet": "weir has TaskSet and SequentialTaskSet",
    "transition": "weir has TaskSet and SequentialTaskSet",
    "transitions": "weir has TaskSet and SequentialTaskSet",
    "stats": "weir's tables have Locust's usual percentiles and times; leave the line out",
    "web": "weir's page is its own; it has no routes to add to",
    "PytestUser": "weir runs users with tasks",
}
_MODULES = {
    "": sys.modules[__name__],
    "clients": clients,
    "contrib": contrib,
    "contrib.fasthttp": fasthttp,
    "env": env,
    "event": event,
    "exception": exception,
    "runners": runners,
    "shape": shape,
    "user": user,
    "user.task": _task,
    "user.users": users,
    "user.wait_time": _wait_time,
}


def run_single_user(user_class: type[User], **_: Any) -> None:
    """Is there so that files can import it for `if __name__ == "__main__"`."""
    missing("locust.run_single_user", f"weir locust FILE -u 1 --headless {user_class.__name__} runs one user")


def install() -> None:
    """From here on `import locust` gives this module, whether Locust is installed or not."""
    for name, module in _MODULES.items():
        sys.modules[f"locust.{name}".rstrip(".")] = module


def __getattr__(name: str) -> Any:
    """Says what there is in place of what weir does not have."""
    if name in _MISSING:
        missing(f"locust.{name}", _MISSING[name])
    raise AttributeError(f"module 'locust' has no attribute {name!r}")
