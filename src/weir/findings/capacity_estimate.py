"""Combines several searches into a server's capacity (a rate or users within an objective), or into its knee."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from weir import stats
from weir.findings.formatting import counted, estimate_text, significant

QUANTILES = (0.50, 0.90, 0.99)
"""The quantiles of the response time that a `Capacity` has."""


@dataclass(frozen=True, slots=True)
class Users:
    """The capacity as a number of users. Each user pauses between a response and the next request."""

    think_s: float
    """A user's mean pause in seconds."""
    users: stats.Estimate
    """Number of users: throughput × (mean response time + pause), averaged over the searches."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """The highest rate at which an objective holds."""

    title: str
    """Name of the server."""
    objective: str
    missed_share: float
    """Maximum share of the intended requests that may miss the objective."""
    is_fresh: bool
    """Whether each search had a new server process."""
    rate_rps: stats.Estimate | None
    """Capacity in requests per second, averaged over the searches. None if a search lacks its lower or upper bound."""
    searches: tuple[stats.SearchResult, ...]
    quantiles: tuple[stats.Quantile, ...]
    """Response times in nanoseconds, at the highest rate that met the objective in each search."""
    mean_s: float | None
    """Mean response time in seconds, at the highest rate that met the objective in each search."""
    users: Users | None
    """Capacity as a number of users. None if the caller gave no pause, or if the rate is unknown."""
    reasons: tuple[str, ...]
    sentence: str
    would_change: str

    @property
    def is_known(self) -> bool:
        return self.rate_rps is not None


@dataclass(frozen=True, slots=True)
class KneeFinding:
    """The knee: the smallest number of users that reaches nearly the highest throughput."""

    title: str
    is_fresh: bool
    users: stats.Estimate
    """Number of users at the knee, averaged over the searches."""
    throughput_rps: stats.Estimate
    """Throughput with the number of users at the knee."""
    searches: tuple[stats.Knee, ...]
    sentence: str
    would_change: str
    reasons: tuple[str, ...] = ()
    is_known: ClassVar[bool] = True
    """Always true, because every search finds a knee."""


@dataclass(frozen=True, slots=True)
class Answers:
    """The responses of one search, at the highest rate that met the objective."""

    histogram: bytes
    mean_s: float


def combine_capacity_searches(
    title: str,
    objective: str,
    missed_share: float,
    searches: Sequence[stats.SearchResult],
    answers: Sequence[Answers],
    *,
    is_fresh: bool,
    think_s: float | None,
    reasons: Sequence[str],
) -> Capacity:
    """Combines the results of several capacity searches. `answers`: the responses of each search that found a rate.
    `think_s`: a user's mean pause in seconds; None: leave out the number of users."""
    rate = stats.estimate_capacity(searches)
    quantiles = stats.merge_quantiles([one.histogram for one in answers], QUANTILES) if answers else []
    mean_s = sum(one.mean_s for one in answers) / len(answers) if answers else None
    users = None
    if think_s is not None and rate is not None and len(answers) == len(searches):
        pairs = zip(searches, answers, strict=True)
        each = [search.capacity * (one.mean_s + think_s) for search, one in pairs if search.capacity is not None]
        users = Users(think_s, stats.summarize_searches(each))
    found = Capacity(
        title=title,
        objective=objective,
        missed_share=missed_share,
        is_fresh=is_fresh,
        rate_rps=rate,
        searches=tuple(searches),
        quantiles=tuple(quantiles),
        mean_s=mean_s,
        users=users,
        reasons=tuple(reasons),
        sentence="",
        would_change=_what_would_change(len(searches), is_fresh=is_fresh),
    )
    return replace(found, sentence=_describe_capacity(found))


def combine_knee_searches(title: str, searches: Sequence[stats.Knee], *, is_fresh: bool) -> KneeFinding:
    """Combines the results of one or more searches for the knee."""
    users = stats.summarize_searches([float(one.users) for one in searches])
    throughput = stats.summarize_searches([one.throughput_rps for one in searches])
    return KneeFinding(
        title=title,
        is_fresh=is_fresh,
        users=users,
        throughput_rps=throughput,
        searches=tuple(searches),
        sentence=(
            f"{title} answers {estimate_text(throughput)} req/s with {estimate_text(users)} users without pauses, "
            f"{stats.KNEE_SHARE:.0%} of its highest throughput ({_basis(len(searches), is_fresh=is_fresh)})."
        ),
        would_change=_what_would_change(len(searches), is_fresh=is_fresh),
    )


def _describe_capacity(found: Capacity) -> str:
    basis = _basis(len(found.searches), is_fresh=found.is_fresh)
    if found.rate_rps is None:
        why = _why_not(found.searches)
        return f"The capacity of {found.title} within {found.objective} is unknown, because {why} ({basis})."
    times = ", ".join(
        f"p{quantile.probability * 100:g} {_time(quantile.value / 1e3)}"
        for quantile in found.quantiles
        if quantile.supported and quantile.value is not None
    )
    rate = f"{estimate_text(found.rate_rps)} req/s"
    if found.users is None:
        with_times = f", with {times}" if times else ""
        return f"{found.title} carries {rate} within {found.objective}{with_times} ({basis})."
    users, think_s = estimate_text(found.users.users), found.users.think_s
    seen = f", with {times}" if times else ""
    return (
        f"{found.title} carries {users} users, each pausing {think_s:g} s between a response and the next request, "
        f"within {found.objective}{seen}: {rate} ({basis})."
    )


def _why_not(searches: Sequence[stats.SearchResult]) -> str:
    loads = [attempt.load for search in searches for attempt in search.attempts]
    parts = []
    for count, even, pick in (
        (sum(search.lower is None for search in searches), "missed", min),
        (sum(search.upper is None for search in searches), "met", max),
    ):
        if count:
            of = counted(len(searches), "search", "searches")
            parts.append(f"in {count} of {of} even {significant(pick(loads))} req/s {even} the objective")
    return " and ".join(parts) or "there was no search"


def _basis(searches: int, *, is_fresh: bool) -> str:
    text = counted(searches, "search", "searches") + (" on fresh processes" if is_fresh else " on the same process")
    return text if searches >= stats.MIN_SEARCHES else f"{text}: indicative, an interval needs {stats.MIN_SEARCHES}"


def _what_would_change(searches: int, *, is_fresh: bool) -> str:
    parts = []
    if searches < stats.MIN_SEARCHES:
        parts.append(f"{stats.MIN_SEARCHES} searches give an interval.")
    if not is_fresh:
        parts.append(
            "Another start of the server may differ by more than the interval. "
            "weir restarts the server for each search only if the server is a stack."
        )
    parts.append("The capacity may differ on another machine, with other data or with another mix of requests.")
    return " ".join(parts)


def _time(us: float) -> str:
    if us >= 1e6:
        return f"{significant(us / 1e6)} s"
    return f"{significant(us / 1e3)} ms" if us >= 1e3 else f"{significant(us)} us"
