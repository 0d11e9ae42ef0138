"""Checks who may see the page and use its buttons. `Guard` checks every request before the route.

- The header `Host` must name an address of this server. The check prevents DNS rebinding.
- The header `Origin`, if a request has it, must name this page. A POST request must have this header.
- The first request must have the token of the printed address in its URL; later requests need the cookie with the
  token. Without a token, other users of the machine could open the page, even on a loopback address. Scripts cannot
  read the cookie, and pages of other sites cannot send the cookie.
- An action is a POST request with a JSON body and a second token. Only the page contains the second token.
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

from weir.live.address import Address, accepts_host

TOKEN = "token"
FORM_TOKEN_HEADER = "x-weir-form"
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
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
"""Headers of every response. A route may override a header."""


@dataclass(frozen=True, slots=True)
class Keys:
    """The secrets of one server. A restart creates new secrets."""

    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    """The token in the printed address and in the cookie."""
    form: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    """The token in the page's POST requests."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Decides which requests the server accepts. `address` has the server's actual port. Pure."""

    address: Address
    keys: Keys

    @property
    def cookie(self) -> str:
        """The cookie's name with the port, because browsers send a cookie to all ports of a host."""
        return f"weir-{self.address.port}"

    def find_refusal(self, method: str, headers: Headers, query: Mapping[str, list[str]]) -> tuple[int, str] | None:
        """Returns the status and the text for a refused request; None for an accepted request."""
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        is_post, has_cookie = method == "POST", self.has_cookie(headers)
        content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        printed = "the address that weir printed"
        has_host = len(hosts) == 1 and accepts_host(self.address, hosts[0])
        requirements = [
            (is_post or method == "GET", 405, "expected GET or POST"),
            (has_host, 421, f"Host: expected the host of {printed}"),
            (origins in ([], [f"http://{host}" for host in hosts]), 403, "Origin: expected the address of this page"),
        ]
        if is_post:
            has_form_token = _equals_secret(headers.get(FORM_TOKEN_HEADER, ""), self.keys.form)
            requirements += [
                (bool(origins), 403, "Origin: found none, expected the address of this page"),
                (has_cookie, 403, f"Cookie: expected the page's cookie; open {printed}"),
                (has_form_token, 403, f"{FORM_TOKEN_HEADER}: expected the page's token; reload the page"),
                (content_type == "application/json", 415, "Content-Type: expected application/json"),
            ]
        else:
            has_token = has_cookie or self.has_token(query)
            requirements.append((has_token, 403, f"URL: expected {printed}, including ?{TOKEN}=..."))
        return next(((status, text) for is_met, status, text in requirements if not is_met), None)

    def has_cookie(self, headers: Headers) -> bool:
        return _equals_secret(cookie_parser(headers.get("cookie", "")).get(self.cookie, ""), self.keys.token)

    def has_token(self, query: Mapping[str, list[str]]) -> bool:
        given = query.get(TOKEN, [])
        return len(given) == 1 and _equals_secret(given[0], self.keys.token)


class Guard:
    """An ASGI wrapper of `app`: forwards accepted requests, refuses others, and adds `HEADERS` to all responses."""

    def __init__(self, app: ASGIApp, rules: Rules) -> None:
        self._app = app
        self._rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        query = parse_qs(scope["query_string"].decode("latin-1"))
        refusal = self._rules.find_refusal(scope["method"], headers, query)
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

        app = self._app if refusal is None else PlainTextResponse(refusal[1] + "\n", refusal[0])
        await app(scope, receive, answer)


def _equals_secret(given: str, expected: str) -> bool:
    return compare_digest(given.encode("utf-8", "replace"), expected.encode())
