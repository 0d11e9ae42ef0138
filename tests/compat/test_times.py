"""Times in their order, against the same arithmetic on every single one of them."""

import statistics
from base64 import b64encode
from collections import Counter

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from weir.compat.times import Times
from weir.model.histogram import HIGHEST_NS, raw_bytes
from weir.model.records import Quantiles

SOME = st.lists(st.integers(min_value=0, max_value=10**9), min_size=1, max_size=60)


@given(SOME, st.integers(min_value=0, max_value=10**9))
def test_they_are_what_sorting_all_of_them_gives(values: list[int], limit: int) -> None:
    times, ordered = Times.of(Counter(values)), sorted(values)
    assert [times.at(rank) for rank in range(len(values))] == ordered
    assert times.at(len(values)) == times.longest == ordered[-1]
    assert (times.count, times.shortest) == (len(values), ordered[0])
    assert times.up_to(limit) == sum(value <= limit for value in values)
    assert times.mean == pytest.approx(statistics.fmean(values))
    assert times.median == pytest.approx(statistics.median(values))
    assert times.deviation == pytest.approx(statistics.stdev(values) if len(values) > 1 else 0.0, abs=1e-6)


@given(SOME, st.integers(min_value=1, max_value=100))
def test_a_percentile_is_the_least_time_that_so_many_take_at_most(values: list[int], percent: int) -> None:
    found = Times.of(Counter(values)).percentile(percent)
    assert sum(value <= found for value in values) * 100 >= percent * len(values)
    assert sum(value < found for value in values) * 100 < percent * len(values)


@given(SOME)
def test_an_array_of_times_gives_the_same(values: list[int]) -> None:
    assert Times.of_each(np.array(values)) == Times.of(Counter(values))


def test_of_a_histogram_the_ends_are_exact_and_the_rest_to_three_digits() -> None:
    values = [1_234_567, 2_345_678, 3_456_789, 98_765_432]
    histogram = HdrHistogram(1, HIGHEST_NS, 3)
    for value in values:
        histogram.record_value(value)
    times = Times.recorded(b64encode(raw_bytes(histogram)).decode(), Quantiles(min=1234.567, max=98765.432), zeros=2)
    assert [times.at(rank) for rank in (0, 1, 2, 5)] == [0, 0, 1_234_567, 98_765_432]
    assert [times.at(rank) for rank in (3, 4)] == pytest.approx(values[1:3], rel=1e-3)


def test_nothing_is_nothing() -> None:
    times = Times.recorded(None, Quantiles())
    assert (times.count, times.shortest, times.longest, times.mean, times.deviation, times.up_to(5)) == (0, 0, 0, 0.0, 0.0, 0)
