"""How far a trial can be trusted. Pure: plain figures in, reasons out. All thresholds stand at the top.

A figure may be wrong in three ways: it is not the server's (the generator, another machine or weir itself is in it), it is not one figure
(no steady state), or it is of something else than was asked (failed requests, wrong answers). Each rule looks for one of these.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from weir.model.records import FEWER_AGENTS, LATE_AGENT, LOST_AGENT, Validity
from weir.model.verdict import Reason, TrialVerdict
from weir.study.method import Failures, Invariant

CEILING_SHARE = 0.5
"""A generator must reach at least twice the throughput of what it measures."""
SATURATED_SHARE = 0.9
"""From here on a throughput is the generator's own: its ceiling is known to some 10 %."""
BEYOND_CEILING = 1.2
"""Nobody exceeds a ceiling by so much: it was measured too low."""
BUSY_FRACTION = 0.85
"""A generator that has so little time left is part of what is measured."""
LAG_SHARE = 0.10
"""What requests wait in the generator may be this share of what they take."""
STEAL_SHARE = 0.02
"""CPU time that the hypervisor may take from the stack."""
RETRANSMIT_SHARE = 0.001
"""TCP segments sent again, by request: each one is 200 ms or more in somebody's response time."""
COUNT_SHARE = 0.01
"""How far a generator's count of answers may be from what the kernel saw, beside those at the load's edges."""

SERVICE_ENDED = "service ended"

_TAKEN_OVER: Mapping[str, Validity] = {
    "no_answer": "invalid",
    "stood_still": "invalid",
    "slept": "invalid",
    "ports": "invalid",
    LOST_AGENT: "invalid",
    FEWER_AGENTS: "suspect",
    LATE_AGENT: "suspect",
    "unsent": "suspect",
    "rate": "suspect",
    "load_cap": "suspect",
    "redirects": "valid",
    "lower_bounds": "valid",
}
"""What the generator says of a load and nobody here knows better, by kind. Failures, its CPU and its lag are judged here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All that a verdict rests on. None: not known, and no reason for anything."""

    stack: str
    """Its label, for the next command."""
    failures: Failures = "reject"
    invariant: Invariant = "reject"
    intended: int = 0
    completed: int = 0
    failed: int = 0
    errors: Mapping[str, int] = field(default_factory=dict)
    """Failed requests by kind."""
    stack_ended: str | None = None
    """How the stack ended before the load did."""
    service_ended: str | None = None
    """Which service ended before the load did, and how."""
    wrong_after: str | None = None
    """What is wrong with an answer after the load."""
    unexpected_work: Sequence[str] = ()
    """What the services did more or less of than the workload says."""
    discrepancies: Sequence[str] = ()
    """What the invariant of the workload found after the load."""
    cut_short_s: float | None = None
    """After how long somebody other than weir ended the load."""
    throughput_rps: float = 0.0
    ceiling_rps: float | None = None
    """What the generator reaches on the null server."""
    busy_fraction: float | None = None
    """Of the generator's busiest thread."""
    lag_p99_us: float | None = None
    response_p50_us: float | None = None
    steal_fraction: float | None = None
    """Share of the stack's CPU time that the hypervisor took."""
    load_shares_stack_cpu: bool = False
    steady: bool | None = None
    not_steady_because: str = ""
    extended: bool = False
    retransmits: int | None = None
    """TCP segments sent again during the load; of the whole network namespace, as the next two."""
    listen_overflows: int | None = None
    """Connections that found the queue of a listening socket full."""
    listen_drops: int | None = None
    """Connections dropped at a listening socket, overflows among them."""
    broken_laws: Sequence[tuple[str, str]] = ()
    """What the trial's figures contradict, laws of physics, and why that may be."""
    generator: Sequence[tuple[str, str]] = ()
    """The generator's own reasons: kind and text."""
    other_generator: str = ""
    """What made the load, if that was not weir's engine."""
    generator_cpu_fraction: float | None = None
    """Its share of the CPU time that it could have had."""
    connections: int = 0
    """Of the load."""
    requests_in_kernel: int | None = None
    """How many requests the kernel saw, where it saw all."""
    not_tapped: str = ""
    """Why the kernel's times are not known, though the study asks for them."""


def judge(facts: Facts) -> TrialVerdict:
    """The verdict on a trial."""
    return TrialVerdict(tuple(reason for rule in _RULES for reason in rule(facts)))


def _stack_ended(facts: Facts) -> Iterator[Reason]:
    if facts.stack_ended is not None:
        yield Reason(
            "stack ended",
            "invalid" if facts.failures == "reject" else "suspect",
            f"the stack ended {facts.stack_ended} during the load",
            next_step="read its log",
        )


