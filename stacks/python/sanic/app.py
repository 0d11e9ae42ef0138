"""Serves the workloads `hello`, `echo`, `ping` and `cpu` with Sanic."""

import hashlib
import os

import aiohttp
import requests
from sanic import HTTPResponse, Request, Sanic, json, raw, text

ROUNDS = 1000
UPSTREAM = os.environ["UPSTREAM_URL"] + "/delay"

app = Sanic("weir")


@app.before_server_start
async def open_client(app: Sanic) -> None:
    # As many connections to the upstream as waiting requests; aiohttp's default is at most 100.
    app.ctx.upstream = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), raise_for_status=True)


@app.after_server_stop
async def close_client(app: Sanic) -> None:
    await app.ctx.upstream.close()


@app.get("/")
async def hello(request: Request) -> HTTPResponse:
    return text("Hello, world!")


@app.post("/bench/receive_data")
async def receive_data(request: Request) -> HTTPResponse:
    return json({"received": True, "data": request.json})


async def ping(request: Request) -> HTTPResponse:
    async with request.app.ctx.upstream.get(UPSTREAM) as answer:
        return raw(await answer.read(), content_type=answer.headers["Content-Type"])


blocking_client = requests.Session()


async def blocking_ping(request: Request) -> HTTPResponse:
    """Blocks the event loop, and with it all other requests: a common mistake."""
    answer = blocking_client.get(UPSTREAM)
    answer.raise_for_status()
    return raw(answer.content, content_type=answer.headers["Content-Type"])


app.add_route(blocking_ping if os.environ.get("BLOCKING") else ping, "/ticket/ping", name="ping")


@app.get("/cpu")
async def cpu(request: Request) -> HTTPResponse:
    digest = request.args.get("text").encode()
    for _ in range(ROUNDS):
        digest = hashlib.sha256(digest).digest()
    return json({"digest": digest.hex()})
