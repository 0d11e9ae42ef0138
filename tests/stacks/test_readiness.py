"""Requests to a stack beside the load."""

import gzip
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from weir.model.load import Request
from weir.stacks.readiness import send_request


@pytest.mark.parametrize("body", [gzip.compress(b"hello"), b"hello"], ids=["compressed", "falsely declared"])
def test_a_compressed_body_is_decompressed_and_a_falsely_declared_one_stays(body: bytes) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Encoding", "gzip")
            self.end_headers()
            self.wfile.write(body)

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        found = send_request(Request("GET", f"http://127.0.0.1:{server.server_port}/"), timeout_s=5)
        thread.join()
    assert found == (200, b"hello")
