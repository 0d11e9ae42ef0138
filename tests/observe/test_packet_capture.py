"""Tests the tap on a server with known service times, under a load with known requests."""

import os
from collections.abc import Callable

import pytest

from weir.generators.engine import EngineLoad
from weir.model.errors import UsageError
from weir.model.hdr import Hdr
from weir.model.load import ClosedLoad, LoadPlan, Request
from weir.model.load_records import LoadSummary
from weir.model.run_types import CaptureResult
from weir.observe.packet_capture import PacketCapture

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may look at packets (CAP_NET_RAW)")


def observed(address: str, connections: int, one_in: int = 1, requests: int = 400) -> tuple[LoadSummary, CaptureResult]:
    """Runs a load on a server and returns its result with that of the tap."""
    plan = LoadPlan(Request("GET", f"http://{address}/"), ClosedLoad(connections), 60.0, requests=requests)
    with PacketCapture([int(address.rpartition(":")[2])], one_in) as tap:
        with EngineLoad(plan) as load:
            summary = load.result().summary
        return summary, tap.result()


def test_the_tap_and_the_generator_agree_on_a_server_that_waits(serve: Callable[..., str]) -> None:
    summary, seen = observed(serve("delay", "--wait", "30ms"), connections=8)
    assert (seen.requests, seen.connections, seen.dropped_packets) == (400, 8, 0)
    assert seen.response_time_us.min is not None
    assert seen.response_time_us.min >= 30_000 * 0.999
    assert seen.response_time_us.p50 == pytest.approx(summary.service_time_us.p50, rel=0.05)
    assert Hdr.from_text(seen.histogram).total == 400
    assert seen.first_t_ns is not None
    assert seen.last_t_ns is not None
    assert 0 < (seen.last_t_ns - seen.first_t_ns) / 1e9 <= summary.duration_s + 1


def test_of_many_connections_about_one_in_so_many_is_seen_and_all_of_its_requests(serve: Callable[..., str]) -> None:
    _, seen = observed(serve("null"), connections=512, one_in=8, requests=20_480)
    assert 512 / 8 / 2 < seen.connections < 512 / 8 * 2
    assert seen.requests / seen.connections == pytest.approx(20_480 / 512, rel=0.25)


def test_a_tap_on_nothing_has_seen_nothing(free_port: Callable[[], int]) -> None:
    with PacketCapture([free_port()]) as tap:
        seen = tap.result()
    assert (seen.requests, seen.packets, seen.first_t_ns, seen.response_time_us.p50) == (0, 0, None, None)


def test_an_interface_that_is_not_there_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match='--interface: found "nowhere0", expected a network interface') as caught:
        PacketCapture([80], interface="nowhere0")
    assert "ip link" in (caught.value.hint or "")
