"""`locust.exception`: what tasks raise, and what is told of requests."""

from typing import NoReturn


class LocustError(Exception):
    """Something is wrong with the locustfile."""


class NotInWeir(ImportError):  # noqa: N818
    """The locustfile asks for what weir does not have.

    An `ImportError`: of `AttributeError` Python makes a message of its own where a name is imported from a module.
    """


class ResponseError(Exception):
    """An answer is not as it should be."""


class CatchResponseError(Exception):
    """A task has called an answer a failure."""


class MissingWaitTimeError(LocustError):
    """A user has no `wait_time`."""


class InterruptTaskSet(Exception):  # noqa: N818
    """A set of tasks is left, for the one around it.

    Args:
        reschedule: whether that goes on at once, without a pause.
    """

    def __init__(self, reschedule: bool = True) -> None:
        super().__init__(reschedule)
        self.reschedule = reschedule


class StopUser(Exception):  # noqa: N818
    """This user is done."""


class RescheduleTask(Exception):  # noqa: N818
    """The task is over, and the user pauses."""


class RescheduleTaskImmediately(Exception):  # noqa: N818
    """The task is over, and the next one begins at once."""


def missing(what: str, instead: str) -> NoReturn:
    """Says of something of Locust's that weir does not have it, and what there is.

    Raises:
        NotInWeir: always.
    """
    raise NotInWeir(f"{what}: {instead}")
