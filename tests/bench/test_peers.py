"""What the other generators print, as far as the benchmark reads it."""

from pathlib import Path

import pytest

from bench.machine import BenchError
from bench.peers import OTHERS, WRK, Job, Peer, Said

PRINTED = {
    "wrk": ("  24306 requests in 1.00s, 3.5MB read\nRequests/sec:  24306.12\nTransfer/sec: 3.1MB\n", Said(24306.12, 24306)),
    "ab": ("Complete requests:      6142\nFailed requests:        0\nRequests per second:    6141.50 [#/sec] (mean)\n", Said(6141.5, 6142)),
    "hey": ("Summary:\n  Total:\t1.0032 secs\n  Requests/sec:\t13587.3344\n", Said(13587.3344)),
    "h2load": ("finished in 1.00s, 33292.00 req/s, 5.14MB/s\nrequests: 33292 total, 33292 succeeded, 0 failed\n", Said(33292.0, 33292)),
    "oha": ('{"summary": {"successRate": 1.0, "requestsPerSec": 119000.5}}', Said(119000.5)),
    "k6": ('\n{"count": 24000, "rate": 23990.5}\n', Said(23990.5, 24000)),
}  # fmt: skip


@pytest.mark.parametrize("peer", [WRK, *OTHERS], ids=lambda peer: peer.name)
def test_what_a_generator_says_it_did_is_read_off_what_it_prints(peer: Peer) -> None:
    printed, said = PRINTED[peer.name]
    assert peer.parse(printed) == said
    with pytest.raises((BenchError, ValueError, IndexError)):
        peer.parse("")


def test_a_wrk_with_errors_did_not_measure_what_was_asked() -> None:
    with pytest.raises(BenchError):
        WRK.parse(PRINTED["wrk"][0] + "  Socket errors: connect 1, read 0, write 0, timeout 0\n")


@pytest.mark.parametrize("peer", [WRK, *OTHERS], ids=lambda peer: peer.name)
def test_every_generator_is_told_the_connections_and_the_time(peer: Peer, tmp_path: Path) -> None:
    for kind in ("GET", "POST"):
        arguments = " ".join(peer.command(Job(kind, 123), "http://127.0.0.1:1/", 7, tmp_path) or [])
        assert "123" in arguments
        assert "7" in arguments
