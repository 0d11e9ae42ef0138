"""The workloads `hello` and `echo` in Sanic."""

from sanic import HTTPResponse, Request, Sanic, json, text

app = Sanic("weir")


@app.get("/")
async def hello(request: Request) -> HTTPResponse:
    return text("Hello, world!")


@app.post("/bench/receive_data")
async def receive_data(request: Request) -> HTTPResponse:
    return json({"received": True, "data": request.json})
