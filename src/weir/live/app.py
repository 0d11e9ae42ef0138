"""What the page's server answers: the page, its stream of news, logs, past runs and their reports; and what its buttons do.

Reading is GET and changes nothing; what changes something is POST. `Guard` stands in front of all of it.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from weir.bundle import load_bundle, policy_hash
from weir.live.board import Board
from weir.live.guard import Guard, Keys, Rules
from weir.live.hub import Hub
from weir.live.logs import tail
from weir.live.runs import RunFolder, UnknownRunError
from weir.model.errors import WeirError

LARGEST_BODY = 65_536
_LATER = "a load is being measured: this is computed when it has ended"


class Site:
    """One page: of a run, of a load, or of a folder of runs.

    Args:
        board: what goes on.
        hub: its viewers.
        runs: the folder that can be browsed; None where there is none.
        keys: the server's secrets.

    Raises:
        WeirError: the web bundle is missing.
    """

    def __init__(self, board: Board, hub: Hub, runs: RunFolder | None, keys: Keys) -> None:
        self._board = board
        self._hub = hub
        self._runs = runs
        self._keys = keys
        self._bundle = load_bundle("live")
        report = load_bundle("report")
        # The report's own policy, which also stands in it, and no reach to this page: whatever a run file holds stays in there.
        self._report_policy = (
            f"default-src 'none'; script-src {policy_hash(report.script)}; style-src {policy_hash(report.style)}; img-src data:; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox allow-scripts allow-downloads"
        )
        environment = Environment(loader=PackageLoader("weir.live", "templates"), autoescape=True, undefined=StrictUndefined)
        self._page = environment.get_template("live.html.j2")
        self._is_starting = False

    def app(self, rules: Rules) -> Guard:
        """The application, behind its guard."""
        reading: dict[str, Callable[[Request], Awaitable[Response]]] = {
            "/": self._show,
            "/live.js": self._script,
            "/live.css": self._style,
            "/log": self._log,
            "/runs": self._list_runs,
            "/found": self._found,
            "/report": self._report,
        }
        doing = {"/stop": self._stop, "/skip": self._skip, "/extend": self._extend, "/start": self._start}
        routes = [Route(path, answer, methods=["GET"]) for path, answer in reading.items()]
        routes += [Route(path, answer, methods=["POST"]) for path, answer in doing.items()]
        return Guard(Starlette(routes=[*routes, Route("/news", self._news, methods=["GET"])]), rules)

    async def _show(self, _: Request) -> Response:
        page = self._page.render(form_token=self._keys.form, controls=self._board.controls.names, has_runs=self._runs is not None)
        return HTMLResponse(page)

    async def _script(self, _: Request) -> Response:
        return Response(self._bundle.script, media_type="text/javascript")

    async def _style(self, _: Request) -> Response:
        return Response(self._bundle.style, media_type="text/css")

    async def _news(self, _: Request) -> Response:
        return _EventStream(self._hub.stream())

    async def _log(self, request: Request) -> Response:
        path = self._board.log(request.query_params.get("name", ""))
        if path is None:
            return _text("no log of that name\n", 404)
        return _text(await run_in_threadpool(tail, path))

    async def _list_runs(self, _: Request) -> Response:
        if self._runs is None:
            return _no_runs()
        entries = await run_in_threadpool(self._runs.entries)
        return _json({"runs": [entry.to_json() for entry in entries]})

    async def _found(self, request: Request) -> Response:
        if self._runs is None:
            return _no_runs()
        if self._is_busy:
            return _json({"later": _LATER})
        try:
            found = await run_in_threadpool(self._runs.found, request.query_params.get("run", ""))
        except UnknownRunError:
            return _json({"message": "no run of that name"}, 404)
        except WeirError as error:
            return _json({"message": error.message}, 422)
        return _json(found.to_json())

    async def _report(self, request: Request) -> Response:
        if self._runs is None:
            return _no_runs()
        if self._is_busy:
            return _text(f"{_LATER}\n", 503)
        try:
            page = await run_in_threadpool(self._runs.report, request.query_params.get("run", ""))
        except UnknownRunError:
            return _text("no run of that name\n", 404)
        except WeirError as error:
            return _text(f"{error.message}\n", 422)
        return Response(page.encode("utf-8", "replace"), media_type="text/html", headers={"Content-Security-Policy": self._report_policy})

    @property
    def _is_busy(self) -> bool:
        """Whether a load goes on that computing would disturb."""
        return self._is_starting or self._board.is_measuring

    async def _stop(self, _: Request) -> Response:
        return await _done(self._board.controls.stop, "nothing goes on that could be stopped")

    async def _skip(self, request: Request) -> Response:
        asked = await _asked(request)
        # What was clicked was the button of a trial; a moment later it may be another's.
        if asked is None or asked.get("trial") != self._board.number:
            return _json({"message": "that trial has ended"}, 409)
        return await _done(self._board.controls.skip, "no trial goes on that could be skipped")

    async def _extend(self, _: Request) -> Response:
        return await _done(self._board.controls.extend, "the last block is over")

    async def _start(self, request: Request) -> Response:
        start = self._board.controls.start
        asked = await _asked(request)
        if start is None:
            return _json({"message": "this page starts no loads"}, 404)
        if asked is None or not all(isinstance(value, str) for value in asked.values()):
            return _json({"message": f"expected a JSON object of texts, of at most {LARGEST_BODY} bytes"}, 400)
        try:
            self._is_starting = True
            if self._runs is not None:
                # What is being computed ends first, and nothing else begins: none of it falls into the load.
                await run_in_threadpool(self._runs.wait)
            await run_in_threadpool(start, asked)
        except WeirError as error:
            return _json({"message": error.message, "hint": error.hint}, 422)
        finally:
            self._is_starting = False
        return _json({})


class _EventStream(Response):
    """Server-sent events, until the stream ends or the other side goes."""

    def __init__(self, events: AsyncGenerator[bytes, None]) -> None:
        super().__init__(media_type="text/event-stream")
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        parts = [asyncio.ensure_future(self._send_all(send)), asyncio.ensure_future(_gone(receive))]
        try:
            await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for part in parts:
                part.cancel()
            await asyncio.gather(*parts, return_exceptions=True)

    async def _send_all(self, send: Send) -> None:
        headers = [(name, value) for name, value in self.raw_headers if name != b"content-length"]
        await send({"type": "http.response.start", "status": self.status_code, "headers": headers})
        async with aclosing(self._events) as events:
            async for event in events:
                await send({"type": "http.response.body", "body": event, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _asked(request: Request) -> dict[str, Any] | None:
    """The request's body, a JSON object; None where it is none, or too long."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > LARGEST_BODY:
            return None
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


async def _done(act: Callable[[], bool] | None, otherwise: str) -> Response:
    if act is None:
        return _json({"message": "this page has no such button"}, 404)
    return _json({}) if await run_in_threadpool(act) else _json({"message": otherwise}, 409)


def _no_runs() -> Response:
    return _text("this page shows no past runs: weir ui does\n", 404)


def _json(value: Any, status: int = 200) -> Response:
    # In ASCII: what came from elsewhere may hold what is no Unicode.
    return Response(json.dumps(value), status, media_type="application/json")


def _text(text: str, status: int = 200) -> Response:
    return Response(text.encode("utf-8", "replace"), status, media_type="text/plain")
