"""Compares figures of a load's window, made from intervals, with the engine's figures of the whole, on a real load."""

from dataclasses import dataclass

import pytest

from tests.support.observing import observer
from weir.generators.engine import EngineLoad
from weir.generators.null_server import NullServer
from weir.lab.window_summary import summarize_window
from weir.model import hdr as histogram
from weir.model.load import ClosedLoad, LoadPlan, OpenLoad, Request
from weir.model.load_records import Interval, LoadEnd

PRECISION = 0.002
"""Precision of two histograms with three significant digits, of which one is merged from others."""


@dataclass(frozen=True)
class Measured:
    intervals: list[Interval]
    end: LoadEnd


@pytest.fixture(scope="module", params=["closed", "open"])
def measured(request: pytest.FixtureRequest) -> Measured:
    load = ClosedLoad(8) if request.param == "closed" else OpenLoad(500.0, 8)
    intervals: list[Interval] = []
    with NullServer() as server:
        plan = LoadPlan(request=Request("GET", f"http://{server.address}/"), load=load, duration_s=1.5)
        with EngineLoad(plan, observer(on_interval=intervals.append)) as running:
            return Measured(intervals, running.result())


def test_all_intervals_together_give_the_engines_own_figures(measured: Measured) -> None:
    whole = measured.end.summary
    part, data = summarize_window(whole, measured.intervals)
    assert part.requests == whole.requests
    assert part.errors == whole.errors
    assert part.status == whole.status
    assert part.bytes == whole.bytes
    assert part.duration_s == pytest.approx(whole.duration_s, rel=1e-3)
    assert part.throughput_rps == pytest.approx(whole.throughput_rps, rel=1e-3)
    ours, theirs = part.response_time_us.to_json(), whole.response_time_us.to_json()
    for name in ("mean", "min", "p50", "p75", "p90", "p95", "p99", "p99_9", "p99_99", "max"):
        assert ours[name] == pytest.approx(theirs[name], rel=PRECISION), name
    assert ours["stdev"] == pytest.approx(theirs["stdev"], rel=0.01)
    assert histogram.counts_in(data) == histogram.counts_in(
        histogram.bytes_of_text(measured.end.histograms["response_time_ns"])
    )


def test_a_part_has_what_ended_in_it_and_nothing_of_what_intervals_do_not_hold(measured: Measured) -> None:
    later = measured.intervals[5:]
    part, data = summarize_window(measured.end.summary, later)
    assert part.requests.completed == sum(one.completed for one in later) == sum(histogram.counts_in(data).values())
    counts = part.requests
    assert counts.intended == counts.ok + counts.failed + counts.unanswered + counts.unsent
    assert part.duration_s == pytest.approx(measured.end.summary.duration_s - later[0].start_s, abs=0.01)
    assert part.service_time_us.p50 is None
    assert part.schedule_lag_us.p99 is None
