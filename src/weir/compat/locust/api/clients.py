"""`locust.clients`: the client of an `HttpUser`, a session of requests whose requests are measured."""

import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from requests.exceptions import (
    ConnectTimeout,
    InvalidSchema,
    InvalidURL,
    MissingSchema,
    RequestException,
    SSLError,
    Timeout,
    TooManyRedirects,
)
from urllib3.exceptions import NewConnectionError

from weir.compat.locust.api.measuring import Caught, Renaming, Reporter, Request

if TYPE_CHECKING:
    from weir.compat.locust.api.users import User

_WRONG_URL = (MissingSchema, InvalidSchema, InvalidURL)


class LocustResponse(requests.Response):
    """An answer; or in its place what went wrong, with status 0."""

    error: Exception | None = None

    def raise_for_status(self) -> None:
        """Raises what went wrong, an error status included."""
        if self.error is not None:
            raise self.error
        super().raise_for_status()


class ResponseContextManager(Caught, LocustResponse):  # type: ignore[misc]
    """An answer in `with …(catch_response=True) as response`: the task says whether it is right."""

    def __init__(self, response: requests.Response, reporter: Reporter) -> None:
        self.__dict__ = response.__dict__
        self.reporter = reporter
        self.request_meta = reporter.facts


class _Adapter(HTTPAdapter):
    """Connections of a pool that several users share."""

    def __init__(self, pool_manager: Any) -> None:
        self._shared = pool_manager
        super().__init__()

    def init_poolmanager(self, *arguments: Any, **settings: Any) -> None:
        if self._shared is None:
            super().init_poolmanager(*arguments, **settings)
        else:
            self.poolmanager = self._shared


class HttpSession(Renaming, requests.Session):
    """A session: cookies stay, connections are used again, paths go to the user's host."""

    def __init__(self, base_url: str, user: "User", pool_manager: Any = None) -> None:
        super().__init__()
        self.base_url = base_url
        self._user = user
        # The environment's proxies and .netrc have no say in what is measured, and looking for them takes longer than a request.
        self.trust_env = False
        for scheme in ("http://", "https://"):
            self.mount(scheme, _Adapter(pool_manager))
        parts = urlsplit(base_url)
        if parts.username and parts.password:
            self.auth = (parts.username, parts.password)
            self.base_url = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()

    def request(  # type: ignore[override]
        self,
        method: str,
        url: str,
        name: str | None = None,
        catch_response: bool = False,
        context: dict[str, Any] | None = None,
        **settings: Any,
    ) -> Any:
        """As that of requests, and measured.

        Args:
            method: GET and so on.
            url: a path of the user's host, or a whole URL.
            name: under which it counts; None: its path and query.
            catch_response: whether the task says in a `with` block if the answer is right.
            context: what `events.request` is told beside the user's own context.
            settings: of requests: `json`, `data`, `headers`, `params`, `timeout`, …
        """
        whole = url if url.startswith(("http://", "https://")) else f"{self.base_url}{url}"
        with Request(self._user, kind_of) as asked:
            response = self._answer(method, whole, settings)
            if not settings.get("stream"):
                _ = response.content
            asked.ended_ns = time.monotonic_ns()
        first = response.history[0] if response.history else response
        sent = first.request
        received = int(response.headers.get("content-length") or 0) if settings.get("stream") else len(response.content or b"")
        reporter = asked.reporter(
            method=sent.method or method,
            name=name or self._name or sent.path_url,
            url=sent.url or whole,
            status=response.status_code,
            sent_bytes=len(sent.body or b"") if isinstance(sent.body, (str, bytes)) else 0,
            received_bytes=received,
            context=context,
            response=response,
        )
        if catch_response:
            return ResponseContextManager(response, reporter)
        reporter.judge(response)
        return response

    def _answer(self, method: str, url: str, settings: dict[str, Any]) -> requests.Response:
        try:
            return super().request(method, url, **settings)
        except _WRONG_URL:
            raise
        except RequestException as error:
            return _failed(error, method, url)


def _failed(error: RequestException, method: str, url: str) -> LocustResponse:
    response = LocustResponse()
    response.error = error
    response.status_code = 0
    response._content = b""
    response.url = url
    response.request = requests.Request(method, url).prepare()
    return response


def kind_of(error: BaseException) -> str:
    """What sort of failure an exception of requests is, as weir counts them."""
    if isinstance(error, (ConnectTimeout, SSLError)) or _comes_from(error, NewConnectionError):
        return "connect"
    if isinstance(error, Timeout) or _comes_from(error, TimeoutError):
        return "timeout"
    if isinstance(error, TooManyRedirects):
        return "check"
    if isinstance(error, (requests.ConnectionError, requests.exceptions.ChunkedEncodingError)):
        return "reset"
    return "protocol"


def _comes_from(error: BaseException | None, kind: type[BaseException]) -> bool:
    while error is not None:
        if isinstance(error, kind) or any(isinstance(one, kind) or isinstance(getattr(one, "reason", None), kind) for one in error.args):
            return True
        error = error.__context__
    return False