def _service_ended(facts: Facts) -> Iterator[Reason]:
    if facts.service_ended is not None:
        yield Reason(SERVICE_ENDED, "invalid", f"the service {facts.service_ended} during the load", next_step="read its log")


def _wrong_after(facts: Facts) -> Iterator[Reason]:
    if facts.wrong_after is not None:
        yield Reason(
            "wrong after the load",
            "invalid" if facts.failures == "reject" else "suspect",
            f"after the load: {facts.wrong_after}",
            cause="the load has left the stack or its data in a state that it does not answer right in",
            next_step="read its log",
        )


def _unexpected_work(facts: Facts) -> Iterator[Reason]:
    for fact in facts.unexpected_work:
        yield Reason(
            "work",
            "suspect",
            fact,
            cause="the stack asks its database for more or less than the others",
            next_step="have it do what the workload says before it is compared",
        )


def _failed_requests(facts: Facts) -> Iterator[Reason]:
    if not facts.failed:
        return
    kinds = ", ".join(f"{kind} {count}" for kind, count in facts.errors.items() if count)
    share = f"{facts.failed} of {facts.intended} requests failed ({kinds})"
    if facts.failures == "measure":
        yield Reason("failed requests", "valid", f"{share}, {_percent(facts.failed, facts.intended)}: failures are a result of this study")
        return
    wrong = facts.errors.get("check", 0) == facts.failed
    yield Reason(
        "failed requests",
        "invalid",
        share,
        "only error-free trials count",
        "the answers are wrong under load" if wrong else "the stack cannot carry this load, or its settings limit connections",
        f"weir stacks check {facts.stack}" if wrong else 'read its log; failures = "measure" where they are what the study asks about',
    )


def _invariant(facts: Facts) -> Iterator[Reason]:
    if facts.discrepancies:
        yield Reason(
            "invariant",
            "invalid" if facts.invariant == "reject" else "valid",
            f"the workload's invariant does not hold: {'; '.join(facts.discrepancies)}",
            "" if facts.invariant == "report" else "only right results count",
            "the stack loses or doubles work when requests meet" if facts.invariant == "reject" else "",
        )


def _broken_laws(facts: Facts) -> Iterator[Reason]:
    for fact, cause in facts.broken_laws:
        threshold = "no load can give such figures"
        if facts.other_generator:
            # What it got from the server may be right all the same: who wants to know how generators differ has to see it.
            told = f"{facts.other_generator}'s load has figures that cannot be: {fact}"
            yield Reason("physics", "suspect", told, threshold, cause.rstrip("."))
        else:
            yield Reason(
                "physics", "invalid", fact, threshold, "a defect of the measurement, not of the server", "report it with the run file"
            )  # fmt: skip


def _counted_by_kernel(facts: Facts) -> Iterator[Reason]:
    """A generator's count of answers, held against what went over its connections."""
    seen = facts.requests_in_kernel
    if seen is None or abs(seen - facts.completed) <= 2 * facts.connections + COUNT_SHARE * facts.completed:
        return
    yield Reason(
        "counts",
        "suspect",
        f"the generator counts {facts.completed:,} answers, the kernel saw {seen:,}",
        f"limit {COUNT_SHARE:.0%} and two a connection",
        "it counts what did not come, or leaves out what did: errors, a ramp, a last second",
    )


def _unchecked(facts: Facts) -> Iterator[Reason]:
    if facts.other_generator:
        yield Reason(
            "unchecked",
            "valid",
            f"{facts.other_generator} tells neither what happened when nor how late it asked: steady state, drift and schedule lag are "
            "not known",
        )
    if facts.not_tapped:
        yield Reason("not tapped", "valid", f"the kernel's times are not known: {facts.not_tapped}")


def _ceiling(facts: Facts) -> Iterator[Reason]:
    if facts.ceiling_rps is None or facts.throughput_rps <= CEILING_SHARE * facts.ceiling_rps:
        return
    fact = f"{facts.throughput_rps:,.0f} req/s of the {facts.ceiling_rps:,.0f} that the generator reaches on a server that does nothing"
    more_cpus = "more CPUs for it: cpus.load"
    if facts.throughput_rps > BEYOND_CEILING * facts.ceiling_rps:
        cause = "the ceiling was measured while something else took its CPU: how near the generator is to its limit is not known"
        yield Reason("generator ceiling", "suspect", fact, "more than all", cause, "run on a quieter machine")
    elif facts.throughput_rps > SATURATED_SHARE * facts.ceiling_rps and _is_busy(facts):
        # One that is not busy is near a ceiling that a few connections and their round trips set, as they do for any server.
        limit = f"more than {SATURATED_SHARE:.0%}"
        yield Reason("generator ceiling", "invalid", fact, limit, "the generator is what is measured", more_cpus)
    else:
        yield Reason("generator ceiling", "suspect", fact, "more than half", "the generator may be the limit", more_cpus)


