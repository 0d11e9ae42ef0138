"""Tests the checks of a stack's responses before and after a trial."""

import random
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from weir.stacks import answer_check as check
from weir.stacks.answer_check import CHECKED_REQUESTS, check_answers
from weir.stacks.workload import read_workload


class Slow(BaseHTTPRequestHandler):
    """A server that sends the first response late, and the others only after all of their requests have come."""

    protocol_version = "HTTP/1.1"
    others = threading.Barrier(CHECKED_REQUESTS - 1)
    first = threading.Lock()

    def do_GET(self) -> None:
        if self.first.acquire(blocking=False):
            time.sleep(check._LONG_S)
        else:
            self.others.wait(timeout=30)
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def slow() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Slow) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_stack_that_waits_for_something_is_asked_several_things_at_once(slow: str) -> None:
    check_answers(read_workload("hello"), slow, random.Random(1), path="/", timeout_s=20)
    assert not Slow.others.broken
