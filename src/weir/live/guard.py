"""Who may see the page and press its buttons: every request passes here first, and what is refused goes no further.

- Only requests for this server: a `Host` that is none of its addresses is somebody's DNS (rebinding).
- Only from its own pages: an `Origin` that is another is refused, and what changes something must have one.
- Only with the token of the address that was printed: in the first address, then in a cookie that no script can read and no other site
  makes a browser send. On loopback as well: other users of the machine reach that too.
- What changes something is a POST of JSON, with a second token that only the page itself knows, and never a GET.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from hmac import compare_digest
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from weir.live.address import Address, answers_to

TOKEN = "token"
"""The part of the address's query that carries the token."""
FORM_TOKEN_HEADER = "x-weir-form"
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = {
    "Content-Security-Policy": PAGE_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Of every answer; a page that needs another policy brings its own."""


@dataclass(frozen=True, slots=True)
class Keys:
    """The secrets of one server; they end with it."""

    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    """Of the address that is printed, and of the cookie."""
    form: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    """Of the page, for what changes something."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request goes no further."""

    status: int
    text: str


@dataclass(frozen=True, slots=True)
class Rules:
    """What a request must be. Pure.

    Args:
        address: where the server listens, with its port.
        keys: its secrets.
    """

    address: Address
    keys: Keys

    @property
    def cookie(self) -> str:
        """The cookie's name: browsers keep cookies by host alone, and several servers may run on one."""
        return f"weir-{self.address.port}"

    def refusal(self, method: str, headers: Headers, query: Mapping[str, list[str]]) -> Refusal | None:
        """Why a request is refused; None where it is not."""
        if method not in ("GET", "POST"):
            return Refusal(405, "expected GET or POST")
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not answers_to(self.address, hosts[0]):
            return Refusal(421, "Host: expected the address that weir printed")
        origins = headers.getlist("origin")
        if origins and origins != [f"http://{hosts[0]}"]:
            return Refusal(403, "Origin: expected this page's own")
        if method == "POST":
            return self._of_post(headers, has_origin=bool(origins))
        if not (self.has_cookie(headers) or self.has_token(query)):
            return Refusal(403, f"expected the address that weir printed, with its ?{TOKEN}=...")
        return None

    def _of_post(self, headers: Headers, *, has_origin: bool) -> Refusal | None:
        if not has_origin:
            return Refusal(403, "Origin: found none, expected this page's own")
        if not self.has_cookie(headers):
            return Refusal(403, "expected the cookie of the address that weir printed")
        if not _same(headers.get(FORM_TOKEN_HEADER, ""), self.keys.form):
            return Refusal(403, f"{FORM_TOKEN_HEADER}: expected the token of the page; load it again")
        if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return Refusal(415, "Content-Type: expected application/json")
        return None

    def has_cookie(self, headers: Headers) -> bool:
        """Whether the cookie carries the token."""
        return _same(cookie_parser(headers.get("cookie", "")).get(self.cookie, ""), self.keys.token)

    def has_token(self, query: Mapping[str, list[str]]) -> bool:
        """Whether the address carries the token."""
        given = query.get(TOKEN, [])
        return len(given) == 1 and _same(given[0], self.keys.token)


class Guard:
    """Lets through what `Rules` allow, and puts `HEADERS` on every answer."""

    def __init__(self, app: ASGIApp, rules: Rules) -> None:
        self._app = app
        self._rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request (ASGI)."""
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        query = parse_qs(scope["query_string"].decode("latin-1"))
        refusal = self._rules.refusal(scope["method"], headers, query)
        came_with_token = refusal is None and not self._rules.has_cookie(headers)

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                answered = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    answered.setdefault(name, value)
                if came_with_token:
                    cookie = f"{self._rules.cookie}={self._rules.keys.token}; HttpOnly; SameSite=Strict; Path=/"
                    answered.append("Set-Cookie", cookie)
            await send(message)

        app = self._app if refusal is None else PlainTextResponse(refusal.text + "\n", refusal.status)
        await app(scope, receive, answer)


def _same(given: str, expected: str) -> bool:
    return compare_digest(given.encode("utf-8", "replace"), expected.encode())
