"""Tests the records that a process of Locust sends to weir."""

import json
import socket
import struct
from contextlib import closing
from typing import Any

import numpy as np

from weir.generators.scripted.lines import REQUEST, Claims, News, Outcome
from weir.generators.scripted.locust_socket import LocustSocket

NEWS = {"record": "news", "at_ns": 9, "outcomes": [["GET", "/", 200, None, True]], "cpu_s": 0.5, "peak_rss_bytes": 1}
CLAIMS = {"record": "claims", "requests": 7, "failed": 1, "mean_ms": 2, "min_ms": 1, "max_ms": 3, "throughput_rps": 4}


def pack(line: dict[str, Any], requests: bytes = b"", begun: bytes = b"") -> bytes:
    parts = json.dumps(line).encode(), requests, begun
    return b"".join((struct.pack("=3I", *map(len, parts)), *parts))


def test_records_are_whole_if_each_byte_arrives_alone() -> None:
    requests, begun = np.array([(8, 0, 1.5, 2, 10)], REQUEST).tobytes(), np.array([4], np.int64).tobytes()
    lines = []
    with closing(LocustSocket()) as source, socket.socket(socket.AF_UNIX) as process:
        process.connect(source.path)
        assert list(source.read(1)) == []
        for byte in pack(NEWS, requests, begun) + pack(CLAIMS):
            process.send(bytes([byte]))
            lines += [line for _, line in source.read(1)]
    news, claims = lines
    assert isinstance(news, News)
    assert news.outcomes == [Outcome("GET", "/", 200, None, has_start=True)]
    assert (news.requests, news.begun) == (requests, begun)
    assert isinstance(claims, Claims)
    assert claims.requests == 7


def test_records_that_arrive_together_are_several_records() -> None:
    with closing(LocustSocket()) as source, socket.socket(socket.AF_UNIX) as process:
        process.connect(source.path)
        assert list(source.read(1)) == []
        process.sendall(pack(NEWS) + pack(CLAIMS) + pack(NEWS)[:20])
        assert [type(line) for _, line in source.read(1)] == [News, Claims]
