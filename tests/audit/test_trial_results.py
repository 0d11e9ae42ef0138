"""weir's own loads are checked by the same laws as the reports of other tools."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from weir.audit.laws import find_violations
from weir.audit.trial_results import build_reported_results
from weir.model.load import ClosedLoad, ExponentialThink, Load, OpenLoad, Think
from weir.model.load_records import (
    ByteCounts,
    ErrorCounts,
    GeneratorUse,
    LoadSummary,
    Quantiles,
    RequestCounts,
    Verdict,
)
from weir.model.resources import StackResources

TIMES = Quantiles(
    mean=19_000, stdev=10_000, min=1_000, p50=15_000, p75=20_000, p90=30_000, p95=50_000, p99=100_000, max=200_000
)
SUMMARY = LoadSummary(
    schema=1,
    target="http://127.0.0.1/",
    duration_s=10.0,
    requests=RequestCounts(
        intended=10_025, sent=10_020, completed=10_001, ok=10_000, failed=4, unanswered=16, unsent=5
    ),
    throughput_rps=1000.1,
    status={"200": 10_000, "500": 1},
    errors=ErrorCounts(check=1, reset=3),
    response_time_us=TIMES,
    service_time_us=TIMES,
    schedule_lag_us=Quantiles(),
    connect_time_us=Quantiles(),
    time_to_first_byte_us=TIMES,
    bytes=ByteCounts(),
    generator=GeneratorUse(version="0", cpu_fraction=0.3, peak_rss_bytes=1, threads=1, cpus=[0]),
    verdict=Verdict(validity="valid"),
)
USED = StackResources(
    cpu_user_s=7.0,
    cpu_system_s=2.9,
    peak_threads=2,
    peak_processes=1,
    pss_bytes=None,
    private_bytes=None,
    steal_fraction=None,
)
CLOSED = ClosedLoad(20)


def laws(
    load: Load, changes: Mapping[str, Any] = MappingProxyType({}), *, resources: StackResources | None = None
) -> list[str]:
    summary = replace(SUMMARY, **changes)
    return [violation.law for violation in find_violations(*build_reported_results(summary, load, resources, cpus=1))]


def test_a_pipelined_connection_has_several_requests_in_flight() -> None:
    slow = replace(TIMES, mean=20_100)
    summary = replace(SUMMARY, response_time_us=slow, service_time_us=slow)
    assert len(find_violations(*build_reported_results(summary, CLOSED))) == 2
    assert find_violations(*build_reported_results(summary, CLOSED, pipeline=2)) == ()


def test_a_load_that_can_be_breaks_no_law() -> None:
    assert laws(CLOSED, resources=USED) == []
    assert laws(OpenLoad(1002.5, 20)) == []


@pytest.mark.parametrize(
    ("changes", "law"),
    [
        ({"response_time_us": replace(TIMES, mean=20_100)}, "users = throughput × response time"),
        ({"service_time_us": replace(TIMES, p99=25_000)}, "percentiles rise"),
        ({"throughput_rps": 990.0}, "requests = throughput × time"),
        ({"status": {"200": 10_000}}, "the statuses add up"),
        ({"status": {}}, "the statuses add up"),
        ({"errors": ErrorCounts(check=1, reset=2)}, "every request has one outcome"),
        ({"requests": replace(SUMMARY.requests, unsent=6)}, "every request has one outcome"),
        ({"requests": replace(SUMMARY.requests, intended=9_000)}, "every request has one outcome"),
    ],
)
def test_each_part_of_a_summary_is_held_against_its_law(changes: dict[str, object], law: str) -> None:
    assert set(laws(CLOSED, changes)) == {law}


def test_a_connection_has_one_request_at_a_time_in_an_open_load_too() -> None:
    slow = replace(TIMES, mean=20_100)
    assert laws(OpenLoad(1002.5, 20), {"response_time_us": slow}) == []
    assert laws(OpenLoad(1002.5, 20), {"service_time_us": slow}) == ["users = throughput × response time"]


def test_cpu_time_is_at_most_that_of_the_cpus() -> None:
    assert laws(CLOSED, resources=replace(USED, cpu_user_s=7.11)) == [], "hundredths that /proc cuts off"
    assert laws(CLOSED, resources=replace(USED, cpu_user_s=7.3)) == ["CPU time ≤ CPUs × time"]
    (violation,) = find_violations(*build_reported_results(SUMMARY, CLOSED, USED, cpus=0.5))
    assert "0.5 CPUs have 5 s of CPU time in 10 s, but 9.9 s of CPU time is reported." in violation.found
    assert find_violations(*build_reported_results(SUMMARY, CLOSED, USED)) == ()
    (violation,) = find_violations(*build_reported_results(SUMMARY, CLOSED, USED, cpus=1, used_s=8.0))
    assert violation.law == "CPU time ≤ CPUs × time", "of a part of the load"


def test_a_pause_that_the_end_cuts_off_is_not_held_against_a_load() -> None:
    # 20 users think for a second and get responses at once, eleven times in ten seconds: at 0 s, 1 s, …, 10 s.
    counts = RequestCounts(intended=220, sent=220, completed=220, ok=220, failed=0, unanswered=0, unsent=0)
    quick = Quantiles(mean=10, stdev=0, min=10, p50=10, p75=10, p90=10, p95=10, p99=10, max=10)
    changes: dict[str, object] = {
        "requests": counts,
        "errors": ErrorCounts(),
        "throughput_rps": 220 / 10.0002,
        "status": {"200": 220},
        "response_time_us": quick,
        "service_time_us": quick,
        "duration_s": 10.0002,
    }
    assert laws(ClosedLoad(20, Think(1.0, 1.0)), changes) == []
    slow = replace(quick, mean=5_000, max=100_000, stdev=20_000)
    assert "users = throughput × response time" in laws(
        ClosedLoad(20, Think(1.0, 1.0)), changes | {"response_time_us": slow}
    )


def test_drawn_pauses_may_lie_beside_their_mean() -> None:
    response, *_ = build_reported_results(SUMMARY, ClosedLoad(20, ExponentialThink(2.0)))
    assert response.think_s.low == pytest.approx(2.0 - 6 * 2.0 / 100, rel=1e-3)
    response, *_ = build_reported_results(SUMMARY, ClosedLoad(20, Think(1.0, 1.0)))
    assert response.think_s.rounding == 0


def test_a_ramp_of_users_who_leave_is_the_cap_of_its_throughput() -> None:
    counts = RequestCounts(intended=1000, sent=1000, completed=1000, ok=1000, failed=0, unanswered=0, unsent=0)
    times = Quantiles(
        mean=20_000, stdev=0, min=20_000, p50=20_000, p75=20_000, p90=20_000, p95=20_000, p99=20_000, max=20_000
    )
    summary = replace(
        SUMMARY,
        requests=counts,
        errors=ErrorCounts(),
        status={"200": 1000},
        duration_s=10.1,
        throughput_rps=1000 / 10.1,
        response_time_us=times,
        service_time_us=times,
    )
    ramp = ClosedLoad(((0.0, 0.0), (10.0, 200.0)), requests_per_user=5)
    (violation,) = find_violations(*build_reported_results(summary, ramp))
    assert violation.kind == "capped"
    assert "200 users with 5 requests each" in violation.found
    # A load that was stopped during its ramp had only the users until then.
    stopped, *_ = build_reported_results(replace(summary, duration_s=5.0), ramp)
    assert (stopped.users, stopped.ramp_s) == (100, 5.0)
    # Users who leave and come back are no ramp.
    there_and_back = ClosedLoad(((0.0, 0.0), (5.0, 200.0), (10.0, 0.0)), requests_per_user=5)
    assert build_reported_results(summary, there_and_back)[0].ramp_s == 0.0
