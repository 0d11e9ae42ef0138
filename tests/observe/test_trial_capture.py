"""Tests packet capture on a trial: how much is captured, and what happens if capture is impossible."""

from dataclasses import replace

import pytest

from weir.model.load_records import Quantiles
from weir.model.run_types import CaptureResult
from weir.observe.packet_capture import TrialCapture, capture_packets

HEARD = CaptureResult(
    requests=9, connections=4, packets=40, dropped_packets=0, response_time_us=Quantiles(), histogram=""
)


@pytest.mark.parametrize(("connections", "one_in"), [(1, 1), (8, 1), (15, 1), (16, 2), (64, 8), (1000, 125)])
def test_about_eight_connections_are_listened_to(connections: int, one_in: int) -> None:
    with capture_packets(["http://127.0.0.1:1"], connections, enabled=False) as found:
        assert found.one_in == one_in
    assert (found.result, found.why_not) == (None, "")


def test_a_load_goes_on_where_nobody_can_listen_in() -> None:
    # The capture allows fewer servers at a time.
    with capture_packets([f"http://127.0.0.1:{port}" for port in range(1, 18)], 4, enabled=True) as found:
        pass
    assert found.result is None
    assert found.why_not


def test_the_number_of_requests_is_known_only_where_all_of_them_were_heard() -> None:
    assert TrialCapture(1, HEARD).all_requests == 9
    assert TrialCapture(8, HEARD).all_requests is None
    assert TrialCapture(1, replace(HEARD, dropped_packets=1)).all_requests is None
    assert TrialCapture(1).all_requests is None
