"""What cannot be, whoever measured it: laws that hold of every load, held against what was said of one.

The only place of these laws: weir's own trials are held against them as claims like any other (`weir.audit.own`).

Little 1961; Denning & Buzen 1978 (operational laws); Bhatia & Davis 2000 (the largest spread between two bounds). Each law is given
the benefit of the rounding of every figure that it uses. A law gives the breaches that it finds, or None where a figure that it needs
was not said.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from weir.model.claim import Claim, Figure

AT_CAP = 0.95
"""A throughput above this share of what the load itself allows says little about the server."""
SLACK = 0.002
"""What requests and durations may be apart beyond rounding: the last answers come after the clock has stopped."""
HEY_KEEPS = 1_000_000
"""Results that hey keeps; its sums and its mean go on counting."""

Kind = Literal["impossible", "capped"]


@dataclass(frozen=True, slots=True)
class Breach:
    """A law that a claim breaks, or a limit that it sits at."""

    kind: Kind
    law: str
    found: str
    """What was printed and what the law allows: a sentence."""
    cause: str
    """Why, or what it means: a sentence."""


@dataclass(frozen=True, slots=True)
class Examined:
    """What came of holding a claim against the laws."""

    laws: int
    """How many of them the claim says enough for."""
    breaches: tuple[Breach, ...]


Law = Callable[[Claim], list[Breach] | None]


def examine(claim: Claim) -> Examined:
    """Holds a claim against every law."""
    found = [breaches for law in _LAWS if (breaches := law(claim)) is not None]
    return Examined(len(found), tuple(breach for breaches in found for breach in breaches))


def breaches(claim: Claim) -> tuple[Breach, ...]:
    """Everything in a claim that cannot be, or that the load and not the server decides."""
    return examine(claim).breaches


def _littles_law(claim: Claim) -> list[Breach] | None:
    """In a closed loop users = throughput × (response time + think time), while all of them are there; fewer otherwise."""
    if claim.users is None or claim.throughput_rps is None or claim.mean_s is None or claim.throughput_rps.low <= 0:
        return None
    # A user's last pause may lie beyond the end: between so many requests there are as many pauses less one a user.
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
    return [Breach("impossible", "users = throughput × response time", found, _cause_of_mean(claim))]


def _requests(claim: Claim) -> float | None:
    """How many requests there were: as it was said, or as it follows."""
    if claim.requests:
        return claim.requests
    if claim.throughput_rps is not None and claim.duration_s is not None and claim.throughput_rps.low * claim.duration_s.low > 0:
        return claim.throughput_rps.low * claim.duration_s.low
    return claim.users * claim.loops if claim.users and claim.loops else None


def _cause_of_mean(claim: Claim) -> str:
    match claim.tool:
        case "wrk":
            return (
                "wrk adds response times that it never measured, to correct for requests that it did not send, in closed loops too: "
                "the mean is of a load that was not there."
            )
        case "hey" if claim.duration_s and claim.throughput_rps and claim.duration_s.value * claim.throughput_rps.value > HEY_KEEPS:
            return (
                f"hey keeps the first {HEY_KEEPS:,} results and divides the sum of all by their number, so that the mean grows with the "
                "length of the run."
            )
        case _:
            return "The users, the throughput and the mean are not of one load: at least one of them is wrong, or was of another run."


def _most_of_the_load(claim: Claim) -> list[Breach] | None:
    """Users who come over a ramp and ask so many times each need at least the ramp, and the last one's requests behind it."""
    if claim.users is None or claim.loops is None or claim.throughput_rps is None or claim.ramp_s <= 0:
        return None
    requests = claim.users * claim.loops
    cap_rps = requests / claim.ramp_s
    what = f"{claim.users:,} users with {claim.loops} requests each make {requests:,}"
    if claim.throughput_rps.low > cap_rps:
        found = (
            f"{what}, and the last user comes after {_time(claim.ramp_s)}: at most {cap_rps:,.4g} requests/s, where "
            f"{claim.throughput_rps.value:,.6g} is printed."
        )
        return [Breach("impossible", "throughput ≤ users × loops ÷ ramp", found, "The load described is not the load that ran.")]
    if claim.mean_s is None:
        return []
    last_s = claim.loops * (claim.mean_s.value + claim.think_s.value)
    reachable_rps = requests / (claim.ramp_s + last_s)
    if claim.throughput_rps.value < AT_CAP * reachable_rps:
        return []
    return [
        Breach(
            "capped",
            "throughput ≤ users × loops ÷ (ramp + loops × response time)",
            f"{what}, which takes the ramp of {_time(claim.ramp_s)} and the last user's {_time(last_s)}: no server can show more than "
            f"{reachable_rps:,.4g} requests/s under this load, and {claim.throughput_rps.value:,.6g} is printed.",
            "The load and not the server decided this throughput, so a ratio to it is not a ratio of servers.",
        )
    ]


