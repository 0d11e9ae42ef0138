"""The laws find impossible figures and report no possible ones."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.audit.laws import find_violations
from weir.model.reported_result import Figure, ReportedResult

POSSIBLE = ReportedResult(
    name="possible",
    users=20,
    duration_s=Figure(10.0),
    throughput_rps=Figure(1000.0),
    requests=10_000,
    failed=0,
    mean_s=Figure(0.019),
    stdev_s=Figure(0.01),
    min_s=Figure(0.001),
    max_s=Figure(0.2),
    quantiles_s={0.5: Figure(0.015), 0.9: Figure(0.03), 0.99: Figure(0.1)},
    statuses={"200": 10_000},
)


def laws(result: ReportedResult) -> set[str]:
    return {violation.law for violation in find_violations(result)}


def test_a_possible_claim_breaks_no_law() -> None:
    assert find_violations(POSSIBLE) == ()


@pytest.mark.parametrize(
    ("change", "law"),
    [
        ({"mean_s": Figure(0.021)}, "users = throughput × response time"),
        ({"think_s": Figure(0.002)}, "users = throughput × response time"),
        ({"ramp_s": 50.0, "loops": 5}, "throughput ≤ users × loops ÷ ramp"),
        ({"mean_s": Figure(0.0005)}, "fastest ≤ mean ≤ slowest"),
        ({"users": None, "mean_s": Figure(0.3)}, "fastest ≤ mean ≤ slowest"),
        ({"users": None, "mean_s": Figure(0.05)}, "the mean lies among the percentiles"),
        ({"mean_s": Figure(0.003)}, "the mean lies among the percentiles"),
        ({"quantiles_s": {0.5: Figure(0.03), 0.9: Figure(0.015)}}, "percentiles rise"),
        ({"max_s": Figure(0.05)}, "percentiles rise"),
        ({"stdev_s": Figure(0.09)}, "stdev² ≤ (slowest − mean) × (mean − fastest)"),
        ({"requests": 9_000, "statuses": {}}, "requests = throughput × time"),
        ({"statuses": {"200": 9_000}}, "the statuses add up"),
        ({"statuses": {"200": 10_001}}, "the statuses add up"),
    ],
)
def test_each_law_is_held_against_the_figures(change: dict[str, object], law: str) -> None:
    assert law in laws(replace(POSSIBLE, **change))  # type: ignore[arg-type]


def test_requests_in_flight_raise_the_limit_of_littles_law() -> None:
    slow = replace(POSSIBLE, mean_s=Figure(0.055), max_s=Figure(0.5), quantiles_s={})
    assert laws(replace(slow, requests_in_flight=2)) == {"users = throughput × response time"}
    assert laws(replace(slow, requests_in_flight=3)) == set()
    (violation,) = find_violations(replace(slow, requests_in_flight=None))
    assert violation.kind == "pipelined"
    assert "only if each user had at least 3 requests in flight" in violation.cause


def test_rounding_is_given_its_benefit() -> None:
    exact = replace(POSSIBLE, mean_s=Figure(0.0201))
    assert laws(exact) == {"users = throughput × response time"}
    assert laws(replace(POSSIBLE, mean_s=Figure.printed("20.1", 1e-3), throughput_rps=Figure.printed("1000"))) == laws(
        exact
    )
    assert find_violations(replace(POSSIBLE, mean_s=Figure.printed("20", 1e-3))) == ()


@pytest.mark.parametrize(
    ("text", "rounding"), [("6", 0.5), ("6.0", 0.05), ("0.0060", 0.00005), ("1.5e3", 50.0), ("2e-3", 0.0005)]
)
def test_how_far_a_number_was_rounded_is_seen_from_its_digits(text: str, rounding: float) -> None:
    assert Figure.printed(text).rounding == pytest.approx(rounding)


def test_a_throughput_at_the_cap_of_its_load_is_no_throughput_of_the_server() -> None:
    result = ReportedResult(
        name="ping", users=2000, ramp_s=50.0, loops=5, throughput_rps=Figure(153.0), mean_s=Figure(2.751)
    )
    (violation,) = find_violations(result)
    assert violation.kind == "capped"
    assert "156.9" in violation.found
    assert find_violations(replace(result, throughput_rps=Figure(75.8), mean_s=Figure(14.377))) == ()


@given(st.lists(st.floats(0.0001, 10.0), min_size=10, max_size=200), st.integers(1, 50))
def test_no_load_that_ran_is_called_impossible(times_s: list[float], users: int) -> None:
    """Simulates a closed loop; the laws hold for any response times."""
    free_at = [0.0] * users
    for time_s in times_s:
        first = free_at.index(min(free_at))
        free_at[first] += time_s
    lasted_s = max(free_at)
    ordered = sorted(times_s)
    mean_s = sum(times_s) / len(times_s)
    result = ReportedResult(
        name="simulated",
        users=users,
        duration_s=Figure(lasted_s, 1e-9),
        throughput_rps=Figure(len(times_s) / lasted_s, 1e-9),
        requests=len(times_s),
        mean_s=Figure(mean_s, 1e-9),
        stdev_s=Figure((sum((time_s - mean_s) ** 2 for time_s in times_s) / len(times_s)) ** 0.5, 1e-7),
        min_s=Figure(ordered[0], 1e-9),
        max_s=Figure(ordered[-1], 1e-9),
        # Shares of all requests that take at most each sorted time.
        quantiles_s={
            (index + 1) / len(times_s): Figure(ordered[index], 1e-9) for index in range(0, len(times_s) - 1, 3)
        },
    )
    assert [violation for violation in find_violations(result) if violation.kind == "impossible"] == []
