"""Checks the figures of any tool against laws that hold for every load. weir also checks its own trials this way.

Sources: Little 1961; Denning & Buzen 1978 (operational laws); Bhatia & Davis 2000 (largest standard deviation between
two bounds). Each check tolerates the rounding of the figures. The function of a law returns the law's violations, or
None if the result lacks a figure that the law needs.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Literal

from weir.model.reported_result import Figure, ReportedResult
from weir.model.verdict import Reason

AT_CAP = 0.95
"""The load limits the throughput if throughput ÷ highest possible throughput of the load is at least this ratio."""
SLACK = 0.002
"""Relative tolerance in addition to rounding. The last responses may arrive after the tool's clock stops."""
HEY_KEEPS = 1_000_000
"""Maximum number of results that hey keeps. But hey's sum of response times includes all results."""
PHYSICS = "physics"
"""Kind of a verdict's reason: the figures of the trial violate a law."""
_OTHER_REQUESTS = "These figures describe different requests."
_COUNTED_WRONG = "One of the two counts leaves out requests, or counts some requests twice."


@dataclass(frozen=True, slots=True)
class Violation:
    """Figures that violate a law, or a throughput that reaches the limit of the load."""

    kind: Literal["impossible", "pipelined", "capped"]
    """`pipelined`: the figures are possible only with several requests in flight for each user."""
    law: str
    found: str
    """A sentence with the printed figure and the law's limit."""
    cause: str
    """A sentence with the probable cause or the consequence."""


_impossible = partial(Violation, "impossible")
Law = Callable[[ReportedResult], list[Violation] | None]


def check_laws(*results: ReportedResult) -> list[list[Violation]]:
    """Returns a list of violations for each result and law. Leaves out a law if the result lacks a necessary figure."""
    return [violations for result in results for law in _LAWS if (violations := law(result)) is not None]


def find_violations(*results: ReportedResult) -> tuple[Violation, ...]:
    """Returns all violations in the results: impossible figures, and throughputs that the load limits."""
    return tuple(violation for violations in check_laws(*results) for violation in violations)


def judge_violations(violations: Iterable[Violation], *, other_generator: str = "") -> Iterator[Reason]:
    """Yields a reason of the trial's verdict for each impossible figure. `other_generator`: name of another tool."""
    for law in violations:
        if law.kind != "impossible":
            continue
        fact, threshold = f"{law.found} ({law.law})", "no load can produce such figures"
        if other_generator:
            # Not invalid: a comparison of generators must show this trial, and the server's figures may be right.
            fact = f"{other_generator} reports impossible figures: {fact}"
            yield Reason(PHYSICS, "suspect", fact, threshold, law.cause.rstrip("."))
        else:
            cause, step = "a defect of the measurement, not of the server", "report the defect with the run file"
            yield Reason(PHYSICS, "invalid", fact, threshold, cause, step)


def _littles_law(result: ReportedResult) -> list[Violation] | None:
    """Checks Little's law for a closed loop: throughput × (response time + think time) ≤ requests in flight."""
    users, rate_rps, mean_s, think_s = result.users, result.throughput_rps, result.mean_s, result.think_s
    if users is None or rate_rps is None or mean_s is None or rate_rps.low <= 0:
        return None
    # A user's last pause may end after the load. So each user has at least as many pauses as requests, minus one.
    requests = _requests(result)
    pauses = 1.0 if requests is None else max(0.0, 1 - users / requests)
    depth = result.requests_in_flight or 1
    if mean_s.low <= depth * users / rate_rps.low - think_s.low * pauses:
        return []
    printed_s = depth * users / rate_rps.value - think_s.value * pauses
    each = f" × {depth} requests" if depth > 1 else ""
    minus = f" minus the pause of {format_time(think_s.value)}" if think_s.value else ""
    found = (
        f"{users:,} users{each} with {rate_rps.value:,.6g} requests/s have a mean of at most {format_time(printed_s)} "
        f"({users:,}{each.removesuffix(' requests')} ÷ {rate_rps.value:,.6g}{minus}), "
        f"but the printed mean is {format_time(mean_s.value)}."
    )
    cause = _cause_of_mean(result)
    if result.requests_in_flight is not None:
        return [_impossible("users = throughput × response time", found, cause)]
    needed = math.ceil((mean_s.low + think_s.low * pauses) * rate_rps.low / users)
    only = (
        f"The figures are possible only if each user had at least {needed} requests in flight at once. If not: {cause}"
    )
    return [Violation("pipelined", "users × requests in flight = throughput × response time", found, only)]


def _requests(result: ReportedResult) -> float | None:
    """Returns the number of requests, printed or computed from other figures. None if neither is possible."""
    if result.requests:
        return result.requests
    if result.throughput_rps and result.duration_s and result.throughput_rps.low * result.duration_s.low > 0:
        return result.throughput_rps.low * result.duration_s.low
    return result.users * result.loops if result.users and result.loops else None