def _is_busy(facts: Facts) -> bool:
    return facts.busy_fraction is not None and facts.busy_fraction >= BUSY_FRACTION


def _busy(facts: Facts) -> Iterator[Reason]:
    used = facts.generator_cpu_fraction
    if facts.other_generator and used is not None and used >= BUSY_FRACTION:
        yield Reason(
            "generator busy",
            "suspect",
            f"{facts.other_generator} used {used:.0%} of the CPU time that it could have",
            f"limit {BUSY_FRACTION:.0%}",
            "its own queueing is in the response times",
            "more CPUs for it: cpus.load, or a generator that needs less",
        )
    if _is_busy(facts):
        yield Reason(
            "generator busy",
            "suspect",
            f"the generator was busy {facts.busy_fraction:.0%} of the time",
            f"limit {BUSY_FRACTION:.0%}",
            "its own queueing is in the response times",
            "more CPUs for it: cpus.load",
        )


def _lag(facts: Facts) -> Iterator[Reason]:
    lag, response = facts.lag_p99_us, facts.response_p50_us
    if lag is not None and response is not None and lag > LAG_SHARE * response:
        yield Reason(
            "schedule lag",
            "suspect",
            f"p99 of the schedule lag is {lag:,.0f} µs, {lag / response:.0%} of the median response time",
            f"limit {LAG_SHARE:.0%}",
            "requests waited for the generator's CPU or for a free connection",
            "a CPU of its own for the generator (cpus.load), or more connections",
        )


def _steal(facts: Facts) -> Iterator[Reason]:
    if facts.steal_fraction is not None and facts.steal_fraction > STEAL_SHARE:
        yield Reason(
            "steal",
            "suspect",
            f"the hypervisor took {facts.steal_fraction:.1%} of the stack's CPU time",
            f"limit {STEAL_SHARE:.0%}",
            "other virtual machines on the same host",
            "repeat at another time, or on a machine of your own",
        )


def _shared(facts: Facts) -> Iterator[Reason]:
    if facts.load_shares_stack_cpu:
        yield Reason(
            "shared CPU",
            "suspect",
            "the generator and the stack share a CPU",
            cause="there are too few, or the study asks for it",
            next_step="disjoint cpus.load and cpus.stack",
        )


def _steady(facts: Facts) -> Iterator[Reason]:
    if facts.steady is False:
        yield Reason(
            "no steady state",
            "suspect",
            f"no steady state{', though the load was extended' if facts.extended else ''}",
            facts.not_steady_because,
            "the server warms up for longer, never settles, or something else uses its CPU",
            "a longer prime_s or duration_s",
        )


def _retransmits(facts: Facts) -> Iterator[Reason]:
    if facts.retransmits and facts.retransmits > RETRANSMIT_SHARE * max(facts.completed, 1):
        yield Reason(
            "retransmits",
            "suspect",
            f"{facts.retransmits:,} TCP segments were sent again in {facts.completed:,} requests",
            f"limit {RETRANSMIT_SHARE:.1%}",
            "packets were lost: a full accept queue, a full network queue, or a network with loss",
            "nstat -az TcpRetransSegs",
        )


def _listen_queue(facts: Facts) -> Iterator[Reason]:
    overflows, drops = facts.listen_overflows or 0, facts.listen_drops or 0
    if overflows or drops:
        yield Reason(
            "listen queue",
            "suspect" if facts.failures == "reject" else "valid",
            f"{overflows:,} connections found a listening socket's queue full, {max(overflows, drops):,} were dropped there",
            "limit 0",
            "the stack accepts more slowly than connections come, or its backlog is short; each waits a second to try again",
            "a larger backlog of the stack; sysctl net.core.somaxconn",
        )


def _cut_short(facts: Facts) -> Iterator[Reason]:
    if facts.cut_short_s is not None:
        yield Reason(
            "cut short",
            "invalid",
            f"somebody ended the generator after {facts.cut_short_s:.1f} s",
            next_step="find out who sends signals to weir's processes",
        )


def _taken_over(facts: Facts) -> Iterator[Reason]:
    for kind, text in facts.generator:
        if kind in _TAKEN_OVER:
            yield Reason(kind.replace("_", " "), _TAKEN_OVER[kind], text)


_RULES = (
    _stack_ended,
    _service_ended,
    _cut_short,
    _failed_requests,
    _wrong_after,
    _invariant,
    _unexpected_work,
    _broken_laws,
    _counted_by_kernel,
    _ceiling,
    _busy,
    _lag,
    _steal,
    _shared,
    _steady,
    _retransmits,
    _listen_queue,
    _taken_over,
    _unchecked,
)


def _percent(part: int, whole: int) -> str:
    return f"{part / whole:.2%}" if whole else "0 %"
