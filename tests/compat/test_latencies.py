"""Tests sorted times against the same arithmetic on every single time."""

import statistics
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.load_summary import load_end
from weir.compat.latencies import read_times, sort_array, sort_counts

SOME = st.lists(st.integers(min_value=0, max_value=10**9), min_size=1, max_size=60)


@given(SOME, st.integers(min_value=0, max_value=10**9))
def test_they_are_what_sorting_all_of_them_gives(values: list[int], limit: int) -> None:
    times, ordered = sort_counts(Counter(values)), sorted(values)
    assert [times.at(rank) for rank in range(len(values))] == ordered
    assert times.at(len(values)) == times.longest == ordered[-1]
    assert (times.count, times.shortest) == (len(values), ordered[0])
    assert times.count_up_to(limit) == sum(value <= limit for value in values)
    assert times.mean == pytest.approx(statistics.fmean(values))
    assert times.median == pytest.approx(statistics.median(values))
    assert times.deviation == pytest.approx(statistics.stdev(values) if len(values) > 1 else 0.0, abs=1e-6)


@given(SOME, st.integers(min_value=1, max_value=100))
def test_a_percentile_is_the_least_time_that_so_many_take_at_most(values: list[int], percent: int) -> None:
    found = sort_counts(Counter(values)).percentile(percent)
    assert sum(value <= found for value in values) * 100 >= percent * len(values)
    assert sum(value < found for value in values) * 100 < percent * len(values)


@given(SOME)
def test_an_array_of_times_gives_the_same(values: list[int]) -> None:
    assert sort_array(np.array(values)) == sort_counts(Counter(values))


def test_of_a_histogram_the_ends_are_exact_and_the_rest_to_three_digits() -> None:
    values = [1_234_567, 2_345_678, 3_456_789, 98_765_432]
    times = read_times(load_end({"response_time": values}), "response_time", zeros=2)
    assert [times.at(rank) for rank in (0, 1, 2, 5)] == [0, 0, 1_234_567, 98_765_432]
    assert [times.at(rank) for rank in (3, 4)] == pytest.approx(values[1:3], rel=1e-3)


def test_nothing_is_nothing() -> None:
    times = read_times(load_end({}), "response_time")
    assert (times.count, times.shortest, times.longest, times.mean, times.deviation, times.count_up_to(5)) == (
        0,
        0,
        0,
        0.0,
        0.0,
        0,
    )
