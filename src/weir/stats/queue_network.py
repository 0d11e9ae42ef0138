"""Computes a system's response times at a given rate, by formula and by simulation. Each tier has several machines."""

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weir.stats.mean import Array
from weir.stats.queueing import Station, round_up_servers

_RELAXATIONS = 5
"""Number of relaxation times from an empty queue to a queue within 1 % (e⁻⁵) of its steady state."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """The machines of one tier. The machines get requests in turn."""

    machine: Station
    machines: int

    def busy(self, rate_rps: float) -> float:
        """Returns the utilisation of each machine."""
        return rate_rps * self.machine.demand_s / (self.machines * self.machine.servers)

    @property
    def width_rps(self) -> float:
        """Maximum throughput of all machines together."""
        return self.machines * self.machine.width_rps


def mean_response_s(fleets: Sequence[Fleet], rate_rps: float, delay_s: float = 0.0) -> float:
    """Returns the mean response time of an open system: the sum over the tiers' M/M/m queues (Erlang C), plus a delay.

    Each machine gets an equal part of Poisson arrivals. Returns infinity if a tier is saturated. (Lazowska et al.,
    Quantitative System Performance, 1984, chapter 6; Erlang, 1917.)
    """
    return delay_s + sum(_response_s(fleet, rate_rps) for fleet in fleets)


def _response_s(fleet: Fleet, rate_rps: float) -> float:
    servers, service_s = round_up_servers(fleet.machine)
    if service_s <= 0:
        return 0.0
    offered = rate_rps / fleet.machines * service_s
    if offered >= servers:
        return math.inf
    # Erlang B by its recursion, which does not overflow; then Erlang C.
    blocked = 1.0
    for number in range(1, servers + 1):
        blocked = offered * blocked / (number + offered * blocked)
    busy = offered / servers
    waits = blocked / (1 - busy + busy * blocked)
    return service_s + waits * service_s / (servers - offered)


def simulate_response_times(
    fleets: Sequence[Fleet], rate_rps: float, delay_s: float = 0.0, *, requests: int = 60_000, seed: int = 0
) -> Array:
    """Returns simulated response times in seconds of requests that pass all tiers, with one simulated machine per tier.

    Service times are exponential, and queues are first come, first served. Each of a tier's n machines gets every n-th
    of the Poisson arrivals. So a machine's inter-arrival times are sums of n exponential times, and its queue is
    E_n/M/m. All machines of a tier are statistically alike, so one simulated machine gets all simulated requests.

    The simulation assumes Poisson arrivals at every tier, and that a request's times in different tiers are
    independent. Both are true for tiers of one machine with one server (Burke, 1956; Reich, 1957). Departures from
    other tiers are slightly more regular than Poisson arrivals. The simulated times are then up to 3 % longer than in a
    simulation of all machines.

    `rate_rps` must be below the maximum throughput of every tier. `requests` is the number of returned times. The
    simulation starts with additional requests that fill the queues.
    """
    times = np.full(requests, delay_s)
    for tier, fleet in enumerate(fleets):
        servers, service_s = round_up_servers(fleet.machine)
        if service_s <= 0:
            continue
        draw = np.random.default_rng([seed, tier])
        filling = _count_fill_requests(fleet.busy(rate_rps), servers)
        works = draw.exponential(service_s, filling + requests)
        came = np.cumsum(draw.gamma(fleet.machines, 1 / rate_rps, filling + requests))
        times += (_departure_times(came, works, servers) - came)[filling:]
    return times


def _count_fill_requests(busy: float, servers: int) -> int:
    """Returns the number of requests after which the empty start no longer influences a machine's queue.

    The relaxation time of M/M/1 is S ÷ (1 - √ρ)², with service time S and utilisation ρ (Cohen, The Single Server
    Queue, 1969). m servers count as one server that is m times as fast, but their relaxation time is at least S. More
    regular arrivals shorten the relaxation time.
    """
    return math.ceil(_RELAXATIONS * busy * max(servers, 1 / (1 - math.sqrt(busy)) ** 2))


def _departure_times(came: Array, works: Array, servers: int) -> Array:
    """Returns the departure times of a first come, first served queue."""
    if servers == 1:
        done = np.cumsum(works)
        left: Array = done + np.maximum.accumulate(came - (done - works))
        return left
    free = [0.0] * servers
    found = np.empty(len(came))
    for index, (at, work) in enumerate(zip(came.tolist(), works.tolist(), strict=True)):
        end = max(at, free[0]) + work
        heapq.heapreplace(free, end)
        found[index] = end
    return found
