"""Compares laws of queues with formulas and with a simulation of tiers, event by event."""

import math

import numpy as np
import pytest
import simpy

from weir import stats
from weir.stats import Station


def machine_repair(demand_s: float, users: int, think_s: float) -> float:
    """Returns the throughput of one exponential server with N users who think: M/M/1//N, from its state
    probabilities."""
    ratio = demand_s / think_s
    weights = [math.factorial(users) / math.factorial(users - at) * ratio**at for at in range(users + 1)]
    return (1 - weights[0] / sum(weights)) / demand_s


@pytest.mark.parametrize("users", [1, 3, 10])
def test_a_single_server_with_thinking_users_is_the_machine_repair_model(users: int) -> None:
    found = stats.solve_closed_system([Station(0.02, 1)], users, think_s=0.1)
    assert [one.users for one in found] == list(range(1, users + 1))
    assert found[-1].throughput_rps == pytest.approx(machine_repair(0.02, users, 0.1))


def test_more_servers_than_users_never_queue() -> None:
    found = stats.solve_closed_system([Station(0.05, 8)], 8)
    for one in found:
        assert one.throughput_rps == pytest.approx(one.users / 0.05)
        assert one.response_s == pytest.approx(0.05)


def bound_rps(stations: list[Station], users: int) -> float:
    """Returns the asymptotic bound min(m/D of the narrowest, N ÷ ΣD) (Lazowska et al., 1984, chapter 5)."""
    alone_s = sum(station.demand_s for station in stations)
    return min([users / alone_s, *(station.width_rps for station in stations)])


@pytest.mark.parametrize("servers", [1, 2, 4, 0.5, 2.5])
def test_throughput_rises_to_the_width_of_the_narrowest(servers: float) -> None:
    stations = [Station(0.010, servers), Station(0.002, 1)]
    found = stats.solve_closed_system(stations, 60)
    rates = [one.throughput_rps for one in found]
    # Rounding may lower the last digit.
    assert np.all(np.diff(rates) > -1e-9)
    assert rates[-1] == pytest.approx(bound_rps(stations, 60), rel=0.01)
    for one in found:
        # Little's law over all stations, without a think time.
        assert one.throughput_rps * one.response_s == pytest.approx(one.users)
        assert one.throughput_rps <= bound_rps(stations, one.users) * (1 + 1e-9)


def simulated(
    stations: list[Station], users: int, think_s: float, seed: int, answers: int = 60_000
) -> tuple[float, float, list[float]]:
    """Simulates a closed system event by event; returns throughput, mean response time and utilisations."""
    random = np.random.default_rng(seed)
    world = simpy.Environment()
    resources = [simpy.Resource(world, capacity=int(station.servers)) for station in stations]
    busy = [0.0] * len(stations)
    times: list[float] = []
    begun = [0.0]

    def user() -> "simpy.events.ProcessGenerator":
        while True:
            if think_s:
                yield world.timeout(random.exponential(think_s))
            started = world.now
            for index, (station, resource) in enumerate(zip(stations, resources, strict=True)):
                with resource.request() as turn:
                    yield turn
                    needed = random.exponential(station.demand_s)
                    yield world.timeout(needed)
                    busy[index] += needed
            times.append(world.now - started)
            if len(times) == answers // 10:
                # The time before belongs to the transient phase.
                begun[0] = world.now
                busy[:] = [0.0] * len(stations)

    for _ in range(users):
        world.process(user())
    while len(times) < answers:
        world.step()
    counted = times[answers // 10 :]
    elapsed = world.now - begun[0]
    used = [one / elapsed / station.servers for one, station in zip(busy, stations, strict=True)]
    return len(counted) / elapsed, float(np.mean(counted)), used


@pytest.mark.parametrize(
    ("stations", "users", "think_s"),
    [
        ([Station(0.004, 1), Station(0.010, 1), Station(0.006, 1)], 12, 0.0),
        ([Station(0.004, 1), Station(0.020, 3), Station(0.006, 1)], 20, 0.05),
        ([Station(0.002, 2), Station(0.012, 2), Station(0.010, 4)], 6, 0.1),
    ],
)
def test_laws_agree_with_a_simulation_of_the_tiers(stations: list[Station], users: int, think_s: float) -> None:
    predicted = stats.solve_closed_system(stations, users, think_s)[-1]
    throughput, response_s, used = simulated(stations, users, think_s, seed=29)
    assert predicted.throughput_rps == pytest.approx(throughput, rel=0.02)
    assert predicted.response_s == pytest.approx(response_s, rel=0.02)
    # Little's law, and the utilisation law.
    assert throughput * (response_s + think_s) == pytest.approx(users, rel=0.02)
    for station, share in zip(stations, used, strict=True):
        assert throughput * station.demand_s / station.servers == pytest.approx(share, rel=0.02)


def test_the_slope_is_the_demand_and_leaves_out_what_a_tier_does_anyway() -> None:
    rng = np.random.default_rng(31)
    rates = np.repeat([50.0, 100.0, 200.0, 400.0], 10)
    covered = 0
    for _ in range(500):
        found = stats.estimate_service_demand(list((0.05 + 0.002 * rates) * rng.normal(1, 0.03, 40)), list(rates))
        assert found is not None
        assert found.is_slope
        assert found.per_request_s.low is not None
        assert found.per_request_s.high is not None
        covered += found.per_request_s.low <= 0.002 <= found.per_request_s.high
    assert 0.92 <= covered / 500 <= 0.98


def test_what_varies_between_trials_under_one_load_is_no_slope() -> None:
    # A quota of 0.2 CPUs is full in every trial, but the host takes different shares of it.
    busy, throughput = [0.2] * 6, [200.0, 320.0, 250.0, 300.0, 190.0, 330.0]
    found = stats.estimate_service_demand(busy, throughput, [7] * 6)
    assert found is not None
    assert not found.is_slope
    assert found.per_request_s.value == pytest.approx(np.mean(np.divide(busy, throughput)))


def test_loads_that_are_too_much_alike_give_the_ratio() -> None:
    found = stats.estimate_service_demand([0.20, 0.21, 0.19], [100.0, 105.0, 95.0])
    assert found is not None
    assert not found.is_slope
    assert found.per_request_s.value == pytest.approx(0.002)
    assert stats.estimate_service_demand([], []) is None
    with pytest.raises(ValueError, match="positive"):
        stats.estimate_service_demand([0.1], [0.0])


def test_the_narrowest_of_random_tiers_is_named_right_where_it_is_narrower_by_15_percent() -> None:
    rng = np.random.default_rng(37)
    right = 0
    for _ in range(500):
        widths = rng.uniform(100, 1000, 3)
        order = np.argsort(widths)
        if widths[order[1]] < 1.15 * widths[order[0]]:
            widths[order[1:]] *= 1.15
        servers = rng.integers(1, 5, 3)
        truth = [Station(float(count / width), float(count)) for count, width in zip(servers, widths, strict=True)]
        found = []
        for station in truth:
            rates = np.repeat(np.array([0.3, 0.6, 0.95]) * widths.min(), 10)
            demand = stats.estimate_service_demand(
                list(station.demand_s * rates * rng.normal(1, 0.05, 30)), list(rates)
            )
            assert demand is not None
            found.append(Station(demand.per_request_s.value, station.servers))
        right += np.argmin([station.width_rps for station in found]) == np.argmin(widths)
    assert right / 500 >= 0.98


def test_a_closed_system_without_users_is_an_error() -> None:
    with pytest.raises(ValueError, match="user"):
        stats.solve_closed_system([Station(1.0, 1)], 0)
