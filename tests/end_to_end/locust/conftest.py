"""`weir locust` in tests: a simple locustfile, a server that keeps its requests, and loads on this server."""

import json
import os
import re
import select
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.conftest import StartWeir, Weir
from weir.store import RunReader
from weir.store.rows import IntervalRow

SIMPLE = """
from locust import HttpUser, constant, task

class Me(HttpUser):
    wait_time = constant(0.05)

    @task
    def index(self):
        self.client.get("/")
"""


class Shop(ThreadingHTTPServer):
    """A server that keeps method and path of every request."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[tuple[str, str]] = []
        self.clients: set[tuple[str, int]] = set()
        """Addresses of connections; each user has one connection."""
        self.has_answered = threading.Condition()
        self.released = threading.Event()
        """When this is set, the server responds to requests of /hang."""

    def handle_error(self, *_: object) -> None:
        """Reports no error: a user who is stopped during a request leaves a broken connection."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def wait_for(self, happened: Callable[[], bool], process: "subprocess.Popen[str]") -> None:
        """Waits until `happened` returns true after a request. Fails if the process that makes the requests ends."""
        with self.has_answered:
            while not self.has_answered.wait_for(happened, timeout=1):
                assert process.poll() is None

    def paths(self) -> list[str]:
        return [path for _, path in self.asked]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Shop

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with self.server.has_answered:
            self.server.asked.append((self.command, self.path))
            self.server.clients.add(self.client_address)
            self.server.has_answered.notify_all()
        path = self.path.partition("?")[0]
        if path == "/hang":
            self.server.released.wait()
        status = {"/missing": 404, "/broken": 500}.get(path, 200)
        answer = b"done"
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer)

    def __getattr__(self, name: str) -> Callable[[], None]:
        if name.startswith("do_"):
            return self._answer
        raise AttributeError(name)

    def log_message(self, *_: object) -> None:
        """Prints no log."""


@pytest.fixture
def shop() -> Iterator[Shop]:
    with Shop() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.released.set()
        server.shutdown()
        thread.join()


Locust = Callable[..., "Recorded"]


@dataclass(frozen=True, slots=True)
class Recorded:
    """A finished load."""

    done: "subprocess.CompletedProcess[str]"
    weir: dict[str, Any]
    """The load's JSON; empty if weir recorded no load."""

    @property
    def locust(self) -> dict[str, tuple[int, int]]:
        """Requests and failures by type and name, as Locust counts them."""
        # Workers print a report too, and the master prints the last one.
        rows = json.loads(re.split(r"^(?=\[)", self.done.stdout, flags=re.MULTILINE)[-1])
        return {f"{row['method']} {row['name']}".strip(): (row["num_requests"], row["num_failures"]) for row in rows}

    @property
    def steps(self) -> dict[str, tuple[int, int]]:
        """Requests and failures by type and name, as weir counts them."""
        return {name: (step["ok"] + step["failed"], step["failed"]) for name, step in self.weir["steps"].items()}


@pytest.fixture
def locust(tmp_path: Path, weir: Weir) -> Locust:
    """Returns a function that writes a locustfile and runs `weir locust` with it, by default with two users for a
    second."""

    def run(source: str, host: str, *arguments: str, own: Sequence[str] = ()) -> Recorded:
        (tmp_path / "locustfile.py").write_text(source)
        usual = ["--headless", "-H", host, "-u", "2", "-r", "100", "-t", "1s", "--json"]
        done = weir("locust", "--weir-json", "a.json", "--out", "a.weir", *own, *usual, *arguments)
        file = tmp_path / "a.json"
        return Recorded(done, json.loads(file.read_text()) if file.exists() else {})

    return run


def intervals_of(path: Path) -> list[IntervalRow]:
    """Returns the intervals that `--out` kept."""
    with RunReader(path) as reader:
        (trial,) = reader.trials()
        return reader.intervals(trial.id)


@contextmanager
def running(start_weir: StartWeir, shop: Shop, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """Starts a load without end and waits until each user has made a request."""
    usual = ("--headless", "-H", shop.url, "-u", "2", "-r", "100", "--only-summary")
    process = start_weir("locust", "--weir-json", "a.json", "--out", "a.weir", *usual, *arguments)
    shop.wait_for(lambda: len(shop.clients) == 2, process)
    yield process


def descendants(pid: int) -> list[int]:
    """Returns all descendants of a process."""
    try:
        children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
    return [found for child in children for found in (child, *descendants(child))]


def assert_they_end(pids: Sequence[int]) -> None:
    """Waits until the processes have ended; kills the rest after some time."""
    left = []
    for pid in pids:
        try:
            process = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        if not select.select([process], [], [], 20)[0]:
            left.append(pid)
            os.kill(pid, signal.SIGKILL)
        os.close(process)
    assert left == []


@pytest.fixture
def two_processes(free_port: Callable[[], int]) -> tuple[str, ...]:
    """Returns the flags for two processes of Locust with a port of their own."""
    port = str(free_port())
    return ("--processes", "2", "--master-bind-port", port, "--master-port", port)
