"""Laws that hold for every load, whatever tool measured it. weir checks its own trials with the same laws
(`trial_claims`).

Sources: Little 1961; Denning & Buzen 1978 (operational laws); Bhatia & Davis 2000 (largest standard deviation between
two bounds). Each law allows for the rounding of every figure that it uses. A law returns its violations, or None if the
claim lacks a figure that the law needs.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from weir.model.reported_result import Claim, Figure

AT_CAP = 0.95
"""A throughput above this share of the load's own limit says little about the server."""
SLACK = 0.002
"""Relative tolerance beyond rounding: the last responses arrive after the tool stops its clock."""
HEY_KEEPS = 1_000_000
"""hey keeps this many results. Its sums, and so its mean, include all."""

Kind = Literal["impossible", "capped"]


@dataclass(frozen=True, slots=True)
class Violation:
    """A law that a claim violates, or a limit that it reaches."""

    kind: Kind
    law: str
    found: str
    """The printed figure and the law's limit: a sentence."""
    cause: str
    """The probable cause, or the consequence: a sentence."""


@dataclass(frozen=True, slots=True)
class LawCheck:
    """The laws' judgement of one claim."""

    laws: int
    """Number of laws for which the claim has the figures."""
    violations: tuple[Violation, ...]


Law = Callable[[Claim], list[Violation] | None]


def check_laws(claim: Claim) -> LawCheck:
    """Checks a claim against every law."""
    found = [violations for law in _LAWS if (violations := law(claim)) is not None]
    return LawCheck(len(found), tuple(violation for violations in found for violation in violations))


def find_violations(claim: Claim) -> tuple[Violation, ...]:
    """Returns the violations of a claim: impossible figures, and a throughput that the load limits."""
    return check_laws(claim).violations


def _littles_law(claim: Claim) -> list[Violation] | None:
    """Closed loop: users = throughput × (response time + think time) while all users are active; fewer users
    otherwise."""
    if claim.users is None or claim.throughput_rps is None or claim.mean_s is None or claim.throughput_rps.low <= 0:
        return None
    # A user's last pause may end after the load: each user has one pause fewer than requests.
    requests = _requests(claim)
    pauses = 1.0 if requests is None else max(0.0, 1 - claim.users / requests)
    most_s = claim.users / claim.throughput_rps.low - claim.think_s.low * pauses
    if claim.mean_s.low <= most_s:
        return []
    printed_s = claim.users / claim.throughput_rps.value - claim.think_s.value * pauses
    minus = f" less the pause of {_time(claim.think_s.value)}" if claim.think_s.value else ""
    found = (
        f"{claim.users:,} users with one request each at {claim.throughput_rps.value:,.6g} requests/s spend at most "
        f"{_time(printed_s)} on it ({claim.users:,} ÷ {claim.throughput_rps.value:,.6g}{minus}), and the mean is printed as "
        f"{_time(claim.mean_s.value)}."
    )
    return [Violation("impossible", "users = throughput × response time", found, _cause_of_mean(claim))]


def _requests(claim: Claim) -> float | None:
    """The number of requests: as printed, or computed from other figures."""
    if claim.requests:
        return claim.requests
    if (
        claim.throughput_rps is not None
        and claim.duration_s is not None
        and claim.throughput_rps.low * claim.duration_s.low > 0
    ):
        return claim.throughput_rps.low * claim.duration_s.low
    return claim.users * claim.loops if claim.users and claim.loops else None


def _cause_of_mean(claim: Claim) -> str:
    match claim.tool:
        case "wrk":
            return (
                "wrk adds response times that it did not measure, to correct for requests that it did not send, even in a "
                "closed loop: the mean does not describe the load that ran."
            )
        case "hey" if (
            claim.duration_s
            and claim.throughput_rps
            and claim.duration_s.value * claim.throughput_rps.value > HEY_KEEPS
        ):
            return (
                f"hey keeps the first {HEY_KEEPS:,} results but divides the sum of all results by that number, so the mean grows "
                "with the length of the run."
            )
        case _:
            return "Users, throughput and mean contradict each other: at least one is wrong or belongs to another run."


