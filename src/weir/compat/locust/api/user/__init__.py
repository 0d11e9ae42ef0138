"""`locust.user`: users, tasks and pauses under the names that files import."""

from weir.compat.locust.api.task import TaskSet, tag, task
from weir.compat.locust.api.users import HttpUser, User

__all__ = ["HttpUser", "TaskSet", "User", "tag", "task"]