def _cause_of_mean(result: ReportedResult) -> str:
    if result.tool == "wrk":
        return (
            "wrk corrects for requests that it did not send: it adds computed response times, even in a closed loop. "
            "The mean does not describe the load that ran; the throughput does."
        )
    duration_s, rate_rps = result.duration_s, result.throughput_rps
    if result.tool == "hey" and duration_s and rate_rps and duration_s.value * rate_rps.value > HEY_KEEPS:
        return (
            f"hey divides the sum of all response times by {HEY_KEEPS:,}, the number of results that it keeps. "
            "The mean therefore grows with the length of the run."
        )
    return "Users, throughput and mean contradict each other: one of them is wrong or belongs to another run."


def _most_of_the_load(result: ReportedResult) -> list[Violation] | None:
    """Checks the throughput against the shortest possible load: the ramp, then the last user's requests."""
    users, loops, rate_rps, ramp_s = result.users, result.loops, result.throughput_rps, result.ramp_s
    if users is None or loops is None or rate_rps is None or ramp_s <= 0:
        return None
    requests = users * loops
    what = f"{users:,} users with {loops} requests each make {requests:,} requests"
    if rate_rps.low > requests / ramp_s:
        found = (
            f"{what}, and the last user starts after {format_time(ramp_s)}. The throughput is at most "
            f"{requests / ramp_s:,.4g} requests/s, but {rate_rps.value:,.6g} is printed."
        )
        return [_impossible("throughput ≤ users × loops ÷ ramp", found, "The described load is not the load that ran.")]
    if result.mean_s is None:
        return []
    last_s = loops * (result.mean_s.value + result.think_s.value)
    reachable_rps = requests / (ramp_s + last_s)
    if rate_rps.value < AT_CAP * reachable_rps:
        return []
    return [
        Violation(
            "capped",
            "throughput ≤ users × loops ÷ (ramp + loops × response time)",
            f"{what}. The ramp takes {format_time(ramp_s)}, and the last user's requests take {format_time(last_s)}: no server can "
            f"exceed {reachable_rps:,.4g} requests/s under this load, and {rate_rps.value:,.6g} is printed.",
            "The load, not the server, limits this throughput: do not compare servers by this figure.",
        )
    ]


def _mean_between_bounds(result: ReportedResult) -> list[Violation] | None:
    mean_s, min_s, max_s = result.mean_s, result.min_s, result.max_s
    if mean_s is None or (min_s is None and max_s is None):
        return None
    beyond = [("fastest", min_s)] if min_s is not None and mean_s.high < min_s.low else []
    beyond += [("slowest", max_s)] if max_s is not None and mean_s.low > max_s.high else []
    printed = f"The printed mean is {format_time(mean_s.value)}"
    law = "fastest ≤ mean ≤ slowest"
    found = [f"{printed}, but the {name} time is {format_time(at.value)}." for name, at in beyond]
    return [_impossible(law, text, _OTHER_REQUESTS) for text in found]


def _mean_among_quantiles(result: ReportedResult) -> list[Violation] | None:
    """Checks the mean against the range that the percentiles, the minimum and the maximum allow."""
    mean_s = result.mean_s
    if mean_s is None or len(result.quantiles_s) < 3:
        return None
    groups = list(pairwise([(0.0, result.min_s), *sorted(result.quantiles_s.items()), (1.0, result.max_s)]))
    least_s = sum((end - begin) * max(0.0, low.low if low else 0.0) for (begin, low), (end, _) in groups)
    most_s = math.fsum((end - begin) * (high.high if high else math.inf) for (begin, _), (end, high) in groups)
    if least_s <= mean_s.high and mean_s.low <= most_s:
        return []
    beyond = f"at least {format_time(least_s)}" if mean_s.high < least_s else f"at most {format_time(most_s)}"
    found = f"The printed percentiles give a mean of {beyond}, but the printed mean is {format_time(mean_s.value)}."
    others = "The mean and the percentiles describe different requests."
    cause = _cause_of_mean(result) if result.tool == "hey" else others
    return [_impossible("the mean lies among the percentiles", found, cause)]


def _order_of_quantiles(result: ReportedResult) -> list[Violation] | None:
    steps: list[tuple[str, Figure]] = [("fastest", result.min_s)] if result.min_s else []
    steps += [(f"p{q * 100:g}", figure) for q, figure in sorted(result.quantiles_s.items())]
    steps += [("slowest", result.max_s)] if result.max_s else []
    if len(steps) < 2:
        return None
    pairs = [(before, after) for before, after in pairwise(steps) if before[1].low > after[1].high]
    texts = [
        f"{before} is printed as {format_time(low.value)} and {after} as {format_time(high.value)}."
        for (before, low), (after, high) in pairs
    ]
    return [_impossible("percentiles rise", text, _OTHER_REQUESTS) for text in texts]


