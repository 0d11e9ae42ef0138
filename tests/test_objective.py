"""Compares objectives with the counting rule, request by request."""

import doctest
import math
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir import objective as module
from weir.model.errors import UsageError
from weir.model.hdr import Hdr
from weir.model.load_records import ErrorCounts, Interval, IntervalQuantiles, LoadEnd
from weir.objective import AbortWatch, judge, parse_abort_condition, parse_objective

# Times in microseconds that a histogram of three digits holds exactly.
TIMES_US = st.lists(st.integers(1, 1000), max_size=60)


def encoded(times_us: list[int]) -> str:
    made = Hdr()
    for time in times_us:
        made.add(time * 1000)
    return made.to_text()


def load_end(
    times_us: list[int],
    ages_us: list[int] | None = None,
    *,
    failed: int = 0,
    unsent: int = 0,
    throughput_rps: float = 0.0,
) -> LoadEnd:
    ages_us = ages_us or []
    clock = {"mean": sum(times_us) / len(times_us) if times_us else None}
    intended = len(times_us) + len(ages_us) + failed + unsent
    return LoadEnd.from_json({
            "stopped": "duration",
            "summary": {
                "schema": 1, "target": "http://a/", "duration_s": 1.0,
                "requests": {
                    "intended": intended, "sent": intended - unsent, "completed": len(times_us), "ok": len(times_us),
                    "failed": failed, "unanswered": len(ages_us), "unsent": unsent,
                },
                "throughput_rps": throughput_rps, "status": {}, "errors": {"timeout": failed},
                "response_time_us": clock, "service_time_us": clock, "schedule_lag_us": clock, "connect_time_us": clock,
                "time_to_first_byte_us": clock, "bytes": {},
                "generator": {"version": "0", "cpu_fraction": 0.0, "peak_rss_bytes": 0, "threads": 1, "cpus": []},
                "verdict": {"validity": "valid", "reasons": []},
            },
            "histograms": {"response_time_ns": encoded(times_us), "unanswered_age_ns": encoded(ages_us)},
        })  # fmt: skip


def interval(
    index: int, times_us: list[int], *, failed: int = 0, oldest_age_us: float = 0.0, length_s: float = 0.25
) -> Interval:
    return Interval(
        index=index, start_s=index * length_s, end_s=(index + 1) * length_s, due=0, sent=0, completed=len(times_us), ok=len(times_us),
        failed=failed, errors=ErrorCounts(timeout=failed), in_flight=0, oldest_age_us=oldest_age_us,
        response_time_us=IntervalQuantiles(), histogram=encoded(times_us),
    )  # fmt: skip


@given(
    TIMES_US,
    TIMES_US,
    st.integers(0, 5),
    st.integers(0, 5),
    st.sampled_from(["50", "90", "99", "99.9", "12.5"]),
    st.integers(1, 1100),
)
def test_a_percentile_is_met_by_the_counting_rule(
    times: list[int], ages: list[int], failed: int, unsent: int, percent: str, limit: int
) -> None:
    end = load_end(times, ages, failed=failed, unsent=unsent)
    judged = judge(parse_objective(f"p{percent}<={limit}us"), end)
    # A histogram of three digits knows a time to a thousandth, so times this close to the limit may fall on either
    # side.
    if any(abs(time - limit) <= limit / 500 for time in (*times, *ages)):
        return
    intended = end.summary.requests.intended
    bad = sum(time > limit for time in times) + sum(age > limit for age in ages) + failed + unsent
    rule = intended > 0 and bad * 1000 <= intended * round(1000 - float(percent) * 10)
    assert judged.met == rule
    if judged.met:
        assert judged.found is not None
        assert judged.found <= limit


@settings(max_examples=30)
@given(TIMES_US, st.integers(0, 3))
def test_a_higher_percentile_is_never_found_lower(times: list[int], failed: int) -> None:
    end = load_end(times, failed=failed)
    found = [judge(parse_objective(f"{metric}<1s"), end).found for metric in ("p50", "p90", "p99", "p99.9", "max")]
    known = [math.inf if value is None else value for value in found]
    assert known == sorted(known)


def test_the_maximum_is_that_of_every_request_and_there_is_none_where_one_failed() -> None:
    assert judge(parse_objective("max<=1ms"), load_end([10, 20], [500])).found == pytest.approx(500, rel=1e-3)
    failed = judge(parse_objective("max<100s"), load_end([10, 20], failed=1))
    assert (failed.found, failed.met) == (None, False)


def test_a_server_that_does_not_answer_does_not_meet_an_objective() -> None:
    end = load_end([10] * 90, [3_000_000] * 10)
    assert not judge(parse_objective("p99<50ms"), end).met
    assert judge(parse_objective("p90<50ms"), end).met
    assert not judge(parse_objective("p50<1ms"), load_end([])).met


