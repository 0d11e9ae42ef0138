"""Tests change points and steady state on simulated series."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from weir.stats.steady import POINTS, SteadyState, find_change_points, find_steady_state

Array = NDArray[np.float64]


def noise(rng: np.random.Generator, points: int, size: float, memory: float = 0.0) -> Array:
    """Returns relative noise around 1; `memory` is the autocorrelation of neighbouring points."""
    fresh = rng.normal(0, size * np.sqrt(1 - memory**2), points)
    wandering = itertools.accumulate(fresh[1:], lambda before, new: memory * before + new, initial=rng.normal(0, size))
    return 1 + np.array(list(wandering))


def judged(*series: Array) -> SteadyState:
    return find_steady_state([list(values) for values in series])


def alarms(points: int, size: float, memory: float, trials: int = 300) -> float:
    """Returns the share of trials with a detected change, although their two series have none."""
    rng = np.random.default_rng(7)
    return (
        sum(
            bool(judged(noise(rng, points, size, memory), noise(rng, points, size, memory)).changes)
            for _ in range(trials)
        )
        / trials
    )


@pytest.mark.parametrize(("memory", "most"), [(0.0, 0.02), (0.3, 0.06), (0.6, 0.17)])
@pytest.mark.parametrize("size", [0.03, 0.1])
def test_plain_noise_has_no_levels(size: float, memory: float, most: float) -> None:
    assert alarms(60, size, memory) <= most


def test_noise_within_the_tolerance_never_has_levels() -> None:
    assert alarms(60, 0.01, 0.0) == 0


@pytest.mark.parametrize("at", [10, 25, 45])
@pytest.mark.parametrize("step", [0.1, 0.5, -0.3])
def test_a_step_is_found_where_it_is(step: float, at: int) -> None:
    rng = np.random.default_rng(3)
    found = 0
    for _ in range(50):
        series = 100 * noise(rng, 60, 0.02)
        series[at:] *= 1 + step
        found += any(abs(change - at) <= 2 for change in find_change_points(list(series)))
    assert found >= 47


def test_a_step_within_the_tolerance_is_none_however_clear_it_is() -> None:
    rng = np.random.default_rng(19)
    series = 100 * noise(rng, 60, 0.001)
    series[20:] *= 1.015
    assert find_change_points(list(series)) == []
    series[20:] *= 1.02
    assert find_change_points(list(series)) == [20]


def test_a_server_that_was_cold_for_a_third_of_the_window_is_steady_after_it() -> None:
    rng = np.random.default_rng(5)
    rate = 1000 * noise(rng, 60, 0.03)
    rate[:20] *= 0.5
    steady = judged(rate, 1e6 / rate)
    assert steady.is_steady
    assert abs(steady.begin - 20) <= 1
    assert steady.share == pytest.approx(40 / 60, abs=0.02)


def test_a_level_that_begins_in_the_second_half_is_no_steady_state() -> None:
    rng = np.random.default_rng(5)
    rate = 1000 * noise(rng, 60, 0.03)
    rate[:40] *= 0.5
    assert not judged(rate).is_steady


def test_a_change_in_one_series_of_several_counts() -> None:
    rng = np.random.default_rng(11)
    steady, slower = 1000 * noise(rng, 60, 0.02), 1000 * noise(rng, 60, 0.02)
    slower[45:] *= 1.4
    assert judged(steady).is_steady
    assert not judged(steady, slower).is_steady


@pytest.mark.parametrize("length", [1, 3, 5])
def test_a_pause_of_a_few_intervals_is_part_of_a_steady_state(length: int) -> None:
    rng = np.random.default_rng(13)
    steady = 0
    for _ in range(50):
        rate, at = 1000 * noise(rng, 60, 0.03), int(rng.integers(5, 50))
        rate[at : at + length] *= 0.1
        steady += judged(rate).is_steady
    assert steady >= 47


def test_a_ramp_of_a_tenth_drifts_and_one_within_the_tolerance_does_not() -> None:
    rng = np.random.default_rng(17)
    ramps = np.linspace(-0.5, 0.5, 60)
    steep = [judged(1000 * (1 + 0.2 * ramps) * noise(rng, 60, 0.02)).is_steady for _ in range(50)]
    flat = [judged(1000 * (1 + 0.01 * ramps) * noise(rng, 60, 0.02)).is_steady for _ in range(50)]
    assert sum(steep) <= 2
    assert sum(flat) >= 48


def test_series_that_never_change_are_steady() -> None:
    steady = find_steady_state([[5.0] * POINTS, [0.0] * POINTS])
    assert steady.is_steady
    assert (steady.begin, steady.changes) == (0, ())


@given(st.lists(st.floats(0, 1e9), min_size=POINTS, max_size=120))
@settings(max_examples=60)
def test_whatever_the_values_are_levels_lie_apart_and_inside(values: list[float]) -> None:
    changes = find_change_points(values)
    assert changes == sorted(set(changes))
    assert all(0 < change < len(values) for change in changes)


@given(st.integers(0, 2**32), st.sampled_from([0.001, 1.0, 1e6]))
@settings(max_examples=30)
def test_the_unit_does_not_matter(seed: int, scale: float) -> None:
    series = noise(np.random.default_rng(seed), 60, 0.05)
    series[30:] *= 1.5
    assert find_change_points(list(series)) == find_change_points(list(series * scale))


def test_too_few_or_unequal_series_are_refused() -> None:
    for wrong in ([], [[1.0] * (POINTS - 1)], [[1.0] * 40, [1.0] * 41], [[float("nan")] * 40]):
        with pytest.raises(ValueError, match="expected"):
            find_steady_state(wrong)
