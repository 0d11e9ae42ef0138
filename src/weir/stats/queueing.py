"""Queueing models of a system of tiers: service demands, the bottleneck, bounds and predictions of throughput."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weir.stats.mean import Array, Estimate, mean_interval, t_quantile

_MIN_SPAN = 1.5
"""Minimum ratio of the highest to the lowest throughput. With a smaller ratio, the slope is mostly noise."""


@dataclass(frozen=True, slots=True)
class Demand:
    """The service demand of a tier: the busy time for one request."""

    per_request_s: Estimate
    idle: float
    """Work without requests, in busy seconds per second: the intercept of the fitted line. 0 if `is_slope` is false."""
    is_slope: bool
    """True: the demand is the slope of busy time over throughput, without idle work. False: busy time ÷ requests."""


def estimate_service_demand(
    busy: Sequence[float], throughput: Sequence[float], loads: Sequence[int] = ()
) -> Demand | None:
    """Estimates a tier's service demand from trials under different loads: the slope of busy time over throughput.

    The model is U = U₀ + D·X: the utilisation law plus idle work (Denning & Buzen, ACM Computing Surveys 1978). If all
    loads have about the same throughput, the slope is noise. Then D is the mean of U ÷ X. Returns None without trials.

    For each trial, `busy` has the CPU seconds per second, `throughput` the requests per second, and `loads` the load's
    number. Trials of one load differ only by noise. Without `loads`, each trial has a different load. Raises ValueError
    if lengths differ, or if a throughput is not positive.
    """
    pairs = list(zip(busy, throughput, strict=True))
    if any(not x > 0 for _, x in pairs):
        raise ValueError(f"found throughput {throughput!r}, expected only positive numbers")
    if not pairs:
        return None
    used, rates = (np.array(column, dtype=np.float64) for column in zip(*pairs, strict=True))
    levels = [float(rates[np.array(loads) == load].mean()) for load in set(loads)] if loads else list(rates)
    if max(levels) < _MIN_SPAN * min(levels) or len(pairs) < 4:
        return Demand(mean_interval(list(used / rates)), 0.0, is_slope=False)
    # The weights assume equal relative errors: heavy loads are not measured more precisely than light loads.
    weights = 1 / rates
    columns = np.column_stack([np.ones(len(rates)), rates]) * weights[:, np.newaxis]
    (idle, slope), *_ = np.linalg.lstsq(columns, used * weights, rcond=None)
    if idle < 0 or slope <= 0:
        return Demand(mean_interval(list(used / rates)), 0.0, is_slope=False)
    residuals = used * weights - columns @ np.array([idle, slope])
    degrees = len(rates) - 2
    covariance = np.linalg.inv(columns.T @ columns) * float(residuals @ residuals) / degrees
    half_width = t_quantile(degrees) * math.sqrt(float(covariance[1, 1]))
    estimate = Estimate(float(slope), max(float(slope) - half_width, 0.0), float(slope) + half_width, len(rates))
    return Demand(estimate, float(idle), is_slope=True)


@dataclass(frozen=True, slots=True)
class Station:
    """A queue with servers: a tier, or several tiers that share CPUs."""

    demand_s: float
    """Busy time of one server per request, summed over all visits of the request."""
    servers: float
    """Number of CPUs, or the CPU quota. May be fractional."""

    @property
    def width_rps(self) -> float:
        """Maximum throughput: `servers` ÷ `demand_s`."""
        return math.inf if self.demand_s <= 0 else self.servers / self.demand_s


def round_up_servers(station: Station) -> tuple[int, float]:
    """Returns a whole number of servers and their service time. Example: 2.5 servers become 3 with 5/6 of the speed."""
    servers = max(1, math.ceil(station.servers))
    return servers, station.demand_s * servers / station.servers


@dataclass(frozen=True, slots=True)
class ClosedPrediction:
    """Predicted throughput and response time of a closed system with `users` users."""

    users: int
    throughput_rps: float
    response_s: float


def solve_closed_system(stations: Sequence[Station], users: int, think_s: float = 0.0) -> list[ClosedPrediction]:
    """Solves a closed system for 1, 2, … `users` users by exact mean value analysis (Reiser & Lavenberg, J. ACM 1980).

    A request visits all stations. The number of servers is rounded up to a whole number (`round_up_servers`). The
    result is exact for exponential service times in a first come, first served queue, and for any service times with
    processor sharing. Raises ValueError if `users` is below 1, or if there is neither a station nor a think time.
    """
    if users < 1 or (not stations and think_s <= 0):
        raise ValueError(f"found {users} users, expected at least one user, and a station or a think time")
    servers = [round_up_servers(station) for station in stations]
    queue = np.zeros(len(stations))
    # For each station the probabilities that 0, 1, …, m − 1 of its servers are busy.
    busy: list[Array] = [np.eye(1, whole)[0] for whole, _ in servers]
    found = []
    for population in range(1, users + 1):
        response = np.array(
            [
                one / whole * (1 + waiting + float((np.arange(whole - 1, 0, -1)) @ of[: whole - 1]))
                for (whole, one), waiting, of in zip(servers, queue, busy, strict=True)
            ]
        )
        throughput = population / (think_s + float(response.sum()))
        queue = throughput * response
        busy = [_busy_servers(of, throughput * one, whole) for of, (whole, one) in zip(busy, servers, strict=True)]
        found.append(ClosedPrediction(population, throughput, float(response.sum())))
    return found


def _busy_servers(before: Array, used: float, servers: int) -> Array:
    """Returns the probabilities of 0, 1, … busy servers for one more user than `before`. `used`: mean busy servers."""
    now = np.zeros(servers)
    now[1:] = used / np.arange(1, servers) * before[:-1]
    idle = 1 - (used + float(np.arange(servers - 1, 0, -1) @ now[1:])) / servers
    # If all servers are always busy, a rounding error may make `idle` negative.
    now[0] = max(idle, 0.0)
    return now
