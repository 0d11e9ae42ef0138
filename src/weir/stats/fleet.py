"""Several machines of each tier under arrivals at a rate: how long a request takes, by arithmetic and by simulation."""

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weir.stats.queueing import Station

Times = NDArray[np.float64]
_WARM_UP = 0.1
"""Of the simulated requests the first ones, which meet empty queues, are left out."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """Machines of one tier, each of which gets every n-th request."""

    machine: Station
    machines: int

    def busy(self, rate_rps: float) -> float:
        """The utilisation of each."""
        return rate_rps * self.machine.demand_s / (self.machines * self.machine.servers)

    @property
    def width_rps(self) -> float:
        """The most that all of them can pass."""
        return self.machines * self.machine.width_rps


def mean_response_s(fleets: Sequence[Fleet], rate_rps: float, delay_s: float = 0.0) -> float:
    """The mean response time of an open system: that of each tier's queue, M/M/m (Erlang C), added up, and a delay without a queue.

    Each machine gets an equal part of Poisson arrivals. (Lazowska et al., Quantitative System Performance, 1984, chapter 6; Erlang, 1917.)

    Args:
        fleets: the tiers.
        rate_rps: arrivals a second.
        delay_s: what a request waits for that nobody queues for.

    Returns:
        Infinity where a tier is full.
    """
    return delay_s + sum(_response_s(fleet, rate_rps) for fleet in fleets)


def _response_s(fleet: Fleet, rate_rps: float) -> float:
    servers, service_s = _whole(fleet.machine)
    if service_s <= 0:
        return 0.0
    offered = rate_rps / fleet.machines * service_s
    if offered >= servers:
        return math.inf
    # Erlang B by its recursion, which does not overflow, and C from it.
    blocked = 1.0
    for number in range(1, servers + 1):
        blocked = offered * blocked / (number + offered * blocked)
    busy = offered / servers
    waits = blocked / (1 - busy + busy * blocked)
    return service_s + waits * service_s / (servers - offered)


def _whole(station: Station) -> tuple[int, float]:
    """Whole servers, and how long one works for a request: 0.5 servers are one of half the speed, 2.5 three of 5/6 of the speed."""
    servers = max(1, math.ceil(station.servers))
    return servers, station.demand_s * servers / station.servers


def simulated_times_s(fleets: Sequence[Fleet], rate_rps: float, delay_s: float = 0.0, *, requests: int = 100_000, seed: int = 0) -> Times:
    """Response times of requests that arrive independently and pass all tiers, one after the other: a simulation of every event.

    Service times are exponential, queues are served in order, and a tier's machines take turns.

    Args:
        fleets: the tiers, in the order in which a request passes them.
        rate_rps: arrivals a second.
        delay_s: what each request takes on top.
        requests: how many are simulated.
        seed: of what is drawn.
    """
    draw = np.random.default_rng(seed)
    arrived = np.cumsum(draw.exponential(1 / rate_rps, requests))
    at = arrived.copy()
    order = np.arange(requests)
    for fleet in fleets:
        servers, service_s = _whole(fleet.machine)
        if service_s <= 0:
            continue
        left = np.empty(requests)
        works = draw.exponential(service_s, requests)
        for turn in range(fleet.machines):
            mine = order[turn :: fleet.machines]
            left[mine] = _left(at[mine], works[mine], servers)
        at = left
        order = np.argsort(at, kind="stable")
    found: Times = (at - arrived)[int(_WARM_UP * requests) :] + delay_s
    return found


def _left(came: Times, works: Times, servers: int) -> Times:
    """When each leaves a queue that is served in order."""
    if servers == 1:
        done = np.cumsum(works)
        left: Times = done + np.maximum.accumulate(came - (done - works))
        return left
    free = [0.0] * servers
    found = np.empty(len(came))
    for index, (at, work) in enumerate(zip(came.tolist(), works.tolist(), strict=True)):
        end = max(at, free[0]) + work
        heapq.heapreplace(free, end)
        found[index] = end
    return found
