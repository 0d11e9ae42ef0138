"""Tests the merge of several agents' records: the result must be that of one generator."""

import itertools
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.load_summary import load_end
from tests.support.records import interval
from weir.cluster.merge import IntervalMerger, add_reason, merge_ends, merge_intervals
from weir.model.hdr import Hdr
from weir.model.load_records import LOST_AGENT, Verdict

TIMES_MS = st.lists(st.floats(0.001, 10_000), max_size=40)


@given(st.lists(TIMES_MS, min_size=1, max_size=7))
def test_an_interval_is_that_of_all_answers_together(parts_ms: list[list[float]]) -> None:
    merged = merge_intervals([interval(3, times_ms) for times_ms in parts_ms])
    together = interval(3, [time_ms for times_ms in parts_ms for time_ms in times_ms])
    assert Hdr.from_text(merged.histogram).counts == Hdr.from_text(together.histogram).counts
    assert (merged.index, merged.completed, merged.ok) == (3, together.completed, together.ok)
    assert merged.response_time_us.max == together.response_time_us.max
    assert merged.in_flight == 3 * len(parts_ms)


def test_errors_of_an_interval_add_up_each_with_its_like() -> None:
    merged = merge_intervals([interval(0, errors={"timeout": 2}), interval(0, errors={"timeout": 1, "reset": 4})])
    assert (merged.errors.timeout, merged.errors.reset, merged.errors.connect, merged.failed) == (3, 4, 0, 7)


def test_an_interval_comes_out_when_the_last_agent_has_told_its_part() -> None:
    merger = IntervalMerger(["a", "b"])
    assert merger.take("a", interval(0, [1])) == []
    assert merger.take("a", interval(1, [1])) == []
    assert [one.index for one in merger.take("b", interval(0, [2]))] == [0]
    assert [one.completed for one in merger.take("b", interval(1, [2, 3]))] == [3]


def test_an_agent_that_has_ended_or_leaves_intervals_out_holds_nothing_up() -> None:
    merger = IntervalMerger(["a", "b"])
    for index in range(3):
        merger.take("a", interval(index, [1]))
    assert [one.index for one in merger.take("b", interval(1, [2]))] == [0, 1]
    assert [one.index for one in merger.ended("b")] == [2]
    assert [one.index for one in merger.take("a", interval(3))] == [3]
    assert merger.ended("a") == []


@given(st.lists(st.lists(st.integers(1, 10**10), min_size=1, max_size=50), min_size=1, max_size=5))
def test_an_end_is_that_of_all_answers_together(parts_ns: list[list[int]]) -> None:
    ends = {str(index): load_end({"response_time": times}) for index, times in enumerate(parts_ns)}
    merged = merge_ends(ends, [])
    times_ns = [time for times in parts_ns for time in times]
    together = load_end({"response_time": times_ns})
    found, expected = (Hdr.from_text(end.histograms["response_time_ns"]) for end in (merged, together))
    assert found.counts == expected.counts
    assert merged.summary.requests == together.summary.requests
    assert merged.summary.throughput_rps == together.summary.throughput_rps
    assert merged.summary.response_time_us.max == max(times_ns) / 1e3
    assert merged.summary.status == {"200": len(times_ns)}
    ranked = sorted(times_ns)
    median_us = ranked[(len(ranked) + 1) // 2 - 1] / 1e3
    # Histograms have three significant digits.
    assert merged.summary.response_time_us.p50 == pytest.approx(median_us, rel=1e-3)


def test_percentiles_are_those_of_the_sum_and_no_average() -> None:
    quick, slow = [1_000_000] * 90, [100_000_000] * 10
    merged = merge_ends({"a": load_end({"response_time": quick}), "b": load_end({"response_time": slow})}, [])
    assert merged.summary.response_time_us.p50 == pytest.approx(1_000, rel=1e-3)
    assert merged.summary.response_time_us.p99 == pytest.approx(100_000, rel=1e-3)


def test_the_verdict_is_the_worst_and_says_whose_reason_it_is() -> None:
    sound = load_end({"response_time": [1]})
    poor = load_end({"response_time": [1]}, verdict={"validity": "suspect", "reasons": ["busy"], "kinds": ["busy"]})
    verdict = merge_ends({"one": sound, "two": poor}, []).summary.verdict
    assert verdict == Verdict(validity="suspect", reasons=["two: busy"], kinds=["busy"])
    worse = add_reason(verdict, "invalid", LOST_AGENT, "one is lost")
    assert (worse.validity, worse.kinds[-1], worse.reasons[-1]) == ("invalid", LOST_AGENT, "one is lost")


def test_of_a_step_the_mean_is_known_and_percentiles_are_not() -> None:
    def with_step(completed: int, mean_us: float) -> dict[str, Any]:
        counts = {"sent": completed, "completed": completed, "ok": completed, "failed": 0}
        times = {"mean": mean_us, "min": mean_us / 2, "max": mean_us * 2, "p50": mean_us}
        return {"steps": {"login": {**counts, "response_time_us": times}}}

    ends = {"a": load_end({}, **with_step(30, 100.0)), "b": load_end({}, **with_step(10, 500.0))}
    step = (merge_ends(ends, []).summary.steps or {})["login"]
    times = step.response_time_us
    assert (step.completed, times.mean, times.min, times.max, times.p50) == (40, 200.0, 50.0, 1000.0, None)


def test_many_agents_merge_to_what_they_asked_in_any_order() -> None:
    draw = random.Random(1)
    merger = IntervalMerger(map(str, range(20)))
    # Agents send in any order, but each sends its own intervals in order.
    order = [str(agent) for agent in range(20) for _ in range(10)]
    draw.shuffle(order)
    indices = {agent: itertools.count() for agent in order}
    told = [(agent, interval(next(indices[agent]), [draw.uniform(1, 9)])) for agent in order]
    assert [part.index for _, part in told] != sorted(part.index for _, part in told)
    out = [merged for agent, part in told for merged in merger.take(agent, part)]
    assert [one.index for one in out] == list(range(10))
    assert all(one.completed == 20 for one in out)