def _spread(result: ReportedResult) -> list[Violation] | None:
    """Checks the standard deviation against its maximum. At the maximum, every time is the shortest or the longest."""
    mean_s, stdev_s, max_s = result.mean_s, result.stdev_s, result.max_s
    if mean_s is None or stdev_s is None or max_s is None:
        return None
    least_s = max(0.0, result.min_s.low) if result.min_s else 0.0
    widest_s = math.sqrt(max(0.0, (max_s.high - mean_s.low) * (mean_s.high - least_s)))
    if stdev_s.low <= widest_s:
        return []
    bound = f"With this mean, minimum and maximum, the standard deviation is at most {format_time(widest_s)}"
    found = f"{bound}, but {format_time(stdev_s.value)} is printed."
    return [_impossible("stdev² ≤ (slowest − mean) × (mean − fastest)", found, _OTHER_REQUESTS)]


def _rate_by_time(result: ReportedResult) -> list[Violation] | None:
    requests, duration_s, rate_rps = result.requests, result.duration_s, result.throughput_rps
    if requests is None or duration_s is None or rate_rps is None or duration_s.value <= 0:
        return None
    least = rate_rps.low * duration_s.low * (1 - SLACK)
    if least <= requests <= rate_rps.high * duration_s.high * (1 + SLACK):
        return []
    product = rate_rps.value * duration_s.value
    made = f"{rate_rps.value:,.6g} requests/s for {format_time(duration_s.value)} make {product:,.0f} requests"
    cause = "The figures belong to different runs, or only one of them includes failed requests."
    if result.tool == "hey" and requests == HEY_KEEPS < product:
        cause = f"hey keeps the first {HEY_KEEPS:,} results: its percentiles and statuses omit all later requests."
    return [_impossible("requests = throughput × time", f"{made}, but {requests:,} are printed.", cause)]


def _statuses(result: ReportedResult) -> list[Violation] | None:
    if result.requests is None or not (result.statuses or result.intended is not None):
        return None
    answers, failed = sum(result.statuses.values()), result.failed or 0
    if answers <= result.requests <= answers + failed:
        return []
    sums = f"The statuses add up to {answers:,} responses, and {failed:,} requests failed"
    found = f"{sums}, but {result.requests:,} requests are printed."
    return [_impossible("the statuses add up", found, _COUNTED_WRONG)]


def _fates(result: ReportedResult) -> list[Violation] | None:
    """Checks that every request has exactly one outcome, and every failure exactly one kind."""
    if result.intended is None:
        return None
    fates, kinds, failed = sum(result.fates.values()), sum(result.errors.values()), result.fates.get("failed", 0)
    answered, answers = result.fates.get("ok", 0) + result.errors.get("check", 0), result.requests
    sums: list[tuple[int | None, int, str]] = [
        (
            result.intended,
            fates,
            f"{result.intended:,} requests were intended, but {' + '.join(result.fates)} is {fates:,}.",
        ),
        (failed, kinds, f"{failed:,} requests failed, but the kinds of failure add up to {kinds:,}."),
        (answers, answered, f"{answers or 0:,} responses came, but correct plus wrong responses are {answered:,}."),
    ]
    broken = [found for whole, parts, found in sums if whole is not None and whole != parts]
    return [_impossible("every request has one outcome", found, _COUNTED_WRONG) for found in broken]


def _utilisation(result: ReportedResult) -> list[Violation] | None:
    """Checks that the processes used at most CPUs × time (utilisation law of Denning & Buzen)."""
    cpu_s, cpus, duration_s = result.cpu_s, result.cpus, result.duration_s
    if cpu_s is None or cpus is None or duration_s is None or duration_s.value <= 0:
        return None
    most_s = cpus * duration_s.high
    if cpu_s.low <= most_s * (1 + SLACK):
        return []
    limit = f"{cpus:g} CPU{'s' if cpus != 1 else ''} have {format_time(most_s)} of CPU time in {format_time(duration_s.value)}"
    cause = "The processes ran on more CPUs than stated, or the CPU time covers a longer period."
    found = f"{limit}, but {format_time(cpu_s.value)} of CPU time is reported."
    return [_impossible("CPU time ≤ CPUs × time", found, cause)]


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


def format_time(seconds: float) -> str:
    """Returns a time with a fitting unit and four digits: `1.234 ms`."""
    unit, name = (1.0, "s") if abs(seconds) >= 1 else (1e-3, "ms") if abs(seconds) >= 1e-3 else (1e-6, "µs")
    return f"{seconds / unit:.4g} {name}"
