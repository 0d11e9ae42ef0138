"""Tests the points of the charts: the content of a slice of time, and the maximum number of slices."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.records import interval
from weir.live.time_buckets import MOST_POINTS, Points


def test_a_slice_holds_the_rate_and_the_percentiles_of_its_intervals_together() -> None:
    points = Points()
    for index in range(5):
        points.take_interval(interval(index, [1.0] * 9 + [100.0] if index == 0 else [1.0] * 10))
    (rate,), (p50,), (p99,) = (points.columns()[name] for name in ("rate_rps", "p50_ms", "p99_ms"))
    assert rate == 100
    assert p50 == pytest.approx(1.0, rel=0.02)
    # One of fifty took 100 ms, so p99 is 100 ms; a mean of percentiles would differ.
    assert p99 == pytest.approx(100.0, rel=0.02)


def test_no_percentile_is_longer_than_the_longest_answer() -> None:
    points = Points()
    points.take_interval(interval(0, [1.001]))
    assert points.columns()["p99_ms"] == [1.001]


def test_intervals_of_a_second_make_slices_of_a_second() -> None:
    points = Points()
    for index in range(3):
        points.take_interval(interval(index, [1.0], length_s=1.0))
    assert points.columns()["time_s"] == [0.5, 1.5, 2.5]
    assert points.columns()["rate_rps"] == [1, 1, 1]


def test_what_was_not_seen_is_a_gap_and_not_nothing() -> None:
    points = Points()
    points.take_interval(interval(0, [1.0], length_s=0.5))
    points.take_interval(interval(2, [], length_s=0.5))
    assert points.columns()["rate_rps"] == [2, None, 0]
    assert points.columns()["p50_ms"][1:] == [None, None]
    assert points.columns()["in_flight"] == [3, None, 3]


@given(st.integers(2, 40), st.lists(st.integers(0, 3), min_size=1, max_size=200))
def test_a_load_of_any_length_has_at_most_so_many_points_and_loses_no_answer(most: int, answers: list[int]) -> None:
    points = Points(most=most)
    for index, count in enumerate(answers):
        points.take_interval(interval(index, [1.0] * count, length_s=0.5))
    columns = points.columns()
    assert len(columns["time_s"]) <= most
    assert len({len(line) for name, line in columns.items() if isinstance(line, list)}) == 1
    # Only a part of the last slice may be known.
    known_s = [columns["step_s"]] * (len(columns["time_s"]) - 1)
    known_s.append(len(answers) * 0.5 - sum(known_s))
    assert sum(rate * known for rate, known in zip(columns["rate_rps"], known_s, strict=True)) == pytest.approx(
        sum(answers), rel=2e-3
    )


def test_a_load_that_nobody_saw_begin_is_coarse_from_the_first_point_on() -> None:
    points = Points()
    points.take_interval(interval(36_000, [1.0]))
    columns = points.columns()
    assert len(columns["time_s"]) <= MOST_POINTS
    assert columns["step_s"] == 8.0
    assert columns["time_s"][-1] == pytest.approx(3600, abs=8)


def test_coarser_points_keep_their_percentiles_by_adding_up_histograms() -> None:
    points = Points(most=2)
    for index in range(4):
        points.take_interval(interval(index, [1.0] * 99 if index % 2 else [50.0], length_s=0.5))
    columns = points.columns()
    assert columns["step_s"] == 1.0
    assert columns["p50_ms"] == pytest.approx([1.0, 1.0], rel=0.02)
    assert columns["p99_ms"] == pytest.approx([1.0, 1.0], rel=0.02)
    assert columns["rate_rps"] == [100, 100]


def test_changes_begin_with_the_slice_that_was_still_growing() -> None:
    points = Points()
    for index in range(7):
        points.take_interval(interval(index, [1.0]))
    assert points.changes()["first"] == 0
    points.take_interval(interval(7, [1.0]))
    changes = points.changes()
    assert (changes["first"], changes["time_s"]) == (1, [0.75])
    for index in range(8, 13):
        points.take_interval(interval(index, [1.0]))
    changes = points.changes()
    assert (changes["first"], changes["rate_rps"]) == (1, [10, 10])


def test_points_that_became_coarser_are_told_from_the_first_one_on() -> None:
    points = Points(most=4)
    for index in range(4):
        points.take_interval(interval(index, [1.0], length_s=0.5))
    points.changes()
    points.take_interval(interval(4, [1.0], length_s=0.5))
    changes = points.changes()
    assert (changes["first"], changes["step_s"], changes["time_s"]) == (0, 1.0, [0.5, 1.5, 2.5])


def test_cpu_is_told_by_tier_in_cpus() -> None:
    points = Points()
    points.take_cpu(0.0, 0.25, {"app": 0.25, "database": 0.05})
    points.take_cpu(0.25, 0.5, {"app": 0.125, "database": 0.05})
    points.take_cpu(0.5, 0.75, {"app": 0.25})
    assert points.columns()["tiers"] == {"app": [0.75, 1.0], "database": [0.2, None]}


def test_cpu_before_the_load_is_not_drawn() -> None:
    points = Points()
    points.take_cpu(-0.2, -0.1, {"app": 0.1})
    points.take_cpu(-0.05, 0.05, {"app": 0.1})
    assert points.columns()["time_s"] == []


def test_the_last_second_is_made_of_whole_slices() -> None:
    points = Points()
    for index in range(20):
        points.take_interval(interval(index, [50.0] if index < 10 else [1.0]))
    now = points.now()
    assert now.covered_s == pytest.approx(1.0)
    assert now.percentiles()["p99_ms"] == pytest.approx(1.0, rel=0.02)
