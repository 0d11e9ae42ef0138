"""Tests the server that all generators measure."""

import json
import os
import ssl
from urllib.request import urlopen

import pytest

from bench.nginx import running_nginx


@pytest.mark.needs("nginx", "openssl")
def test_it_answers_over_http_and_tls_and_counts_its_requests() -> None:
    anybody = ssl.create_default_context()
    anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE
    with running_nginx(max(os.sched_getaffinity(0)), tls=True) as nginx:
        before = nginx.requests()
        with urlopen(nginx.url, timeout=5) as answer:
            assert answer.read() == b"Hello, world!"
        with urlopen(f"https://{nginx.tls_address}/", context=anybody, timeout=5) as answer:
            assert answer.read() == b"Hello, world!"
        with urlopen(f"{nginx.url}json/1?page=2", timeout=5) as answer:
            assert json.load(answer)["active"] is True
        assert nginx.requests() - before - 1 == 3
