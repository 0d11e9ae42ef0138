"""`locust.contrib.fasthttp`: a user whose client is geventhttpclient, which takes a fraction of the CPU that requests takes."""

import json as json_
import time
from base64 import b64encode
from collections.abc import Callable
from http.cookiejar import CookieJar
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from gevent import Timeout, ssl
from geventhttpclient.header import Headers
from geventhttpclient.response import HTTPConnectionClosed, HTTPParseError
from geventhttpclient.useragent import CompatRequest, CompatResponse, ConnectionError, RetriesExceeded, UserAgent

from weir.compat.locust.api.exception import missing
from weir.compat.locust.api.measuring import Caught, Renaming, Reporter, Request
from weir.compat.locust.api.users import User, base_url

if TYPE_CHECKING:
    from weir.compat.locust.api.env import Environment

_FAILURES = (ConnectionError, OSError, Timeout, HTTPConnectionClosed, HTTPParseError)
_FIRST_WRONG = 400
_REDIRECTS = frozenset((301, 302, 303, 307, 308))


class FastResponse(CompatResponse):
    """An answer; or in its place what went wrong, with status 0."""

    error: Exception | None = None

    @property
    def text(self) -> str:
        """The body, decoded."""
        charset = str(self.headers.get("content-type") or "").partition("charset=")[2].split(";")[0].strip("\"' ")
        return self.content.decode(charset or "utf-8", "replace")

    @property
    def url(self) -> str:
        """Of the request."""
        return "" if self._request is None else str(self._request.url)

    @property
    def ok(self) -> bool:
        """Whether the status is no error."""
        return 0 < self.status_code < _FIRST_WRONG

    def json(self) -> Any:
        """The body, read as JSON."""
        return json_.loads(self.content)

    def raise_for_status(self) -> None:
        """Raises what went wrong, an error status included."""
        if self.error is not None:
            raise self.error
        if self.status_code >= _FIRST_WRONG:
            raise BadStatusCode(self.url, code=self.status_code)


class ErrorResponse(FastResponse):
    """No answer came."""

    status_code = 0
    content = b""

    def __init__(self, request: CompatRequest, error: Exception) -> None:
        self._request = request
        self.error = error
        self.headers = Headers()
        self._history = []


class BadStatusCode(ConnectionError):  # noqa: N818
    """An answer with an error status; told without its URL, so that failures of one name are one kind."""

    def __repr__(self) -> str:
        return f"BadStatusCode({self.kw_text})"


class ResponseContextManager(Caught):
    """An answer in `with …(catch_response=True) as response`: the task says whether it is right."""

    def __init__(self, response: FastResponse, reporter: Reporter) -> None:
        self._answer = response
        self.reporter = reporter
        self.request_meta = reporter.facts

    def __getattr__(self, name: str) -> Any:
        """The answer's."""
        return getattr(self._answer, name)


class _Agent(UserAgent):
    response_type = FastResponse
    redirect_response_codes = _REDIRECTS

    def _verify_status(self, status_code: int, url: Any = None) -> None:
        """Every status is an answer."""


