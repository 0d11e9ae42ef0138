"""Searches for the capacity and the knee of a system. The capacity is the highest load that meets an objective. Beyond
the knee, more users hardly increase throughput.

The caller passes the measurement as a function, so a search does not need a server. The capacity search is MLRsearch
(draft-ietf-bmwg-mlrsearch): short measurements find the neighbourhood of the capacity, long measurements decide. The
two bounds of a search are not a confidence interval. An interval needs several searches on freshly started systems.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weir.stats.mean import Estimate, mean_interval

MIN_SEARCHES = 5
"""Minimum number of searches for a confidence interval. From fewer searches, an interval is too wide to be useful."""
KNEE_SHARE = 0.95
"""The knee is the smallest number of users with at least this share of the highest throughput."""
_FLAT_DOUBLINGS = 2
"""Number of doublings of the users without a gain after which the search for the highest throughput ends."""
_FOREVER_S = 1e9


@dataclass(frozen=True, slots=True)
class Goal:
    """The condition that a load must meet, and the precision of the search."""

    missed_share: float
    """Maximum share of the intended requests that may miss the objective. Example: 0.01 for a p99."""
    shortest_s: float = 5.0
    """Duration of the short measurements, which find the neighbourhood of the capacity."""
    longest_s: float = 30.0
    """Duration of the long measurements, which decide."""
    width: float = 0.02
    """Maximum difference of the final bounds, relative to the upper bound."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One measurement of a search."""

    load: float
    """The load in requests per second or in users."""
    duration_s: float
    intended: int
    missed: int

    @property
    def missed_share(self) -> float:
        """Share of the intended requests that missed the objective."""
        return self.missed / self.intended if self.intended else 0.0


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Result of one search: the bounds of the capacity, and the measurements."""

    lower: float | None
    """Highest load that met the goal, below the lowest load that failed. None if even the lowest load failed."""
    upper: float | None
    """Lowest load that failed. None if even the highest load met the goal."""
    attempts: tuple[Attempt, ...]
    """The attempts in chronological order."""
    missed_share: float = 0.0
    """Maximum share of missed requests, from the goal."""

    @property
    def capacity(self) -> float | None:
        """Estimated load at which exactly the allowed share of requests misses the objective, or None without a bound.

        The estimate interpolates linearly in the logarithms of load and share, because misses near capacity grow with a
        power of the load. The estimate is the geometric mean if a bound had no misses, or if the lower bound missed
        more.
        """
        if self.lower is None or self.upper is None:
            return None
        below, above = (self._share_at(load) for load in (self.lower, self.upper))
        part = 0.5
        if 0 < below < above:
            part = min(1.0, max(0.0, math.log(self.missed_share / below) / math.log(above / below)))
        return float(self.lower * (self.upper / self.lower) ** part)

    def _share_at(self, load: float) -> float:
        """Returns the share of requests that missed the objective in all long measurements of a load."""
        longest = max(attempt.duration_s for attempt in self.attempts if attempt.load == load)
        decided = [attempt for attempt in self.attempts if attempt.load == load and attempt.duration_s == longest]
        return sum(attempt.missed for attempt in decided) / max(1, sum(attempt.intended for attempt in decided))


def search_capacity(
    measure: Callable[[float, float], tuple[int, int]], goal: Goal, *, least: float, most: float
) -> SearchResult:
    """Searches for the highest load between `least` and `most` that meets the goal. Measures `most` first.

    `measure` takes a load and a duration in seconds, and returns the numbers of intended and of missed requests. Raises
    ValueError unless 0 < least < most.
    """
    if not 0 < least < most:
        raise ValueError(f"found least = {least} and most = {most}, expected 0 < least < most")
    # Imported here, because the import is slow and few runs are searches.
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
    # The minimum comes first: each setter compares both values, and the default maximum is large.
    config.min_load, config.max_load = least, most
    found = MultipleLossRatioSearch(config).search(_Measurer(), debug=lambda _: None)[wanted]
    lower, upper = found.relevant_lower_bound, found.relevant_upper_bound
    return SearchResult(
        None if lower is None else float(lower),
        None if upper is None else float(upper),
        tuple(attempts),
        goal.missed_share,
    )


def estimate_capacity(searches: Sequence[SearchResult]) -> Estimate | None:
    """Returns the mean capacity with Student's t interval, or None without searches or if a search lacks a bound."""
    found = [search.capacity for search in searches]
    known = [capacity for capacity in found if capacity is not None]
    if not known or len(known) < len(found):
        return None
    return summarize_searches(known)


def summarize_searches(values: Sequence[float]) -> Estimate:
    """Returns the mean of one value per search, with Student's t interval if there are at least `MIN_SEARCHES`."""
    interval = mean_interval(values)
    return interval if len(values) >= MIN_SEARCHES else Estimate(interval.value, None, None, len(values))


@dataclass(frozen=True, slots=True)
class Knee:
    """The number of users beyond which throughput hardly grows."""

    users: int
    """The smallest number of users that reaches `KNEE_SHARE` of the highest throughput."""
    throughput_rps: float
    """Throughput with that number of users."""
    highest_rps: float
    measured: tuple[tuple[int, float], ...]
    """Users and throughput of every measurement, sorted by users."""


def search_knee(measure: Callable[[int], float], *, most_users: int, width: float = 0.05) -> Knee:
    """Searches for the knee of a closed loop. Doubles the users until throughput stops growing, then bisects the last
    gap.

    `measure` takes a number of users and returns the throughput. The doubling ends at `most_users` in any case. The
    bisection ends when the two numbers around the knee differ by at most `width`, relative to the larger number.
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
