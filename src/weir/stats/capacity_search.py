"""Searches for the capacity and the knee of a system. The capacity is the highest load that meets an objective. Beyond
the knee, more users hardly increase throughput.

The caller passes a function that measures a load. The capacity search is MLRsearch (draft-ietf-bmwg-mlrsearch): short
measurements narrow the range of loads, and long measurements decide whether a load meets the objective. A search finds
two bounds, which are not a confidence interval. An interval needs several searches on freshly started systems.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weir.stats.mean import Estimate, mean_interval

MIN_SEARCHES = 5
"""Minimum number of searches for a confidence interval. With fewer searches, an interval is too wide to be useful."""
KNEE_SHARE = 0.95
"""The knee is the smallest number of users with at least this share of the highest throughput."""
_FLAT_DOUBLINGS = 2
"""A knee search stops doubling the users after this number of doublings without more throughput."""
_FOREVER_S = 1e9


@dataclass(frozen=True, slots=True)
class Goal:
    """The condition for a load, and the precision of the search."""

    missed_share: float
    """Maximum share of the intended requests that may miss the objective. Example: 0.01 for a p99."""
    shortest_s: float = 5.0
    """Duration of the short measurements. They narrow the range of loads."""
    longest_s: float = 30.0
    """Duration of the long measurements. They decide whether a load meets the goal."""
    width: float = 0.02
    """Maximum difference between the two final bounds of the capacity, relative to the upper bound."""


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
    """Highest load below `upper` that met the goal. None if even the lowest load failed."""
    upper: float | None
    """Lowest load that failed. None if even the highest load met the goal."""
    attempts: tuple[Attempt, ...]
    """The measurements in chronological order."""
    missed_share: float = 0.0
    """The goal's maximum share of requests that miss the objective."""

    @property
    def capacity(self) -> float | None:
        """Estimated load at which the allowed share of requests misses the objective. None if a bound is None.

        The estimate interpolates between the bounds, linearly in the logarithms of load and share: misses near the
        capacity grow with a power of the load. The estimate is the geometric mean of the bounds if a bound had no
        misses, or if the lower bound had the larger share of misses.
        """
        if self.lower is None or self.upper is None:
            return None
        below, above = (self._share_at(load) for load in (self.lower, self.upper))
        part = 0.5
        if 0 < below < above:
            part = min(1.0, max(0.0, math.log(self.missed_share / below) / math.log(above / below)))
        return float(self.lower * (self.upper / self.lower) ** part)

    def _share_at(self, load: float) -> float:
        """Returns the share of requests that missed the objective, from the longest measurements of a load."""
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
    # The setters compare both values, so the minimum must come before the maximum: the default maximum is large.
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
    """Returns the mean capacity with Student's t interval. None without searches, or if a search lacks a bound."""
    found = [search.capacity for search in searches]
    known = [capacity for capacity in found if capacity is not None]
    if not known or len(known) < len(found):
        return None
    return summarize_searches(known)


def summarize_searches(values: Sequence[float]) -> Estimate:
    """Returns the mean of one value per search. Adds Student's t interval from `MIN_SEARCHES` values or more."""
    interval = mean_interval(values)
    return interval if len(values) >= MIN_SEARCHES else Estimate(interval.value, None, None, len(values))


@dataclass(frozen=True, slots=True)
class Knee:
    """The result of a knee search."""

    users: int
    """The smallest number of users that reaches `KNEE_SHARE` of the highest throughput."""
    throughput_rps: float
    """Throughput with `users` users."""
    highest_rps: float
    measured: tuple[tuple[int, float], ...]
    """Users and throughput of every measurement, sorted by users."""


def search_knee(measure: Callable[[int], float], *, most_users: int, width: float = 0.05) -> Knee:
    """Searches for the knee of a closed loop. Doubles the number of users until throughput stops growing, but not
    beyond `most_users`. Then bisects between the two measured numbers of users around the knee.

    `measure` takes a number of users and returns the throughput. The bisection ends when the two numbers around the
    knee differ by at most `width`, relative to the larger number.
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
