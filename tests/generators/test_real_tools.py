"""Runs every available tool on a server that does nothing, nginx with TLS, a server with wrong responses, and one that
keeps its requests."""

import itertools
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end import test_load_transport
from tests.end_to_end.test_load_transport import Nginx
from tests.support.observing import observer
from weir.generators.external_load import ExternalLoad
from weir.generators.external_tool import Tool
from weir.generators.registry import TOOLS
from weir.model.errors import GeneratorError
from weir.model.load import ClosedLoad, Load, LoadPlan, OpenLoad, Request
from weir.model.load_observer import LoadObserver
from weir.model.load_records import LoadEnd, LoadStarted

nginx = test_load_transport.nginx
Installed = Callable[[str], Tool]
OPEN = ("wrk2", "oha", "k6")
HAVE_MEDIAN = ("wrk", "wrk2", "hey", "ab", "oha", "k6", "jmeter", "locust")
CONNECTIONS = 4
# Debian has neither, and their builds take longer than all other tests of tools, so `make soak` builds them
# (scripts/bench-peers).
BUILT_FOR_SOAK = ("oha", "k6")


# A JVM and Python take seconds to start. So `make test` only checks that each tool loads a server at all.
SLOW_TO_BEGIN = ("jmeter", "locust")


def each_of(*names: str, slow: bool = False) -> pytest.MarkDecorator:
    """Runs a test once for each tool. Without `slow`, only `make test-all` runs the tools that start slowly."""

    def case(name: str) -> Any:
        if name in BUILT_FOR_SOAK:
            return pytest.param(name, marks=pytest.mark.soak)
        return pytest.param(name, marks=pytest.mark.thorough) if name in SLOW_TO_BEGIN and not slow else name

    return pytest.mark.parametrize("name", [case(name) for name in names])


def load(name: str) -> Load:
    return OpenLoad(500.0, CONNECTIONS) if name == "wrk2" else ClosedLoad(CONNECTIONS)


def warm(plan: LoadPlan, name: str) -> LoadPlan:
    """Returns a load that gives JMeter's JVM enough time, because it makes hardly any requests in its first second."""
    return replace(plan, duration_s=60.0, requests=20 * CONNECTIONS) if name == "jmeter" else plan


def run(tool: Tool, plan: LoadPlan, folder: Path, listener: LoadObserver | None = None) -> LoadEnd:
    assert tool.unsupported_reason(plan) is None
    with ExternalLoad(tool, plan, listener, folder=folder) as running:
        return running.result()


def run_again_if_it_hangs(tool: Tool, plan: LoadPlan, folder: Path) -> LoadEnd:
    """Runs a load, at most three times. h2load hangs if a handshake is still open at the end, which happens on busy
    machines."""
    for attempt in range(2):
        try:
            return run(tool, plan, folder / f"{attempt}")
        except GeneratorError as error:
            if tool.name != "h2load" or "did not end" not in error.message:
                raise
    return run(tool, plan, folder / "last")


@each_of(*TOOLS, slow=True)
def test_it_loads_a_server_that_does_nothing(
    name: str, installed: Installed, serve: Callable[..., str], tmp_path: Path
) -> None:
    tool, cpu = installed(name), min(os.sched_getaffinity(0))
    begun: list[LoadStarted] = []
    plan = LoadPlan(Request("GET", f"http://{serve('null')}/"), load(name), 1.0, cpus=(cpu,))
    summary = run(tool, plan, tmp_path, observer(on_start=begun.append)).summary
    assert summary.requests.ok > 0
    assert (summary.requests.failed, summary.errors.check) == (0, 0)
    assert summary.throughput_rps == pytest.approx(summary.requests.completed / summary.duration_s, rel=0.2)
    # ab prints 0 ms if no request took half a millisecond, so there is no maximum.
    assert summary.response_time_us.max is not None or name == "ab"
    # Locust and JMeter count whole milliseconds, so there is no median if it would be 0 ms.
    assert (summary.response_time_us.p50 is not None) == (name in HAVE_MEDIAN) or name in ("locust", "jmeter")
    assert summary.generator.version.startswith(tool.title)
    assert summary.generator.cpus == [cpu]
    assert 0 < summary.generator.cpu_fraction <= 1.1
    assert summary.generator.peak_rss_bytes > 1_000_000
    assert len(begun) == 1


@each_of(*OPEN)
def test_it_asks_at_a_rate(name: str, installed: Installed, serve: Callable[..., str], tmp_path: Path) -> None:
    plan = LoadPlan(Request("GET", f"http://{serve('null')}/"), OpenLoad(200.0, CONNECTIONS), 2.0)
    counts = run(installed(name), plan, tmp_path).summary.requests
    assert counts.intended == pytest.approx(400, rel=0.2)


@each_of("hey", "ab", "oha", "k6", "h2load", "jmeter")
def test_it_ends_after_as_many_requests_as_it_is_told(
    name: str, installed: Installed, serve: Callable[..., str], tmp_path: Path
) -> None:
    plan = LoadPlan(
        Request("GET", f"http://{serve('null')}/"), ClosedLoad(CONNECTIONS), 30.0, requests=20 * CONNECTIONS
    )
    end = run(installed(name), plan, tmp_path)
    assert (end.stopped, end.summary.requests.ok) == ("complete", 20 * CONNECTIONS)


