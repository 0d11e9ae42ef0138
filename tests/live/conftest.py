"""Serves a live page, with a client that sends HTTP requests field by field."""

import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest

from weir.live import Address, Controls, EventQueue, LiveServer, PageInfo, RunFolder
from weir.live.security import Keys

KEYS = Keys(token="the-token", form="the-form-token")
Served = Callable[..., "Visitor"]


@dataclass
class Answer:
    """A response."""

    status: int
    headers: dict[str, str]
    text: str

    def json(self) -> Any:
        return json.loads(self.text)


@dataclass
class Visitor:
    """A client of a server. By default it sends the cookie and the host that a browser would send."""

    server: LiveServer
    board: EventQueue
    keys: Keys = KEYS
    streams: list[http.client.HTTPConnection] = field(default_factory=list)

    @property
    def host(self) -> str:
        return self.server.address.shown

    @property
    def cookie(self) -> str:
        return f"weir-{self.server.address.port}={self.keys.token}"

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.server.address.host, self.server.address.port, timeout=30)

    def ask(self, method: str, path: str, *, body: str | None = None, **headers: str | None) -> Answer:
        """Sends one request, without the headers whose value is None."""
        given: dict[str, str | None] = {"Host": self.host, "Cookie": self.cookie}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = self.connection()
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            if body is not None:
                given["Content-Length"] = str(len(body.encode()))
            for name, value in given.items():
                if value is not None:
                    connection.putheader(name, value)
            connection.endheaders(None if body is None else body.encode())
            answer = connection.getresponse()
            text = answer.read().decode()
            return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, text)
        finally:
            connection.close()

    def get(self, path: str, **headers: str | None) -> Answer:
        return self.ask("GET", path, **headers)

    def post(self, path: str, value: Any = None, **headers: str | None) -> Answer:
        """Sends a request in the way of the page."""
        given: dict[str, str | None] = {
            "Origin": f"http://{self.host}", "X-Weir-Form": self.keys.form, "Content-Type": "application/json",
        }  # fmt: skip
        return self.ask("POST", path, body=json.dumps({} if value is None else value), **given | headers)

    def news(self) -> Iterator[dict[str, Any]]:
        """Yields the stream of news until its end."""
        connection = self.connection()
        self.streams.append(connection)
        connection.request("GET", "/news", headers={"Host": self.host, "Cookie": self.cookie})
        answer = connection.getresponse()
        assert answer.status == 200
        assert answer.getheader("content-type") == "text/event-stream; charset=utf-8"
        for line in answer:
            if line.startswith(b"data: "):
                yield json.loads(line.removeprefix(b"data: "))

    def close(self) -> None:
        for connection in self.streams:
            connection.close()


@pytest.fixture
def served(bundle: None) -> Iterator[Served]:
    """Returns a function that serves a page and returns a visitor; the page has a board or controls, and a folder of
    runs."""
    with ExitStack() as stack:

        def serve(
            board: EventQueue | None = None,
            *,
            controls: Controls | None = None,
            runs: RunFolder | None = None,
            address: Address | None = None,
            **more: Any,
        ) -> Visitor:
            shown = board or EventQueue(PageInfo("A load"), controls)
            visitor = Visitor(
                stack.enter_context(LiveServer(shown, address or Address(), runs=runs, keys=KEYS, **more)), shown
            )
            stack.callback(visitor.close)
            return visitor

        yield serve
