"""Capacity: the highest load at which few enough requests miss an objective, and the knee, from which on more users gain nothing.

What measures is given as a function, so that the searches themselves need no server. The search is MLRsearch (draft-ietf-bmwg-mlrsearch):
short measurements find the neighbourhood, long ones decide. Its two bounds are no confidence interval: several searches, each on a system
that was started anew, are what an interval is made of.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weir.stats.mean import Estimate, mean_interval

LEAST_SEARCHES = 5
"""Fewer give an interval that is not worth printing."""
KNEE_SHARE = 0.95
"""The knee is the fewest users who reach this share of the highest throughput."""
_FLAT_DOUBLINGS = 2
"""The search for the highest throughput ends after so many doublings of the users that gain nothing."""
_FOREVER_S = 1e9


@dataclass(frozen=True, slots=True)
class Goal:
    """What a rate has to hold, and how well it is to be known."""

    missed_share: float
    """How many of all intended requests may miss: 0.01 for a p99."""
    shortest_s: float = 5.0
    """The length of the measurements that find the neighbourhood."""
    longest_s: float = 30.0
    """The length of those that decide."""
    width: float = 0.02
    """How far apart, relative to the upper one, the two bounds may be in the end."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One measurement of a search."""

    load: float
    """Requests a second, or users."""
    duration_s: float
    intended: int
    missed: int

    @property
    def missed_share(self) -> float:
        """Of all that was intended."""
        return self.missed / self.intended if self.intended else 0.0


@dataclass(frozen=True, slots=True)
class Search:
    """What one search came to."""

    lower: float | None
    """The highest load that held, below the lowest that did not; None: not even the lowest load held."""
    upper: float | None
    """The lowest load that did not hold; None: even the highest load held."""
    attempts: tuple[Attempt, ...]
    """In the order in which they were made."""
    missed_share: float = 0.0
    """What was to be held."""

    @property
    def capacity(self) -> float | None:
        """Where between the two bounds as many miss as may, both shares being known; None where a bound is missing.

        On logarithms of load and share: near its capacity a server's misses grow with a power of the load. In the middle where one of the
        bounds had no misses, or chance has them in the wrong order.
        """
        if self.lower is None or self.upper is None:
            return None
        below, above = (self._share_at(load) for load in (self.lower, self.upper))
        part = 0.5
        if 0 < below < above:
            part = min(1.0, max(0.0, math.log(self.missed_share / below) / math.log(above / below)))
        return float(self.lower * (self.upper / self.lower) ** part)

    def _share_at(self, load: float) -> float:
        """Of all long measurements of that load."""
        longest = max(attempt.duration_s for attempt in self.attempts if attempt.load == load)
        decided = [attempt for attempt in self.attempts if attempt.load == load and attempt.duration_s == longest]
        return sum(attempt.missed for attempt in decided) / max(1, sum(attempt.intended for attempt in decided))


def search_capacity(measure: Callable[[float, float], tuple[int, int]], goal: Goal, *, least: float, most: float) -> Search:
    """Searches for the highest load between `least` and `most` that holds the goal.

    Args:
        measure: takes a load and a duration in seconds, and gives how many requests were intended and how many of them missed.
        goal: what is to hold.
        least: the lowest load that is tried.
        most: the highest, which is tried first.

    Raises:
        ValueError: not 0 < least < most.
    """
    if not 0 < least < most:
        raise ValueError(f"expected 0 < least < most: {least}, {most}")
    # Here and not above: findings import this room, and few of them are of a search.
    from MLRsearch import AbstractMeasurer, Config, MeasurementResult, MultipleLossRatioSearch, SearchGoal

    attempts: list[Attempt] = []

    class _Measurer(AbstractMeasurer):  # type: ignore[misc]
        def measure(self, intended_duration: float, intended_load: float) -> MeasurementResult:
            intended, missed = measure(intended_load, intended_duration)
            attempts.append(Attempt(intended_load, intended_duration, intended, missed))
            return MeasurementResult(intended_duration, intended_load, offered_count=intended, loss_count=missed)

    wanted = SearchGoal(
        loss_ratio=goal.missed_share,
        exceed_ratio=0.5,
        relative_width=goal.width,
        initial_trial_duration=goal.shortest_s,
        final_trial_duration=goal.longest_s,
        duration_sum=goal.longest_s,
        fail_fast=False,
    )
    config = Config(goals=[wanted], search_duration_max=_FOREVER_S, warmup_duration=None)
    # In this order: each is held against the other as it is set, and the defaults are large.
    config.min_load, config.max_load = least, most
    found = MultipleLossRatioSearch(config).search(_Measurer(), debug=lambda _: None)[wanted]
    lower, upper = found.relevant_lower_bound, found.relevant_upper_bound
    return Search(None if lower is None else float(lower), None if upper is None else float(upper), tuple(attempts), goal.missed_share)


def capacity_interval(searches: Sequence[Search]) -> Estimate | None:
    """The capacity with Student's t interval over searches. None where a search has only one bound, or there is no search."""
    found = [search.capacity for search in searches]
    known = [capacity for capacity in found if capacity is not None]
    if not known or len(known) < len(found):
        return None
    return over_searches(known)


def over_searches(values: Sequence[float]) -> Estimate:
    """A figure of several searches, at least one, with Student's t interval from `LEAST_SEARCHES` on."""
    interval = mean_interval(values)
    return interval if len(values) >= LEAST_SEARCHES else Estimate(interval.value, None, None, len(values))


@dataclass(frozen=True, slots=True)
class Knee:
    """Where more users stop gaining throughput."""

    users: int
    """The fewest who reach `KNEE_SHARE` of the highest throughput."""
    throughput_rps: float
    """Theirs."""
    highest_rps: float
    measured: tuple[tuple[int, float], ...]
    """Users and throughput of every measurement, by users."""


def search_knee(measure: Callable[[int], float], *, most_users: int, width: float = 0.05) -> Knee:
    """Searches for the knee of a closed loop: doubles the users until throughput grows no more, then halves the gap in which it stopped.

    Args:
        measure: takes a number of users and gives the throughput that they reach.
        most_users: where the doubling ends in any case.
        width: how far apart, relative to the upper one, the two numbers around the knee may be in the end.
    """
    measured: dict[int, float] = {}
    users, flat, highest = 1, 0, 0.0
    while True:
        measured[users] = measure(users)
        flat = 0 if measured[users] > highest / KNEE_SHARE else flat + 1
        highest = max(highest, measured[users])
        if flat >= _FLAT_DOUBLINGS or users >= most_users:
            break
        users = min(2 * users, most_users)
    enough = KNEE_SHARE * highest
    upper = min(count for count, rate in measured.items() if rate >= enough)
    lower = max((count for count in measured if count < upper), default=0)
    while lower and upper - lower > max(1, width * upper):
        middle = min(upper - 1, max(lower + 1, round(math.sqrt(lower * upper))))
        measured[middle] = measure(middle)
        if measured[middle] >= enough:
            upper = middle
        else:
            lower = middle
    return Knee(upper, measured[upper], max(measured.values()), tuple(sorted(measured.items())))
