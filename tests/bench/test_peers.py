"""Tests the parsers of the other generators' output. The files in `printed` are real outputs of loads of one second."""

from pathlib import Path

import pytest

from bench.machine import BenchError
from bench.paced import PACED_PEERS, QUANTILES, PacedPeer
from bench.peers import BARE, BODY, GCANNON, OTHERS, WRK, Job, Peer, Said

PRINTED = Path(__file__).parent / "printed"
ALL = (WRK, *OTHERS, *BARE)
SAID = {
    "wrk": Said(52418.7, 53032),
    "ab": Said(49608.0, 49608),
    "gcannon": Said(193560.8),
    "hey": Said(16334.0198),
    "h2load": Said(42482.0, 42482),
    "oha": Said(37133.650493109235),
    "k6": Said(10947.639783838024, 10962),
    "locust": Said(1533 / (1795254965.5237532 - 1795254964.9604123), 1533),
    "bare epoll loop": Said(35578.57060802219, 35604),
    "bare io_uring loop": Said(31904.80819897607, 32108),
}
# wrk2 has no package, so this is its output with --latency, written by hand.
WRK2 = """  Latency Distribution (HdrHistogram - Recorded Latency)
 50.000%    1.02ms
 75.000%    1.30ms
 90.000%    1.50ms
 99.000%    1.77ms
 99.900%    2.48ms
 99.990%  900.00us
 99.999%    1.10s
100.000%    0.02m
  99999 requests in 10.00s, 12.00MB read
Requests/sec:   9999.91
"""


def name_of(peer: Peer | PacedPeer) -> str:
    return peer.name


def printed(name: str) -> str:
    return (PRINTED / f"{name.replace(' ', '-')}.txt").read_text()


@pytest.mark.parametrize("peer", ALL, ids=name_of)
def test_what_a_generator_says_it_did_is_read_off_what_it_prints(peer: Peer) -> None:
    assert peer.parse(printed(peer.name)) == SAID[peer.name]


@pytest.mark.parametrize("peer", ALL, ids=name_of)
def test_a_generator_that_prints_nothing_has_failed(peer: Peer) -> None:
    with pytest.raises((BenchError, ValueError, IndexError)):
        peer.parse("")


@pytest.mark.parametrize(
    "errors",
    ["  Socket errors: connect 1, read 0, write 0, timeout 0\n", "  Non-2xx or 3xx responses: 3\n"],
)
def test_a_wrk_with_errors_did_not_measure_what_was_asked(errors: str) -> None:
    with pytest.raises(BenchError):
        WRK.parse(printed("wrk") + errors)


def test_a_wrk_whose_answers_took_long_counts_them_nevertheless() -> None:
    assert WRK.parse(printed("wrk") + "  Socket errors: connect 0, read 0, write 0, timeout 12\n") == SAID["wrk"]


@pytest.mark.parametrize("failure", [('"timeout": 0', '"timeout": 1'), ('"2xx": ', '"2xx": 1')])
def test_a_gcannon_with_failures_did_not_measure_what_was_asked(failure: tuple[str, str]) -> None:
    with pytest.raises(BenchError):
        GCANNON.parse(printed("gcannon").replace(*failure))


def test_failed_requests_of_ab_and_locust_are_no_measurement() -> None:
    ab, locust = OTHERS[0], OTHERS[-1]
    with pytest.raises(BenchError):
        ab.parse(printed("ab").replace("Failed requests:        0", "Failed requests:        2"))
    with pytest.raises(BenchError):
        locust.parse(printed("locust").replace('"num_failures": 0', '"num_failures": 2'))


@pytest.mark.parametrize("peer", ALL, ids=name_of)
def test_every_generator_is_told_the_connections_and_the_time(peer: Peer, tmp_path: Path) -> None:
    arguments = " ".join(peer.command(Job("GET", 123), "http://127.0.0.1:1/", 7, tmp_path) or [])
    assert "123" in arguments
    assert "7" in arguments


@pytest.mark.parametrize("peer", [WRK, *OTHERS], ids=name_of)
def test_every_generator_is_given_the_same_body(peer: Peer, tmp_path: Path) -> None:
    arguments = peer.command(Job("POST", 1), "http://127.0.0.1:1/", 1, tmp_path)
    assert arguments is not None
    said = " ".join(arguments) + "".join(path.read_text() for path in tmp_path.iterdir())
    assert BODY.decode() in said
    assert "application/json" in said


def test_only_some_can_be_compared_without_keep_alive_and_over_tls(tmp_path: Path) -> None:
    def able(job: Job) -> list[str]:
        return [peer.name for peer in ALL if peer.command(job, "https://127.0.0.1:1/", 1, tmp_path) is not None]

    assert able(Job("close", 1)) == ["wrk", "ab"]
    assert able(Job("tls", 1)) == ["wrk"]


@pytest.mark.parametrize(
    ("name", "output", "achieved_rps", "times_us"),
    [
        ("wrk2", WRK2, 9999.91, [1020, 1500, 1770, 2480, 1_200_000]),
        ("oha", printed("oha-paced"), 500.08916559877173, [151.396, 247.839, 4639.156, 8167.181, 8167.181]),
        ("k6", printed("k6-paced"), 496.4661722659402, [179.618, 2315.7642, 8850.2502, 9405.114408, 9459.167]),
    ],
)
def test_response_times_at_a_fixed_rate_are_read_off_in_microseconds(
    name: str, output: str, achieved_rps: float, times_us: list[float]
) -> None:
    (peer,) = [peer for peer in PACED_PEERS if peer.name == name]
    said = peer.parse(output)
    assert said.achieved_rps == achieved_rps
    assert said.response_time_us == pytest.approx(dict(zip(QUANTILES, times_us, strict=True)))


@pytest.mark.parametrize("peer", PACED_PEERS, ids=name_of)
def test_a_generator_at_a_fixed_rate_is_told_rate_connections_and_time(peer: PacedPeer, tmp_path: Path) -> None:
    arguments = peer.command(4321, 50, "http://127.0.0.1:1/", 7, tmp_path)
    said = " ".join(arguments) + "".join(path.read_text() for path in tmp_path.iterdir())
    assert "4321" in said
    assert "50" in said
    assert f"{7 + peer.calibration_s}s" in said


@pytest.mark.parametrize("peer", PACED_PEERS, ids=name_of)
def test_a_generator_at_a_fixed_rate_that_prints_nothing_has_failed(peer: PacedPeer) -> None:
    with pytest.raises((BenchError, ValueError, IndexError)):
        peer.parse("")
