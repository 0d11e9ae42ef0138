"""One request of a user: when it was wanted, when it ended, and who says whether it was right. The same for every client."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from requests.exceptions import ConnectionError as RequestsConnectionError
from requests.exceptions import HTTPError
from urllib3.exceptions import MaxRetryError, NewConnectionError, ProtocolError

from weir.compat.locust import clock
from weir.compat.locust.api.event import told
from weir.compat.locust.api.exception import CatchResponseError, ResponseError
from weir.compat.locust.tally import Measured

if TYPE_CHECKING:
    from weir.compat.locust.api.users import User

_WRAPPERS = (RequestsConnectionError, ProtocolError, MaxRetryError, NewConnectionError)


class Renaming:
    """What a client counts its requests under, where that is not their path."""

    _name: str | None = None

    @contextmanager
    def rename_request(self, name: str) -> Iterator[None]:
        """Requests inside count under this name."""
        before, self._name = self._name, name
        try:
            yield
        finally:
            self._name = before


class Answer(Protocol):
    """What a client gives."""

    def raise_for_status(self) -> None:
        """Raises what went wrong, an error status included."""


class Request:
    """A request that goes on: in flight from `with` to its end, however it ends.

    Args:
        user: whose it is.
        kind_of: what sort of failure an exception of the client is, a key of `ErrorCounts`.
    """

    def __init__(self, user: "User", kind_of: Callable[[BaseException], str]) -> None:
        self.user = user
        self.kind_of = kind_of
        self._recorder = user.environment.recorder
        self.ended_ns = 0

    def __enter__(self) -> Self:
        self.lag_ns = clock.taken_lag_ns()
        self._began_unix_s = time.time()
        self._began_ns = time.monotonic_ns()
        self._number = self._recorder.begin(self._began_ns)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        # A user who is stopped under a request leaves it unanswered: greenlets end by what is no `Exception`.
        self._recorder.end(self._number, is_answered=error is None or isinstance(error, Exception))

    def reporter(
        self,
        *,
        method: str,
        name: str,
        url: str,
        status: int,
        sent_bytes: int,
        received_bytes: int,
        context: dict[str, Any] | None,
        response: Any,
    ) -> "Reporter":
        """Who counts it when it is known whether it was right."""
        service_ns = self.ended_ns - self._began_ns
        facts = {
            "request_type": method,
            "name": name,
            "context": {**self.user.context(), **(context or {})},
            "response": response,
            "exception": None,
            "start_time": self._began_unix_s,
            "url": url,
            "response_time": service_ns / 1e6,
            "response_length": received_bytes,
        }
        return Reporter(self, facts, service_ns, status, sent_bytes)


class Reporter:
    """Counts one request and tells the file's listeners."""

    def __init__(self, asked: Request, facts: dict[str, Any], service_ns: int, status: int, sent_bytes: int) -> None:
        self._asked = asked
        self.facts = facts
        """What listeners of `events.request` are told; a task may change `name` until it is."""
        self._service_ns, self._status, self._sent_bytes = service_ns, status, sent_bytes

    def judge(self, answer: Answer) -> None:
        """Its status says whether it was right."""
        try:
            answer.raise_for_status()
        except Exception as error:
            self.report(self._named(_innermost(error)))
        else:
            self.report(None)

    def _named(self, error: Exception) -> Exception:
        """An error status is told with the name in place of the URL, so that failures of one name are one kind."""
        if isinstance(error, HTTPError) and error.response is not None:
            error.args = (str(error).replace(str(error.response.url), self.facts["name"]),)
        return error

    def report(self, error: Exception | None) -> None:
        """It was right, or what was wrong."""
        asked, facts = self._asked, self.facts
        facts["exception"] = error
        measured = Measured(
            service_ns=self._service_ns,
            lag_ns=asked.lag_ns,
            error=None if error is None else "check" if self._status else asked.kind_of(error),
            status=self._status,
            sent_bytes=self._sent_bytes,
            received_bytes=facts["response_length"],
        )
        environment = asked.user.environment
        environment.recorder.record(facts["request_type"], facts["name"], measured, told(error), asked.ended_ns)
        environment.events.request.tell(**facts)


def _innermost(error: Exception) -> Exception:
    """What a client has wrapped: `ConnectionRefusedError` says more than that retries were exceeded."""
    while isinstance(error, _WRAPPERS) and isinstance(error.__context__, Exception):
        error = error.__context__
    return error


class Caught:
    """The part of an answer in a `with` block that lets a task say whether it is right."""

    reporter: Reporter
    said: Exception | bool | None = None
    """What the task has said last: True, what is wrong, or nothing."""

    def success(self) -> None:
        """It is, whatever its status."""
        self.said = True

    def failure(self, exc: Any) -> None:
        """It is not, and why: a text or an exception."""
        self.said = exc if isinstance(exc, Exception) else CatchResponseError(exc)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        if isinstance(self.said, Exception):
            self.reporter.report(self.said)
        elif self.said:
            self.reporter.report(None)
        elif isinstance(error, ResponseError):
            self.reporter.report(error)
            return True
        else:
            # What else a task raises here is the task's, and says nothing of the answer.
            answer: Any = self
            self.reporter.judge(answer)
        return False
