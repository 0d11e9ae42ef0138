"""Serves the workloads `hello` and `echo` with FastAPI."""

from typing import Any

from fastapi import FastAPI
from fastapi.responses import PlainTextResponse

app = FastAPI()


@app.get("/", response_class=PlainTextResponse)
async def hello() -> str:
    return "Hello, world!"


@app.post("/bench/receive_data")
async def receive_data(data: dict[str, Any]) -> dict[str, Any]:
    return {"received": True, "data": data}