def _most_of_the_load(claim: Claim) -> list[Violation] | None:
    """Users who start during a ramp and send N requests each need at least the ramp and the last user's requests."""
    if claim.users is None or claim.loops is None or claim.throughput_rps is None or claim.ramp_s <= 0:
        return None
    requests = claim.users * claim.loops
    cap_rps = requests / claim.ramp_s
    what = f"{claim.users:,} users with {claim.loops} requests each make {requests:,}"
    if claim.throughput_rps.low > cap_rps:
        found = (
            f"{what}, and the last user starts after {_time(claim.ramp_s)}: at most {cap_rps:,.4g} requests/s, but "
            f"{claim.throughput_rps.value:,.6g} is printed."
        )
        return [
            Violation(
                "impossible", "throughput ≤ users × loops ÷ ramp", found, "The load described is not the load that ran."
            )
        ]
    if claim.mean_s is None:
        return []
    last_s = claim.loops * (claim.mean_s.value + claim.think_s.value)
    reachable_rps = requests / (claim.ramp_s + last_s)
    if claim.throughput_rps.value < AT_CAP * reachable_rps:
        return []
    return [
        Violation(
            "capped",
            "throughput ≤ users × loops ÷ (ramp + loops × response time)",
            f"{what}, which takes the ramp of {_time(claim.ramp_s)} and the last user's {_time(last_s)}: no server can exceed "
            f"{reachable_rps:,.4g} requests/s under this load, and {claim.throughput_rps.value:,.6g} is printed.",
            "The load limits this throughput, not the server: a ratio to it does not compare servers.",
        )
    ]


def _mean_between_bounds(claim: Claim) -> list[Violation] | None:
    if claim.mean_s is None or (claim.min_s is None and claim.max_s is None):
        return None
    beyond = []
    if claim.min_s is not None and claim.mean_s.high < claim.min_s.low:
        beyond.append(("fastest", claim.min_s))
    if claim.max_s is not None and claim.mean_s.low > claim.max_s.high:
        beyond.append(("slowest", claim.max_s))
    return [
        Violation(
            "impossible",
            "fastest ≤ mean ≤ slowest",
            f"The mean is printed as {_time(claim.mean_s.value)} and the {name} as {_time(bound.value)}.",
            _OTHER_REQUESTS,
        )
        for name, bound in beyond
    ]


def _mean_among_quantiles(claim: Claim) -> list[Violation] | None:
    """The quantiles split the requests into groups, each between two quantiles. That bounds the mean of all."""
    if claim.mean_s is None or len(claim.quantiles_s) < 3:
        return None
    steps = sorted(claim.quantiles_s.items())
    shares = [
        (q, low, high)
        for (q, low), (_, high) in zip([(0.0, claim.min_s), *steps], [*steps, (1.0, claim.max_s)], strict=True)
    ]
    edges = [q for q, _, _ in shares] + [1.0]
    least_s = sum((edges[i + 1] - q) * max(0.0, low.low if low else 0.0) for i, (q, low, _) in enumerate(shares))
    most_s = math.fsum((edges[i + 1] - q) * (high.high if high else math.inf) for i, (q, _, high) in enumerate(shares))
    if least_s <= claim.mean_s.high and claim.mean_s.low <= most_s:
        return []
    beyond = f"at least {_time(least_s)}" if claim.mean_s.high < least_s else f"at most {_time(most_s)}"
    return [
        Violation(
            "impossible",
            "the mean lies among the percentiles",
            f"By the printed percentiles the mean is {beyond}, but it is printed as {_time(claim.mean_s.value)}.",
            _cause_of_mean(claim)
            if claim.tool == "hey"
            else "The mean and the percentiles describe different requests.",
        )
    ]


def _order_of_quantiles(claim: Claim) -> list[Violation] | None:
    steps: list[tuple[str, Figure]] = [("fastest", claim.min_s)] if claim.min_s else []
    steps += [(f"p{q * 100:g}", figure) for q, figure in sorted(claim.quantiles_s.items())]
    steps += [("slowest", claim.max_s)] if claim.max_s else []
    if len(steps) < 2:
        return None
    return [
        Violation(
            "impossible",
            "percentiles rise",
            f"{before} is printed as {_time(low.value)} and {after} as {_time(high.value)}.",
            _OTHER_REQUESTS,
        )
        for (before, low), (after, high) in pairwise(steps)
        if low.low > high.high
    ]