@pytest.mark.needs("nginx", "openssl")
@each_of(*TOOLS)
def test_it_loads_nginx_through_tls(name: str, installed: Installed, nginx: Nginx, tmp_path: Path) -> None:
    plan = LoadPlan(Request("GET", f"{nginx.https}/"), load(name), 1.0)
    summary = run_again_if_it_hangs(installed(name), plan, tmp_path).summary
    assert summary.requests.ok > 0
    assert summary.requests.failed == 0


@each_of(*(name for name in TOOLS if name != "ab"))
def test_answers_with_another_status_are_wrong(
    name: str, installed: Installed, serve: Callable[..., str], tmp_path: Path
) -> None:
    # ab speaks HTTP/1.0 and waits here for the end of the connection, which does not come.
    address = serve("fault", "--kind", "status-500")
    summary = run(installed(name), LoadPlan(Request("GET", f"http://{address}/"), load(name), 1.0), tmp_path).summary
    assert summary.requests.ok == 0
    assert summary.errors.check == summary.requests.failed > 0
    assert summary.requests.completed == summary.errors.check


@dataclass(frozen=True)
class Asked:
    """A request as the server received it."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int
    """Number of the connection: ports are not unique, because connections to a server may reuse them."""


@dataclass(frozen=True)
class Keeper:
    """A server that keeps its requests."""

    address: str
    asked: list[Asked]


@pytest.fixture
def keeper() -> Iterator[Keeper]:
    asked: list[Asked] = []
    connections = itertools.count()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            self.connection_number = next(connections)

        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked.append(Asked(self.command, self.path, headers, body, self.connection_number))
            self.send_response(200)
            self.send_header("Content-Length", "2")
            # ab speaks HTTP/1.0 and needs `keep-alive`; wrk2 needs `close`.
            self.send_header("Connection", "close" if self.close_connection else "keep-alive")
            self.end_headers()
            self.wfile.write(b"ok")

        do_GET = do_PUT = handle_any  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield Keeper(f"127.0.0.1:{server.server_address[1]}", asked)
        server.shutdown()
        thread.join()


@each_of(*TOOLS)
def test_what_it_asks_is_what_the_plan_says(name: str, installed: Installed, keeper: Keeper, tmp_path: Path) -> None:
    body = b'{"text": "' + bytes(range(32, 127)).replace(b'"', b"").replace(b"\\", b"") + b'${x}"}'
    headers = (("Content-Type", "application/json"), ("X-Mark", "a b; c=d"))
    plan = LoadPlan(
        Request("PUT", f"http://{keeper.address}/a/b?c=d&e=%20f", headers, body), load(name), 1.0, timeout_s=20.0
    )
    counts = run(installed(name), warm(plan, name), tmp_path).summary.requests
    # The tool counts every response that it got.
    assert len(keeper.asked) - 2 * CONNECTIONS <= counts.ok <= len(keeper.asked)
    for one in keeper.asked:
        assert (one.method, one.path, one.body) == ("PUT", "/a/b?c=d&e=%20f", body)
        assert (one.headers["content-type"], one.headers["x-mark"]) == ("application/json", "a b; c=d")
        assert one.headers["host"] == keeper.address
    # Many requests share few connections.
    assert len({one.connection for one in keeper.asked}) <= 2 * CONNECTIONS < len(keeper.asked)


@each_of(*(name for name in TOOLS if name != "h2load"))
def test_each_request_has_a_connection_of_its_own_where_that_is_asked(
    name: str, installed: Installed, keeper: Keeper, tmp_path: Path
) -> None:
    plan = LoadPlan(Request("GET", f"http://{keeper.address}/"), load(name), 1.0, timeout_s=20.0, keep_alive=False)
    run(installed(name), warm(plan, name), tmp_path)
    assert not any({"content-length", "transfer-encoding"} & set(one.headers) or one.body for one in keeper.asked)
    assert len({one.connection for one in keeper.asked}) == len(keeper.asked) > CONNECTIONS


def stopped(name: str, installed: Installed, keeper: Keeper, folder: Path) -> LoadEnd:
    plan = LoadPlan(Request("GET", f"http://{keeper.address}/"), load(name), 100.0, timeout_s=20.0)
    with ExternalLoad(installed(name), plan, folder=folder) as running:
        while len(keeper.asked) < 10 * CONNECTIONS:
            assert not running.wait(0.01)
        running.stop()
        return running.result()


@each_of(*(name for name in TOOLS if name != "h2load"))
def test_a_load_that_is_stopped_gives_what_it_came_to(
    name: str, installed: Installed, keeper: Keeper, tmp_path: Path
) -> None:
    end = stopped(name, installed, keeper, tmp_path)
    assert end.stopped == "signal"
    assert 0 < end.summary.requests.ok <= len(keeper.asked)
    assert end.summary.duration_s < 100


def test_h2load_says_nothing_when_it_is_stopped(installed: Installed, keeper: Keeper, tmp_path: Path) -> None:
    with pytest.raises(GeneratorError, match="h2load: weir stopped the program; weir cannot read the tool's report"):
        stopped("h2load", installed, keeper, tmp_path)