class FastHttpSession(Renaming):
    """A session: cookies stay, connections are used again, paths go to the user's host."""

    def __init__(self, base_url: str, user: User, client_pool: Any = None, **settings: Any) -> None:
        self.base_url = base_url
        self._user = user
        self._authorization: str | None = None
        self.cookiejar = CookieJar()
        self.client = _Agent(cookiejar=self.cookiejar, **settings)
        if client_pool is not None:
            self.client.clientpool = client_pool
        parts = urlsplit(base_url)
        if parts.username and parts.password:
            self._authorization = _basic(unquote(parts.username), unquote(parts.password))
            self.base_url = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()

    def request(
        self,
        method: str,
        url: str,
        name: str | None = None,
        data: Any = None,
        catch_response: bool = False,
        stream: bool = False,
        headers: Any = None,
        auth: tuple[str, str] | None = None,
        json: Any = None,
        allow_redirects: bool = True,
        context: dict[str, Any] | None = None,
        **settings: Any,
    ) -> Any:
        """As `HttpSession.request`, of what geventhttpclient can: `params` and `files` beside these."""
        whole = url if url.startswith(("http://", "https://")) else f"{self.base_url}{url}"
        sent = {"Accept-Encoding": "gzip, deflate, br", **(headers or {})}
        if auth or self._authorization:
            sent["Authorization"] = _basic(*auth) if auth else self._authorization
        if data is None and json is not None:
            data = json_.dumps(json)
            sent = {"Content-Type": "application/json", "Accept": "application/json", **sent}
        if not allow_redirects:
            settings["max_redirects"] = 0
        with Request(self._user, kind_of) as asked:
            response = self._answer(whole, method, sent, data, settings)
            received = _length(response, stream)
            asked.ended_ns = time.monotonic_ns()
        reporter = asked.reporter(
            method=method,
            name=name or self._name or url,
            url=whole,
            status=response.status_code,
            sent_bytes=len(data) if isinstance(data, (str, bytes)) else 0,
            received_bytes=received,
            context=context,
            response=response,
        )
        if catch_response:
            return ResponseContextManager(response, reporter)
        reporter.judge(response)
        return response

    def get(self, url: str, **settings: Any) -> Any:
        """GET."""
        return self.request("GET", url, **settings)

    def head(self, url: str, **settings: Any) -> Any:
        """HEAD."""
        return self.request("HEAD", url, **settings)

    def options(self, url: str, **settings: Any) -> Any:
        """OPTIONS."""
        return self.request("OPTIONS", url, **settings)

    def delete(self, url: str, **settings: Any) -> Any:
        """DELETE."""
        return self.request("DELETE", url, **settings)

    def post(self, url: str, data: Any = None, **settings: Any) -> Any:
        """POST."""
        return self.request("POST", url, data=data, **settings)

    def put(self, url: str, data: Any = None, **settings: Any) -> Any:
        """PUT."""
        return self.request("PUT", url, data=data, **settings)

    def patch(self, url: str, data: Any = None, **settings: Any) -> Any:
        """PATCH."""
        return self.request("PATCH", url, data=data, **settings)

    def _answer(self, url: str, method: str, headers: Any, data: Any, settings: dict[str, Any]) -> FastResponse:
        try:
            found: Any = self.client.urlopen(url, method=method, headers=headers, payload=data, **settings)
            answer: FastResponse = found
            return answer
        except _FAILURES as error:
            return ErrorResponse(CompatRequest(url, method, Headers()), _as_exception(error))


def _length(response: FastResponse, stream: bool) -> int:
    """Reads the body, unless the task does that itself."""
    if stream:
        return int(str(response.headers.get("content-length") or 0))
    try:
        return len(response.content)
    except _FAILURES as error:
        response.error = _as_exception(error)
        return 0


def _as_exception(error: BaseException) -> Exception:
    """gevent's timeouts are none, so that nobody catches them by accident."""
    return error if isinstance(error, Exception) else TimeoutError(str(error))


def _basic(user: str, password: str) -> str:
    return "Basic " + b64encode(f"{user}:{password}".encode("latin1")).decode()


def kind_of(error: BaseException) -> str:
    """What sort of failure an exception of geventhttpclient is, as weir counts them."""
    if isinstance(error, RetriesExceeded):
        original = getattr(error, "original", None)
        return kind_of(original) if isinstance(original, BaseException) else "check"
    if isinstance(error, TimeoutError):
        return "timeout"
    if isinstance(error, (ConnectionResetError, BrokenPipeError, HTTPConnectionClosed)):
        return "reset"
    return "connect" if isinstance(error, OSError) else "protocol"


class FastHttpUser(User):
    """A user with `client`, which is a session of geventhttpclient."""

    abstract = True
    network_timeout: float = 60.0
    connection_timeout: float = 60.0
    max_redirects = 30
    max_retries = 0
    insecure = True
    """Whether any certificate of the server is good enough."""
    default_headers: Any = None
    concurrency = 10
    client_pool: Any = None
    ssl_context_factory: Callable[[], Any] | None = None
    proxy_host: str | None = None
    proxy_port: int | None = None

    def __init__(self, environment: "Environment") -> None:
        super().__init__(environment)
        trusting = ssl._create_unverified_context if self.insecure else ssl.create_default_context
        self.client = FastHttpSession(
            base_url(self),
            self,
            client_pool=self.client_pool,
            network_timeout=self.network_timeout,
            connection_timeout=self.connection_timeout,
            max_redirects=self.max_redirects,
            max_retries=self.max_retries,
            insecure=self.insecure,
            concurrency=self.concurrency,
            headers=self.default_headers,
            ssl_context_factory=self.ssl_context_factory or trusting,
            proxy_host=self.proxy_host,
            proxy_port=self.proxy_port,
        )

    @property
    def rest(self) -> Any:
        """Says what there is in its place."""
        missing("FastHttpUser.rest", "weir has self.client.request(..., json=..., catch_response=True) and response.json()")
