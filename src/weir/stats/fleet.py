"""Several machines of each tier under arrivals at a rate: how long a request takes, by arithmetic and by simulation."""

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weir.stats.queueing import Station

Times = NDArray[np.float64]
_RELAXATIONS = 5
"""The first requests meet queues that are still empty: after so many relaxation times they are within 1 % (e⁻⁵) of what they stay at."""


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


def simulated_times_s(fleets: Sequence[Fleet], rate_rps: float, delay_s: float = 0.0, *, requests: int = 60_000, seed: int = 0) -> Times:
    """Response times of requests that arrive independently and pass all tiers, one after the other: a simulation of one machine of each.

    Service times are exponential, queues are served in order, and a tier's machines take turns. These are statistically alike, and each
    gets every n-th request: what it sees of Poisson arrivals comes in steps that are sums of n exponential ones, a queue E_n/M/m. So one
    machine tells what all would, and it gets all of the simulated requests, however many machines there are: its queue fills.

    Every tier is taken to get Poisson arrivals, and its times to be independent of those in the others. Of tiers that are one machine with
    one server that is exact (Burke, 1956; Reich, 1957). Otherwise what leaves a tier is Poisson arrivals, each put off by a time of its
    own, and put together from many queues: nearly Poisson again. It is a little less regular than what really leaves, so that the times
    come out rather too long than too short: up to 3 % against a simulation of all machines.

    Args:
        fleets: the tiers.
        rate_rps: arrivals a second, fewer than any tier can pass.
        delay_s: what each request takes on top.
        requests: how many are simulated, after those that fill the queues.
        seed: of what is drawn.
    """
    times = np.full(requests, delay_s)
    for tier, fleet in enumerate(fleets):
        servers, service_s = _whole(fleet.machine)
        if service_s <= 0:
            continue
        draw = np.random.default_rng([seed, tier])
        filling = _filling(fleet.busy(rate_rps), servers)
        works = draw.exponential(service_s, filling + requests)
        came = np.cumsum(draw.gamma(fleet.machines, 1 / rate_rps, filling + requests))
        times += (_left(came, works, servers) - came)[filling:]
    return times


def _filling(busy: float, servers: int) -> int:
    """How many requests reach a machine until its queue no longer tells that it began empty.

    The relaxation time of M/M/1 is S ÷ (1 - √ρ)² (Cohen, The Single Server Queue, 1969). With m servers it is that of one as fast as all
    of them, but not less than S; with steadier arrivals it is shorter.
    """
    return math.ceil(_RELAXATIONS * busy * max(servers, 1 / (1 - math.sqrt(busy)) ** 2))


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
