"""Tests the start of the measured window: after the ramp and the last change of the load's level."""

import numpy as np
import pytest

from weir.lab.steady_window import SteadyWatch, can_be_steady, find_window
from weir.model.load import ClosedLoad, Load, OpenLoad
from weir.model.load_records import ErrorCounts, Interval, IntervalQuantiles

INTERVAL_S = 0.1


def intervals(rates: list[float]) -> list[Interval]:
    """Returns an interval of 100 ms for each rate."""
    return [
        Interval(
            index=index,
            start_s=index * INTERVAL_S,
            end_s=(index + 1) * INTERVAL_S,
            due=count,
            sent=count,
            completed=count,
            ok=count,
            failed=0,
            errors=ErrorCounts(),
            in_flight=8,
            oldest_age_us=0,
            response_time_us=IntervalQuantiles(p50=1000.0),
            histogram="",
        )
        for index, count in enumerate(round(rate * INTERVAL_S) for rate in rates)
    ]


def noisy(rate: float, count: int, seed: int) -> list[float]:
    return list(np.random.default_rng(seed).normal(rate, 0.01 * rate, count))


RAMP = [float(rate) for rate in np.linspace(0, 100_000, 20)]


def test_what_users_do_while_they_still_come_does_not_count() -> None:
    window = find_window(intervals(RAMP + noisy(100_000, 60, 1)), asked_s=8.0, level_from_s=2.0)
    assert window.start_s == pytest.approx(2.0)
    assert window.steady is True
    assert [segment.start_s for segment in window.segments] == [2.0]


def test_without_a_steady_state_all_that_follows_the_ramp_counts() -> None:
    window = find_window(intervals(RAMP + noisy(100_000, 40, 1) + noisy(50_000, 20, 2)), asked_s=8.0, level_from_s=2.0)
    assert window.steady is False
    assert window.start_s == pytest.approx(2.0)
    whole = find_window(intervals(noisy(100_000, 40, 1) + noisy(50_000, 20, 2)), asked_s=6.0)
    assert (whole.steady, whole.start_s) == (False, 0.0)


@pytest.mark.parametrize(
    ("load", "judged"),
    [
        (ClosedLoad(8), True),
        (ClosedLoad(((0.0, 0.0), (2.0, 8.0))), True),
        (ClosedLoad(((0.0, 0.0), (4.0, 8.0))), False),
        (ClosedLoad(((0.0, 8.0), (1.0, 8.0), (1.0, 16.0))), False),
        (OpenLoad(((0.0, 0.0), (1.0, 100.0)), 8), True),
    ],
)
def test_a_load_is_judged_where_it_is_the_same_for_long_enough(load: Load, judged: bool) -> None:
    assert can_be_steady(load, 6.0, INTERVAL_S) is judged


def test_a_load_that_ended_as_steady_keeps_this_judgement_whatever_the_last_intervals_show() -> None:
    ends: list[float] = []
    watch = SteadyWatch(6.0, lambda: ends.append(watch.intervals[-1].end_s))
    for one in intervals([*noisy(100_000, 60, 1), 0.0, 0.0, 0.0]):
        watch.on_interval(one)
    assert ends == [pytest.approx(6.0)]
    assert watch.ended_with is not None
    assert (watch.ended_with.steady, watch.ended_with.extended) == (True, False)


def test_a_load_that_is_not_steady_at_the_end_of_its_window_continues() -> None:
    watch = SteadyWatch(6.0, lambda: pytest.fail("the load ended"))
    for one in intervals([*noisy(20_000, 40, 2), *noisy(100_000, 22, 1)]):
        watch.on_interval(one)
    assert watch.ended_with is None