def test_shares_counts_and_throughput_are_held_against_their_limits() -> None:
    end = load_end([10] * 97, [10], failed=1, unsent=1, throughput_rps=97.0)
    for text, found, met in (
        ("errors<1%", 0.01, False),
        ("errors<=1%", 0.01, True),
        ("errors<2", 1.0, True),
        ("unanswered<0.5%", 0.01, False),
        ("unsent<=1", 1.0, True),
        ("throughput>97", 97.0, False),
        ("throughput>=97", 97.0, True),
        ("mean<11us", 10.0, True),
    ):
        judged = judge(parse_objective(text), end)
        assert judged.found == pytest.approx(found), text
        assert judged.met == met, text


@pytest.mark.parametrize(
    ("text", "metric", "limit", "unit"),
    [
        ("p99<50ms", "p99", 50_000, "us"),
        (" p99.9 <= 1.5s ", "p99.9", 1_500_000, "us"),
        ("max<800us", "max", 800, "us"),
        ("errors<0.1%", "errors", 0.001, "fraction"),
        ("throughput>1000", "throughput", 1000, "rps"),
    ],
)
def test_an_objective_is_a_figure_a_comparison_and_a_limit(text: str, metric: str, limit: float, unit: str) -> None:
    parsed = parse_objective(text)
    assert (parsed.metric, parsed.limit, parsed.unit) == (metric, limit, unit)
    assert parsed.text == text.strip()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "expected a metric, a comparison and a limit"),
        ("p99=50ms", "expected a metric, a comparison and a limit"),
        ("p99<50", "one of the units us, µs, ms, s after 50"),
        ("p99<5%", "one of the units"),
        ("p100<1s", "between 0 and 100"),
        ("p0<1s", "between 0 and 100"),
        ("median<1s", "expected a percentile such as p50 or p99.9"),
        ("p99>50ms", "expected < or <= after p99"),
        ("throughput<10", "expected > or >= after throughput"),
        ("throughput>10ms", "expected no unit after 10"),
        ("errors<1s", "one of the units % after 1"),
        ("p9.9.9<1s", "expected a percentile such as p50"),
    ],
)
def test_what_is_no_objective_is_told_by_its_flag(text: str, problem: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_objective(text)
    assert error.value.message.startswith(f"--objective: found {text!r}")
    assert problem in error.value.message


def test_a_condition_to_abort_on_compares_the_other_way_round() -> None:
    assert parse_abort_condition("errors>5%").limit == 0.05
    assert parse_abort_condition("throughput<10").comparison == "<"
    for text in ("errors<5%", "throughput>10", "unanswered>5"):
        with pytest.raises(UsageError, match=r"--abort-on: found"):
            parse_abort_condition(text)


class Abort:
    """An abort rule that counts how often it ended its load."""

    def __init__(self, *conditions: str) -> None:
        self.ends = 0
        self.watch = AbortWatch([parse_abort_condition(text) for text in conditions], self._end)

    def _end(self) -> None:
        self.ends += 1

    def first_to_end(self, intervals: Iterable[Interval]) -> int | None:
        """Returns the position of the first interval that ends the load."""
        for index, one in enumerate(intervals):
            self.watch.on_interval(one)
            if self.ends:
                return index
        return None


def test_a_load_is_aborted_when_the_last_second_together_is_beyond_the_limit() -> None:
    abort = Abort("errors>10%")
    # Half of one quarter of a second fails: 1 of 8 requests in the second that begins there.
    failures = [1, 0, 0, 0, 0, 0]
    assert (
        abort.first_to_end(interval(index, [10] * (2 - failed), failed=failed) for index, failed in enumerate(failures))
        == 3
    )
    assert abort.watch.reason is not None
    assert abort.watch.reason.found == pytest.approx(1 / 8)


def test_a_load_is_ended_once() -> None:
    abort = Abort("errors>10%")
    for index in range(20):
        abort.watch.on_interval(interval(index, [10], failed=1))
    assert abort.ends == 1


def test_a_load_without_such_failures_goes_on() -> None:
    assert Abort("errors>10%").first_to_end(interval(index, [10, 10]) for index in range(8)) is None


def test_a_server_that_stops_answering_is_beyond_any_time() -> None:
    ages = [index * 250_000.0 for index in range(6)]
    assert (
        Abort("p99>900ms").first_to_end(interval(index, [], oldest_age_us=age) for index, age in enumerate(ages)) == 4
    )


def test_throughput_and_times_are_those_of_the_last_second() -> None:
    slow = Abort("throughput<7", "p50>1ms")
    assert slow.first_to_end(interval(index, [100, 100]) for index in range(8)) is None
    assert slow.first_to_end(interval(8 + index, [5000, 5000]) for index in range(3)) == 2
    assert slow.watch.reason is not None
    assert slow.watch.reason.condition.metric == "p50"


def test_the_examples_in_docstrings_hold() -> None:
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0
