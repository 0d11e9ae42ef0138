"""Serves the workloads `hello`, `echo`, `ping` and `cpu` with Flask."""

import hashlib
import os

import requests
from flask import Flask, Response, request
from flask.typing import ResponseReturnValue

ROUNDS = 1000

app = Flask(__name__)

# requests keeps up to 10 connections to the upstream, enough for the threads of a worker.
upstream = requests.Session()


@app.get("/")
def hello() -> ResponseReturnValue:
    return Response("Hello, world!", mimetype="text/plain")


@app.post("/bench/receive_data")
def receive_data() -> ResponseReturnValue:
    return {"received": True, "data": request.get_json()}


@app.get("/ticket/ping")
def ping() -> ResponseReturnValue:
    answer = upstream.get(os.environ["UPSTREAM_URL"] + "/delay")
    answer.raise_for_status()
    return Response(answer.content, content_type=answer.headers["Content-Type"])


@app.get("/cpu")
def cpu() -> ResponseReturnValue:
    digest = request.args["text"].encode()
    for _ in range(ROUNDS):
        digest = hashlib.sha256(digest).digest()
    return {"digest": digest.hex()}