def _mean_between_bounds(claim: Claim) -> list[Breach] | None:
    if claim.mean_s is None or (claim.min_s is None and claim.max_s is None):
        return None
    beyond = []
    if claim.min_s is not None and claim.mean_s.high < claim.min_s.low:
        beyond.append(("fastest", claim.min_s))
    if claim.max_s is not None and claim.mean_s.low > claim.max_s.high:
        beyond.append(("slowest", claim.max_s))
    return [
        Breach(
            "impossible",
            "fastest ≤ mean ≤ slowest",
            f"The mean is printed as {_time(claim.mean_s.value)} and the {name} as {_time(bound.value)}.",
            _OTHER_REQUESTS,
        )
        for name, bound in beyond
    ]


def _mean_among_quantiles(claim: Claim) -> list[Breach] | None:
    """The quantiles cut the requests into shares, each between two of them: so is its mean, and from them the mean of all."""
    if claim.mean_s is None or len(claim.quantiles_s) < 3:
        return None
    steps = sorted(claim.quantiles_s.items())
    shares = [(q, low, high) for (q, low), (_, high) in zip([(0.0, claim.min_s), *steps], [*steps, (1.0, claim.max_s)], strict=True)]
    edges = [q for q, _, _ in shares] + [1.0]
    least_s = sum((edges[i + 1] - q) * max(0.0, low.low if low else 0.0) for i, (q, low, _) in enumerate(shares))
    most_s = math.fsum((edges[i + 1] - q) * (high.high if high else math.inf) for i, (q, _, high) in enumerate(shares))
    if least_s <= claim.mean_s.high and claim.mean_s.low <= most_s:
        return []
    beyond = f"at least {_time(least_s)}" if claim.mean_s.high < least_s else f"at most {_time(most_s)}"
    return [
        Breach(
            "impossible",
            "the mean lies among the percentiles",
            f"By its own percentiles the mean is {beyond}, and it is printed as {_time(claim.mean_s.value)}.",
            _cause_of_mean(claim) if claim.tool == "hey" else "The mean and the percentiles are not of the same requests.",
        )
    ]


def _order_of_quantiles(claim: Claim) -> list[Breach] | None:
    steps: list[tuple[str, Figure]] = [("fastest", claim.min_s)] if claim.min_s else []
    steps += [(f"p{q * 100:g}", figure) for q, figure in sorted(claim.quantiles_s.items())]
    steps += [("slowest", claim.max_s)] if claim.max_s else []
    if len(steps) < 2:
        return None
    return [
        Breach(
            "impossible",
            "percentiles rise",
            f"{before} is printed as {_time(low.value)} and {after} as {_time(high.value)}.",
            _OTHER_REQUESTS,
        )
        for (before, low), (after, high) in pairwise(steps)
        if low.low > high.high
    ]


