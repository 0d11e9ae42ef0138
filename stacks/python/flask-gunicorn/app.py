"""The workloads `hello` and `echo` in Flask."""

from flask import Flask, Response, request
from flask.typing import ResponseReturnValue

app = Flask(__name__)


@app.get("/")
def hello() -> ResponseReturnValue:
    return Response("Hello, world!", mimetype="text/plain")


@app.post("/bench/receive_data")
def receive_data() -> ResponseReturnValue:
    return {"received": True, "data": request.get_json()}
