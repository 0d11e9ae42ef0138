"""Compares machines of several tiers with closed forms and with a simulation."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.model.load_records import BUSY_FRACTION
from weir.stats import Station
from weir.stats.mean import Array
from weir.stats.queue_network import Fleet, mean_response_s, simulate_response_times


def test_one_server_answers_as_the_closed_form_says() -> None:
    # M/M/1: response times are exponential with the rate μ - λ.
    fleet = [Fleet(Station(0.01, 1), 1)]
    assert mean_response_s(fleet, 80) == pytest.approx(1 / (100 - 80))
    times = simulate_response_times(fleet, 80, requests=400_000)
    assert np.mean(times) == pytest.approx(0.05, rel=0.05)
    assert np.quantile(times, 0.99) == pytest.approx(-math.log(0.01) / 20, rel=0.07)


def test_several_servers_answer_as_erlang_says() -> None:
    # M/M/2 with ρ = 0.8: W = S ÷ (1 - ρ²).
    fleet = [Fleet(Station(0.01, 2), 1)]
    assert mean_response_s(fleet, 160) == pytest.approx(0.01 / (1 - 0.64))
    assert np.mean(simulate_response_times(fleet, 160, requests=300_000)) == pytest.approx(0.01 / 0.36, rel=0.05)


def test_tiers_add_up_and_so_does_a_delay() -> None:
    # Departures of M/M/1 are Poisson again (Burke, 1956).
    fleets = [Fleet(Station(0.01, 1), 1), Fleet(Station(0.005, 1), 1)]
    expected_s = 1 / (100 - 70) + 1 / (200 - 70) + 0.2
    assert mean_response_s(fleets, 70, 0.2) == pytest.approx(expected_s)
    assert np.mean(simulate_response_times(fleets, 70, 0.2, requests=300_000)) == pytest.approx(expected_s, rel=0.03)


def test_a_quota_is_a_slower_server() -> None:
    assert mean_response_s([Fleet(Station(0.01, 0.5), 1)], 10) == pytest.approx(1 / (50 - 10))
    three = mean_response_s([Fleet(Station(0.01, 2.5), 1)], 1e-9)
    assert three == pytest.approx(0.01 * 3 / 2.5)


def test_machines_that_take_turns_wait_less_than_their_parts_of_random_arrivals() -> None:
    fleet = [Fleet(Station(0.01, 1), 4)]
    simulated = float(np.mean(simulate_response_times(fleet, 320, requests=200_000)))
    assert 0.01 < simulated < mean_response_s(fleet, 320)


def e_n_m_1_s(machines: int, busy: float, service_s: float) -> float:
    """Returns the mean response time of E_n/M/1: S ÷ (1 - σ). σ is the transform of the arrival times at μ (1 - σ)."""
    sigma = busy
    for _ in range(10_000):
        sigma = (busy * machines / (busy * machines + 1 - sigma)) ** machines
    return service_s / (1 - sigma)


@pytest.mark.parametrize("machines", [1, 4, 1_000])
@pytest.mark.parametrize("busy", [0.5, 0.85])
def test_one_of_any_number_of_machines_waits_as_the_queue_of_every_nth_arrival_does(machines: int, busy: float) -> None:
    fleet = [Fleet(Station(0.01, 1), machines)]
    means = [float(np.mean(simulate_response_times(fleet, busy * fleet[0].width_rps, seed=seed))) for seed in range(8)]
    assert np.mean(means) == pytest.approx(e_n_m_1_s(machines, busy, 0.01), rel=0.03)


def test_requests_that_meet_queues_which_are_still_empty_do_not_count() -> None:
    fleet = [Fleet(Station(0.01, 1), 1)]
    first = [simulate_response_times(fleet, 85, requests=50, seed=seed).mean() for seed in range(4_000)]
    assert np.mean(first) == pytest.approx(1 / (100 - 85), rel=0.05)


def every_event_s(fleets: list[Fleet], rate_rps: float, requests: int) -> Array:
    """Simulates every machine of every tier; machines of a tier get the requests that leave the tier before in turn."""
    draw = np.random.default_rng(1)
    arrived = np.cumsum(draw.exponential(1 / rate_rps, requests))
    at = arrived.copy()
    for fleet in fleets:
        order = np.argsort(at)
        works = draw.exponential(fleet.machine.demand_s, requests)
        for turn in range(fleet.machines):
            mine = order[turn :: fleet.machines]
            done = np.cumsum(works[mine])
            at[mine] = done + np.maximum.accumulate(at[mine] - (done - works[mine]))
    return (at - arrived)[requests // 10 :]


@pytest.mark.parametrize("machines", [(2, 2), (4, 2), (1, 5, 3), (10, 1)])
def test_tiers_that_feed_each_other_answer_as_when_every_machine_is_simulated(machines: tuple[int, ...]) -> None:
    fleets = [Fleet(Station(0.01 * count, 1), count) for count in machines]
    every = every_event_s(fleets, 80, 800_000)
    one = np.concatenate([simulate_response_times(fleets, 80, seed=seed) for seed in range(10)])
    assert np.mean(one) == pytest.approx(np.mean(every), rel=0.04)
    assert np.quantile(one, 0.99) == pytest.approx(np.quantile(every, 0.99), rel=0.06)


@given(
    demand_s=st.floats(1e-4, 0.1), servers=st.floats(0.1, 16), machines=st.integers(1, 20), busy=st.floats(0.05, 0.98)
)
def test_a_response_takes_at_least_its_service_and_more_the_busier_it_is(
    demand_s: float, servers: float, machines: int, busy: float
) -> None:
    fleet = Fleet(Station(demand_s, servers), machines)
    rate_rps = busy * fleet.width_rps
    assert fleet.busy(rate_rps) == pytest.approx(busy)
    time_s = mean_response_s([fleet], rate_rps)
    assert demand_s <= time_s * (1 + 1e-9)
    assert time_s <= mean_response_s([fleet], min(0.99, busy * 1.02) * fleet.width_rps) * (1 + 1e-9)


def test_a_full_tier_never_answers() -> None:
    assert mean_response_s([Fleet(Station(0.01, 1), 2)], 200) == math.inf
    assert BUSY_FRACTION < 1


def test_the_same_seed_gives_the_same_times() -> None:
    fleets = [Fleet(Station(0.01, 2), 2)]
    one, same, other = (simulate_response_times(fleets, 100, requests=1_000, seed=seed) for seed in (1, 1, 2))
    assert (one == same).all()
    assert (one != other).any()
