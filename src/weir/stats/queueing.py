"""What arithmetic says of a system of tiers: service demands, the widest and the narrowest, and how many requests a second come out."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weir.stats.mean import CONFIDENCE, Array, Estimate, mean_interval, t_quantile

BUSY = 0.85
"""A resource with this utilisation is full: the rest is lost to queues that are empty now and then."""
_VARIED = 1.5
"""A slope needs throughput to differ by this factor between the lightest and the heaviest load."""


@dataclass(frozen=True, slots=True)
class Demand:
    """The time a tier works for one request."""

    per_request_s: Estimate
    idle: float
    """How busy it is without requests: the intercept, in busy seconds a second. 0 where the loads are too much alike to tell."""
    is_slope: bool
    """Whether it is the slope over several loads, which leaves out what the tier does anyway; else busy time ÷ requests."""


def service_demand(
    busy: Sequence[float], throughput: Sequence[float], loads: Sequence[int] = (), confidence: float = CONFIDENCE
) -> Demand | None:
    """A tier's service demand from trials under different loads: the slope of its busy time over throughput.

    U = U₀ + D·X (the utilisation law with what the tier does without requests; Denning & Buzen, ACM Computing Surveys 1978). Where all
    loads give about the same throughput the slope is noise, and D = U ÷ X of each trial is taken.

    Args:
        busy: of each trial, seconds of CPU time a second.
        throughput: of each trial, requests a second.
        loads: of each trial, which load it was under; not given: another one each. What varies between trials under one load is noise, and
            no slope: a quota stays full however much the host takes.
        confidence: of the interval.

    Returns:
        None without trials.

    Raises:
        ValueError: unequal lengths, or a throughput that is not positive.
    """
    pairs = list(zip(busy, throughput, strict=True))
    if any(not x > 0 for _, x in pairs):
        raise ValueError("expected positive throughput")
    if not pairs:
        return None
    used, rates = (np.array(column, dtype=np.float64) for column in zip(*pairs, strict=True))
    levels = [float(rates[np.array(loads) == load].mean()) for load in set(loads)] if loads else list(rates)
    if max(levels) < _VARIED * min(levels) or len(pairs) < 4:
        return Demand(mean_interval(list(used / rates), confidence), 0.0, is_slope=False)
    # Relative errors: heavy loads are not known better than light ones.
    weights = 1 / rates
    columns = np.column_stack([np.ones(len(rates)), rates]) * weights[:, np.newaxis]
    (idle, slope), *_ = np.linalg.lstsq(columns, used * weights, rcond=None)
    if idle < 0 or slope <= 0:
        return Demand(mean_interval(list(used / rates), confidence), 0.0, is_slope=False)
    residuals = used * weights - columns @ np.array([idle, slope])
    degrees = len(rates) - 2
    covariance = np.linalg.inv(columns.T @ columns) * float(residuals @ residuals) / degrees
    half_width = t_quantile(confidence, degrees) * math.sqrt(float(covariance[1, 1]))
    estimate = Estimate(float(slope), max(float(slope) - half_width, 0.0), float(slope) + half_width, len(rates))
    return Demand(estimate, float(idle), is_slope=True)


@dataclass(frozen=True, slots=True)
class Station:
    """A tier, or several that share their CPUs, as a queue with servers."""

    demand_s: float
    """Time of one server that a request takes, visits added up."""
    servers: float
    """CPUs, or what a quota leaves of them."""

    @property
    def width_rps(self) -> float:
        """The most that it can pass: m ÷ D."""
        return math.inf if self.demand_s <= 0 else self.servers / self.demand_s


def narrowest(stations: Sequence[Station]) -> int:
    """The index of the station that can pass the fewest requests a second.

    Raises:
        ValueError: no station.
    """
    if not stations:
        raise ValueError("expected at least one station")
    return min(range(len(stations)), key=lambda index: stations[index].width_rps)


def most_throughput(stations: Sequence[Station], users: float, think_s: float = 0.0) -> float:
    """The asymptotic bound min(m/D of the narrowest, N ÷ (Z + ΣD)). (Lazowska et al., Quantitative System Performance, 1984, chapter 5.)"""
    alone_s = think_s + sum(station.demand_s for station in stations)
    by_users = users / alone_s if alone_s > 0 else math.inf
    return min([by_users, *(station.width_rps for station in stations)])


@dataclass(frozen=True, slots=True)
class Predicted:
    """What a closed system does with so many users."""

    users: int
    throughput_rps: float
    response_s: float
    in_station: tuple[float, ...]
    """Mean number of requests at each station, waiting or in service."""


def closed_system(stations: Sequence[Station], users: int, think_s: float = 0.0) -> list[Predicted]:
    """Exact mean value analysis for 1, 2, … `users` users, stations with several servers among them.

    (Reiser & Lavenberg, J. ACM 1980.) Servers are whole: a station of 0.5 servers is one of half the speed, one of 2.5 servers has 3 of
    5/6 of the speed. Exact for exponential service times served in order, and for any at stations that share their time among requests.

    Args:
        stations: what a request visits.
        users: the largest population.
        think_s: how long a user waits between an answer and the next request.

    Raises:
        ValueError: fewer than one user, or no station and no think time.
    """
    if users < 1 or (not stations and think_s <= 0):
        raise ValueError("expected at least one user, and a station or a think time")
    count = [max(1, math.ceil(station.servers)) for station in stations]
    demand = [station.demand_s * whole / station.servers for station, whole in zip(stations, count, strict=True)]
    queue = np.zeros(len(stations))
    # Of each station the probabilities that 0, 1, … servers but the last are busy.
    busy: list[Array] = [np.eye(1, whole)[0] for whole in count]
    found = []
    for population in range(1, users + 1):
        response = np.array(
            [
                one / whole * (1 + waiting + float((np.arange(whole - 1, 0, -1)) @ of[: whole - 1]))
                for one, whole, waiting, of in zip(demand, count, queue, busy, strict=True)
            ]
        )
        throughput = population / (think_s + float(response.sum()))
        queue = throughput * response
        busy = [_busy_servers(of, throughput * one, whole) for of, one, whole in zip(busy, demand, count, strict=True)]
        found.append(Predicted(population, throughput, float(response.sum()), tuple(map(float, queue))))
    return found


def _busy_servers(before: Array, used: float, servers: int) -> Array:
    """The probabilities that so many servers are busy with one user more. `used`: the mean number that is."""
    now = np.zeros(servers)
    for number in range(1, servers):
        now[number] = used / number * before[number - 1]
    idle = 1 - (used + float(np.arange(servers - 1, 0, -1) @ now[1:])) / servers
    # Rounding makes it negative where all servers are always busy.
    now[0] = max(idle, 0.0)
    return now
