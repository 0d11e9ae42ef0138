"""`weir locust`: a locustfile as simple as they come, a server that keeps what it was asked, and loads on it."""

import csv
import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.conftest import StartWeir, Weir

Serve = Callable[..., str]

SIMPLE = """
from locust import HttpUser, constant, task

class Me(HttpUser):
    wait_time = constant(0.05)

    @task
    def index(self):
        self.client.get("/")
"""


class Shop(ThreadingHTTPServer):
    """A server that keeps what it was asked: (method, path, headers, body)."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[tuple[str, str, dict[str, str], bytes]] = []
        self.has_answered = threading.Condition()

    def handle_error(self, *_: object) -> None:
        """A user who is stopped under a request leaves a broken connection."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def wait_for(self, happened: Callable[[], bool], process: "subprocess.Popen[str]") -> None:
        """Until it is so after some request, as long as the process lives that makes them."""
        with self.has_answered:
            while not self.has_answered.wait_for(happened, timeout=1):
                assert process.poll() is None

    def paths(self) -> list[str]:
        return [path for _, path, _, _ in self.asked]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Shop

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with self.server.has_answered:
            self.server.asked.append((self.command, self.path, {name.lower(): value for name, value in self.headers.items()}, body))
            self.server.has_answered.notify_all()
        path = self.path.partition("?")[0]
        status = {"/missing": 404, "/broken": 500, "/away": 302}.get(path, 200)
        answer = b'{"token": "abc"}'
        self.send_response(status)
        if path == "/login":
            self.send_header("Set-Cookie", "session=1")
        if path == "/away":
            self.send_header("Location", "/arrived")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer)

    def __getattr__(self, name: str) -> Callable[[], None]:
        if name.startswith("do_"):
            return self._answer
        raise AttributeError(name)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def shop() -> Iterator[Shop]:
    """The server."""
    with Shop() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


Locust = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def locust(tmp_path: Path, weir: Weir) -> Locust:
    """A function that writes a locustfile and runs `weir locust --headless` on it, by default with two users for a second."""

    def run(source: str, host: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        (tmp_path / "locustfile.py").write_text(source)
        usual = ["--headless", "-H", host, "-u", "2", "-r", "100", "-t", "1s", "--only-summary"]
        return weir("locust", *usual, *arguments)

    return run


def kept(tmp_path: Path, weir: Weir) -> dict[str, Any]:
    """What `--out a.weir` has kept."""
    found: dict[str, Any] = json.loads(weir("report", "a.weir", "--json").stdout)
    return found


def stats(path: Path) -> dict[str, dict[str, str]]:
    """The rows of a `_stats.csv`, by name."""
    return {row["Name"]: row for row in csv.DictReader(path.read_text().splitlines())}


@contextmanager
def running(start_weir: StartWeir, shop: Shop, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """A load without end that has begun to ask."""
    process = start_weir("locust", "--headless", "-H", shop.url, "-u", "2", "-r", "9", "--only-summary", *arguments)
    shop.wait_for(lambda: bool(shop.asked), process)
    yield process


def workers_of(process: "subprocess.Popen[str]") -> list[int]:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(child) for child in children]