def _spread(claim: Claim) -> list[Violation] | None:
    """Numbers between two bounds with a given mean have their largest standard deviation if all lie at the bounds."""
    if claim.mean_s is None or claim.stdev_s is None or claim.max_s is None:
        return None
    least_s = max(0.0, claim.min_s.low) if claim.min_s else 0.0
    widest_s = math.sqrt(max(0.0, (claim.max_s.high - claim.mean_s.low) * (claim.mean_s.high - least_s)))
    if claim.stdev_s.low <= widest_s:
        return []
    printed = _time(claim.stdev_s.value)
    found = f"With this mean and these bounds the standard deviation is at most {_time(widest_s)}, but {printed} is printed."
    return [Violation("impossible", "stdev² ≤ (slowest − mean) × (mean − fastest)", found, _OTHER_REQUESTS)]


def _rate_by_time(claim: Claim) -> list[Violation] | None:
    if (
        claim.requests is None
        or claim.duration_s is None
        or claim.throughput_rps is None
        or claim.duration_s.value <= 0
    ):
        return None
    least = claim.throughput_rps.low * claim.duration_s.low * (1 - SLACK)
    most = claim.throughput_rps.high * claim.duration_s.high * (1 + SLACK)
    if least <= claim.requests <= most:
        return []
    product = claim.throughput_rps.value * claim.duration_s.value
    keeps = claim.tool == "hey" and claim.requests == HEY_KEEPS < product
    return [
        Violation(
            "impossible",
            "requests = throughput × time",
            f"{claim.throughput_rps.value:,.6g} requests/s for {_time(claim.duration_s.value)} are {product:,.0f}, and "
            f"{claim.requests:,} are printed.",
            f"hey keeps the first {HEY_KEEPS:,} results: its percentiles and statuses cover only those."
            if keeps
            else "The figures belong to different runs, or only one of them includes failed requests.",
        )
    ]


def _statuses(claim: Claim) -> list[Violation] | None:
    if claim.requests is None or not (claim.statuses or claim.intended is not None):
        return None
    answers, failed = sum(claim.statuses.values()), claim.failed or 0
    if answers <= claim.requests <= answers + failed:
        return []
    found = f"The statuses add up to {answers:,} answers, with {failed:,} failed, of {claim.requests:,} requests."
    return [Violation("impossible", "the statuses add up", found, _COUNTED_WRONG)]


def _fates(claim: Claim) -> list[Violation] | None:
    """Every request has exactly one fate, and every failure one kind."""
    if claim.intended is None:
        return None
    fates, kinds = sum(claim.fates.values()), sum(claim.errors.values())
    answered = claim.fates.get("ok", 0) + claim.errors.get("check", 0)
    sums = [
        (
            claim.intended,
            fates,
            f"{claim.intended:,} requests were intended, and {' + '.join(claim.fates)} is {fates:,}.",
        ),
        (
            claim.fates.get("failed", 0),
            kinds,
            f"{claim.fates.get('failed', 0):,} requests failed, and the kinds of failure add up to {kinds:,}.",
        ),
        (
            claim.requests,
            answered,
            f"{claim.requests or 0:,} responses came, and right and wrong ones add up to {answered:,}.",
        ),
    ]
    return [
        Violation("impossible", "every request has one fate", found, _COUNTED_WRONG)
        for whole, parts, found in sums
        if whole is not None and whole != parts
    ]


def _utilisation(claim: Claim) -> list[Violation] | None:
    """Processes use at most CPUs × time (utilisation law of Denning & Buzen)."""
    if claim.cpu_s is None or claim.cpus is None or claim.duration_s is None or claim.duration_s.value <= 0:
        return None
    most_s = claim.cpus * claim.duration_s.high
    if claim.cpu_s.low <= most_s * (1 + SLACK):
        return []
    found = (
        f"{claim.cpus:g} CPU{'s' if claim.cpus != 1 else ''} have {_time(most_s)} of time in {_time(claim.duration_s.value)}, "
        f"but {_time(claim.cpu_s.value)} of CPU time is reported."
    )
    return [
        Violation(
            "impossible",
            "CPU time ≤ CPUs × time",
            found,
            "The processes ran on more CPUs than stated, or the CPU time covers a longer period.",
        )
    ]


_OTHER_REQUESTS = "These figures describe different requests."
_COUNTED_WRONG = "One of the two counts misses requests or counts some twice."
_LAWS: tuple[Law, ...] = (
    _littles_law,
    _most_of_the_load,
    _mean_between_bounds,
    _mean_among_quantiles,
    _order_of_quantiles,
    _spread,
    _rate_by_time,
    _statuses,
    _fates,
    _utilisation,
)


def _time(seconds: float) -> str:
    for unit, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if abs(seconds) >= unit or name == "µs":
            return f"{seconds / unit:.4g} {name}"
    raise AssertionError