def _spread(claim: Claim) -> list[Breach] | None:
    """Between two bounds and with a given mean no numbers spread wider than those at the bounds."""
    if claim.mean_s is None or claim.stdev_s is None or claim.max_s is None:
        return None
    least_s = max(0.0, claim.min_s.low) if claim.min_s else 0.0
    widest_s = math.sqrt(max(0.0, (claim.max_s.high - claim.mean_s.low) * (claim.mean_s.high - least_s)))
    if claim.stdev_s.low <= widest_s:
        return []
    found = (
        f"With this mean and these bounds the standard deviation is at most {_time(widest_s)}, and {_time(claim.stdev_s.value)} is printed."
    )
    return [Breach("impossible", "stdev² ≤ (slowest − mean) × (mean − fastest)", found, _OTHER_REQUESTS)]


def _rate_by_time(claim: Claim) -> list[Breach] | None:
    if claim.requests is None or claim.duration_s is None or claim.throughput_rps is None or claim.duration_s.value <= 0:
        return None
    least = claim.throughput_rps.low * claim.duration_s.low * (1 - SLACK)
    most = claim.throughput_rps.high * claim.duration_s.high * (1 + SLACK)
    if least <= claim.requests <= most:
        return []
    product = claim.throughput_rps.value * claim.duration_s.value
    keeps = claim.tool == "hey" and claim.requests == HEY_KEEPS < product
    return [
        Breach(
            "impossible",
            "requests = throughput × time",
            f"{claim.throughput_rps.value:,.6g} requests/s for {_time(claim.duration_s.value)} are {product:,.0f}, and "
            f"{claim.requests:,} are printed.",
            f"hey keeps the first {HEY_KEEPS:,} results, and its percentiles and statuses are of those alone."
            if keeps
            else "The rate, the time and the number are not of one run, or failed requests are in one of them only.",
        )
    ]


def _statuses(claim: Claim) -> list[Breach] | None:
    if claim.requests is None or not (claim.statuses or claim.intended is not None):
        return None
    answers, failed = sum(claim.statuses.values()), claim.failed or 0
    if answers <= claim.requests <= answers + failed:
        return []
    found = f"The statuses add up to {answers:,} answers, with {failed:,} failed, of {claim.requests:,} requests."
    return [Breach("impossible", "the statuses add up", found, _COUNTED_WRONG)]


def _fates(claim: Claim) -> list[Breach] | None:
    """Every request has exactly one fate, and every failure one kind."""
    if claim.intended is None:
        return None
    fates, kinds = sum(claim.fates.values()), sum(claim.errors.values())
    answered = claim.fates.get("ok", 0) + claim.errors.get("check", 0)
    sums = [
        (claim.intended, fates, f"{claim.intended:,} requests were intended, and {' + '.join(claim.fates)} is {fates:,}."),
        (
            claim.fates.get("failed", 0),
            kinds,
            f"{claim.fates.get('failed', 0):,} requests failed, and the kinds of failure add up to {kinds:,}.",
        ),
        (claim.requests, answered, f"{claim.requests or 0:,} answers came, and right and wrong ones are {answered:,}."),
    ]
    return [
        Breach("impossible", "every request has one fate", found, _COUNTED_WRONG)
        for whole, parts, found in sums
        if whole is not None and whole != parts
    ]


def _utilisation(claim: Claim) -> list[Breach] | None:
    """Nobody uses more CPU time than there is (Denning & Buzen's utilisation law: what is busy is so at most all the time)."""
    if claim.cpu_s is None or claim.cpus is None or claim.duration_s is None or claim.duration_s.value <= 0:
        return None
    most_s = claim.cpus * claim.duration_s.high
    if claim.cpu_s.low <= most_s * (1 + SLACK):
        return []
    found = (
        f"{claim.cpus:g} CPU{'s' if claim.cpus != 1 else ''} have {_time(most_s)} of time in {_time(claim.duration_s.value)}, "
        f"and {_time(claim.cpu_s.value)} are said to be used."
    )
    return [
        Breach(
            "impossible",
            "CPU time ≤ CPUs × time",
            found,
            "The processes ran on more CPUs than was said, or the CPU time is of a longer time.",
        )
    ]


_OTHER_REQUESTS = "They are not of the same requests."
_COUNTED_WRONG = "Requests are missing from one of the two, or counted twice."
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
