"""Tests the searches for a capacity and for the knee on systems whose truth is known."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from tests.support.tiers import cases
from weir import stats
from weir.stats import Goal, SearchResult

GOAL = Goal(missed_share=0.01)
CAPACITY_RPS = 1_000.0
# The share of requests that miss the objective grows with this power of the rate, as steeply as in a nearly full queue.
STEEPNESS = 40.0
# Relative difference between fresh processes of one system.
BETWEEN_SEARCHES = 0.03


def system(capacity_rps: float, random: np.random.Generator) -> Callable[[float, float], tuple[int, int]]:
    """A server of which exactly 1 % of requests miss the objective at its capacity; chance decides which ones."""

    def measure(rate_rps: float, length_s: float) -> tuple[int, int]:
        intended = max(1, round(rate_rps * length_s))
        share = min(1.0, GOAL.missed_share * (rate_rps / capacity_rps) ** STEEPNESS)
        return intended, int(random.binomial(intended, share))

    return measure


def searched(random: np.random.Generator) -> SearchResult:
    mine = CAPACITY_RPS * math.exp(random.normal(0, BETWEEN_SEARCHES))
    return stats.search_capacity(system(mine, random), GOAL, least=2.0, most=2_500.0)


def test_a_search_ends_between_two_bounds_that_are_near_the_capacity() -> None:
    found = stats.search_capacity(system(CAPACITY_RPS, np.random.default_rng(1)), GOAL, least=2.0, most=2_500.0)
    assert found.lower is not None
    assert found.upper is not None
    assert found.upper - found.lower <= GOAL.width * found.upper
    assert found.capacity == pytest.approx(CAPACITY_RPS, rel=0.02)
    # The search begins with short measurements and ends with long ones.
    lengths = [attempt.duration_s for attempt in found.attempts]
    assert (min(lengths), max(lengths)) == (GOAL.shortest_s, GOAL.longest_s)
    assert {attempt.load for attempt in found.attempts if attempt.duration_s == GOAL.longest_s} >= {
        found.lower,
        found.upper,
    }
    assert sum(lengths) < 300


@pytest.mark.parametrize("searches", cases([10, 5, 20], kept=1))
def test_intervals_of_the_capacity_hold_the_truth_as_often_as_they_say(searches: int) -> None:
    random = np.random.default_rng(searches)
    # Searches do not depend on their study, so a pool is made once and each study draws from the pool.
    pool = POOL or [searched(np.random.default_rng(seed)) for seed in range(3_000)]
    POOL[:] = pool
    # The truth is the mean of searches over all processes, not the value of a single process.
    truth = CAPACITY_RPS * math.exp(BETWEEN_SEARCHES**2 / 2)
    held = 0
    for _ in range(1_000):
        interval = stats.estimate_capacity([pool[index] for index in random.choice(len(pool), searches, replace=False)])
        assert interval is not None
        assert interval.low is not None
        assert interval.high is not None
        held += interval.low <= truth <= interval.high
    assert 930 <= held <= 970


POOL: list[SearchResult] = []


def test_fewer_than_five_searches_have_no_interval() -> None:
    one = searched(np.random.default_rng(2))
    interval = stats.estimate_capacity([one] * 4)
    assert interval is not None
    assert (interval.value, interval.low, interval.high) == (one.capacity, None, None)


def test_a_system_that_holds_nothing_or_everything_has_one_bound() -> None:
    never = stats.search_capacity(lambda rate, length: (100, 50), GOAL, least=1.0, most=100.0)
    assert (never.lower, never.capacity) == (None, None)
    always = stats.search_capacity(lambda rate, length: (100, 0), GOAL, least=1.0, most=100.0)
    assert (always.lower, always.upper) == (100.0, None)
    assert stats.estimate_capacity([never, always]) is None
    assert stats.estimate_capacity([]) is None


def test_bounds_must_rise() -> None:
    with pytest.raises(ValueError, match="least < most"):
        stats.search_capacity(lambda rate, length: (1, 0), GOAL, least=10.0, most=10.0)


@pytest.mark.parametrize(("service_s", "servers", "think_s"), [(0.010, 1, 0.0), (0.010, 8, 0.0), (0.010, 4, 0.1)])
def test_the_knee_is_where_the_asymptotes_of_a_closed_loop_meet_or_a_little_beyond(
    service_s: float, servers: int, think_s: float
) -> None:
    predicted = stats.solve_closed_system([stats.Station(service_s, servers)], 512, think_s)

    def measure(users: int) -> float:
        return predicted[users - 1].throughput_rps

    found = stats.search_knee(measure, most_users=512)
    crossing = (service_s + think_s) * servers / service_s
    assert crossing * 0.9 <= found.users <= 4 * crossing
    assert found.throughput_rps >= stats.KNEE_SHARE * servers / service_s * 0.99
    assert (
        measure(max(1, math.floor(found.users * 0.93) - 1)) <= stats.KNEE_SHARE * found.highest_rps or found.users == 1
    )
    assert found.measured == tuple(sorted(found.measured))


def test_throughput_that_falls_again_has_its_knee_before_the_peak() -> None:
    found = stats.search_knee(
        lambda users: 1_000 * users / (1 + 0.02 * (users - 1) + 0.001 * users * (users - 1)), most_users=256
    )
    peak = math.sqrt((1 - 0.02) / 0.001)
    assert found.users < peak
    assert found.throughput_rps >= 0.95 * found.highest_rps
