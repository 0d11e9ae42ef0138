"""The HTTP routes of the live page: the page, its event stream, logs, past runs, reports and buttons. A GET request
only reads; a POST request performs an action. `Guard` checks every request first."""

import json
import os
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route

from weir.live.broadcaster import Broadcaster
from weir.live.event_queue import EventQueue
from weir.live.runs import RunFolder, UnknownRunError
from weir.live.security import Guard, Keys, Rules
from weir.model.errors import WeirError
from weir.web_assets import hash_for_policy, load_web_assets

LARGEST_BODY = 65_536
LOG_TAIL_BYTES = 16_384
_Handler = Callable[[Request], Awaitable[Response]]
_Computed = TypeVar("_Computed")
_LATER = "a load is running: weir computes the result after the end of the load"


class Site:
    """The routes of the page of a run, a load or a folder of runs. Raises WeirError if the web bundle is missing."""

    def __init__(self, queue: EventQueue, hub: Broadcaster, runs: RunFolder | None, keys: Keys) -> None:
        self._queue = queue
        self._hub = hub
        self._runs = runs
        self._keys = keys
        self._bundle = load_web_assets("live")
        report = load_web_assets("report")
        script, style = hash_for_policy(report.script), hash_for_policy(report.style)
        # A report has its own policy. Its content comes from a run file, and its script must not reach this page.
        self._report_policy = (
            f"default-src 'none'; script-src {script}; style-src {style}; img-src data:; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox allow-scripts allow-downloads"
        )
        loader = PackageLoader("weir.live", "templates")
        environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
        self._page = environment.get_template("live.html.j2")
        self._is_starting = False

    def app(self, rules: Rules) -> Guard:
        reading: dict[str, _Handler] = {
            "/": self._show,
            "/news": self._news,
            "/log": self._log,
            "/runs": self._list_runs,
            "/found": self._found,
            "/report": self._report,
            "/live.js": _serve_text(self._bundle.script, "text/javascript"),
            "/live.css": _serve_text(self._bundle.style, "text/css"),
        }
        doing = {"/stop": self._stop, "/skip": self._skip, "/extend": self._extend, "/start": self._start}
        routes = [Route(path, answer, methods=["GET"]) for path, answer in reading.items()]
        routes += [Route(path, answer, methods=["POST"]) for path, answer in doing.items()]
        return Guard(Starlette(routes=routes), rules)

    async def _show(self, _: Request) -> Response:
        controls, token = self._queue.controls, self._keys.form
        values = {"form_token": token, "controls": controls.names, "form": controls.form}
        return HTMLResponse(self._page.render(values, has_runs=self._runs is not None))

    async def _news(self, _: Request) -> Response:
        return StreamingResponse(self._hub.stream(), media_type="text/event-stream")

    async def _log(self, request: Request) -> Response:
        path = self._queue.log(request.query_params.get("name", ""))
        if path is None:
            return _text("found no log with this name\n", 404)
        return _text(await run_in_threadpool(read_tail, path))

    async def _list_runs(self, _: Request) -> Response:
        entries = await run_in_threadpool(self._folder.entries)
        return _json({"runs": [asdict(entry) for entry in entries]})

    async def _found(self, request: Request) -> Response:
        folder = self._folder
        if self._is_busy:
            return _json({"later": _LATER})
        found, problem, status = await _compute(folder.found, request)
        facts = ("sentence", "validity", "indicative")
        return _json({"message": problem} if found is None else {name: getattr(found, name) for name in facts}, status)

    async def _report(self, request: Request) -> Response:
        folder = self._folder
        if self._is_busy:
            return _text(f"{_LATER}\n", 503)
        page, problem, status = await _compute(folder.report, request)
        if page is None:
            return _text(f"{problem}\n", status)
        headers = {"Content-Security-Policy": self._report_policy}
        return Response(page.encode("utf-8", "replace"), media_type="text/html", headers=headers)

    @property
    def _folder(self) -> RunFolder:
        """The folder of past runs. Raises HTTPException (status 404) if the page has no folder of runs."""
        if self._runs is None:
            raise HTTPException(404, "this page shows no past runs: open the page of weir ui\n")
        return self._runs

    @property
    def _is_busy(self) -> bool:
        """Whether a load is running or starting. A computation for viewers would then disturb the load."""
        return self._is_starting or self._queue.is_measuring

    async def _stop(self, _: Request) -> Response:
        return await _run_action(self._queue.controls.stop, "nothing is running")

    async def _skip(self, request: Request) -> Response:
        asked = await _read_json(request)
        # The viewer clicked during one trial. When the request arrives, the next trial may run.
        if asked is None or asked.get("trial") != self._queue.number:
            return _json({"message": "the trial has already ended"}, 409)
        return await _run_action(self._queue.controls.skip, "no trial is running")

    async def _extend(self, _: Request) -> Response:
        return await _run_action(self._queue.controls.extend, "the last block has ended")

    async def _start(self, request: Request) -> Response:
        start = self._queue.controls.start
        asked = await _read_json(request)
        if start is None:
            return _json({"message": "this page cannot start loads: open the page of weir ui"}, 404)
        if asked is None or not all(isinstance(value, str) for value in asked.values()):
            return _json({"message": f"expected a JSON object with text values and at most {LARGEST_BODY} bytes"}, 400)
        try:
            self._is_starting = True
            if self._runs is not None:
                # Waits for running computations. `_is_starting` prevents new ones, which would disturb the load.
                await run_in_threadpool(self._runs.wait)
            await run_in_threadpool(start, asked)
        except WeirError as error:
            return _json({"message": error.message, "hint": error.hint}, 422)
        finally:
            self._is_starting = False
        return _json({})


def _serve_text(text: str, media_type: str) -> _Handler:
    async def serve(_: Request) -> Response:
        return Response(text, media_type=media_type)

    return serve


def read_tail(path: Path) -> str:
    """Returns the last lines of a growing log file; empty if the file does not exist yet. Replaces invalid UTF-8."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - LOG_TAIL_BYTES))
            data = file.read(LOG_TAIL_BYTES)
    except OSError:
        return ""
    if size > LOG_TAIL_BYTES:
        # The first line is probably incomplete.
        data = data.partition(b"\n")[2]
    return data.decode("utf-8", "replace")


async def _read_json(request: Request) -> dict[str, Any] | None:
    """Returns the JSON object in the request's body. None if the body is no JSON object or is too long."""
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


async def _compute(compute: Callable[[str], _Computed], request: Request) -> tuple[_Computed | None, str, int]:
    """Calls `compute` with the requested run. Returns the result, an error message and the HTTP status."""
    try:
        return await run_in_threadpool(compute, request.query_params.get("run", "")), "", 200
    except UnknownRunError:
        return None, "found no run with this name", 404
    except WeirError as error:
        return None, error.message, 422


async def _run_action(act: Callable[[], bool] | None, otherwise: str) -> Response:
    if act is None:
        return _json({"message": "this page has no such button"}, 404)
    return _json({}) if await run_in_threadpool(act) else _json({"message": otherwise}, 409)


def _json(value: Any, status: int = 200) -> Response:
    # Writes ASCII with escapes: foreign text may contain lone surrogates.
    return Response(json.dumps(value), status, media_type="application/json")


def _text(text: str, status: int = 200) -> Response:
    return Response(text.encode("utf-8", "replace"), status, media_type="text/plain")
