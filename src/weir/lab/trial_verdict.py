"""Judges whether a trial's figures are valid. Pure functions look for reasons against the figures.

A figure can be wrong for three reasons: an influence of the generator, of weir or of another machine; no steady state;
or failed requests and wrong responses. Each rule looks for one of these reasons. All thresholds are at the top.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from weir.audit.laws import Violation, judge_violations
from weir.lab.post_checks import PostLoadCheck
from weir.model.load_records import BUSY_FRACTION, FEWER_AGENTS, LATE_AGENT, LOST_AGENT, LoadSummary, Validity
from weir.model.resources import StackResources
from weir.model.run_types import MeasurementWindow
from weir.model.verdict import Reason, TrialVerdict
from weir.study.file import Failures, Invariant

MAX_RATE_SHARE = 0.5
"""Maximum throughput, as a share of the generator's highest rate."""
SATURATED_SHARE = 0.9
"""A busy generator is the limit if it exceeds this share of its highest rate (accurate to 10 %)."""
BEYOND_MAX_RATE = 1.2
"""If the throughput exceeds the generator's highest rate by this factor, the measured highest rate is too low."""
LAG_SHARE = 0.10
"""Maximum p99 of the schedule lag, as a share of the median response time."""
STEAL_SHARE = 0.02
"""Maximum share of the stack's CPU time that the hypervisor may take."""
RETRANSMIT_SHARE = 0.001
"""Maximum TCP retransmissions per request. Each retransmission adds 200 ms or more to a response time."""
MIN_SCRIPT_S = 0.3
"""Minimum length of a load that ends with its script. Some scripts end after one request of each user."""
COUNT_SHARE = 0.01
"""Maximum difference between the request counts of generator and kernel, beyond two requests per connection."""

SERVICE_ENDED = "service ended"

_GENERATOR_VALIDITY: Mapping[str, Validity] = {
    **dict.fromkeys(("no_response", "stalled", "slept", "ports", "lost", LOST_AGENT), "invalid"),
    **dict.fromkeys((FEWER_AGENTS, LATE_AGENT, "unsent", "rate", "load_cap", "retried", "gc"), "suspect"),
    **dict.fromkeys(("redirects", "lower_bounds", "clients"), "valid"),
}
"""Validity for each kind of reason in the generator's own verdict. The rules below judge all other kinds."""

_READ_LOG = "read the server's log"
_ADVICE: Mapping[str, tuple[str, str]] = {
    "stack ended": ("", _READ_LOG),
    SERVICE_ENDED: ("", "read the service's log"),
    "cut short": ("", "find the process that sends signals to weir's processes"),
    "wrong after the load": ("the load has damaged the server's state or its data", _READ_LOG),
    "short script": ("the script has few loops", "write more loops into the script, or a duration"),
    "work": (
        "the server sends more or fewer statements to its database than the workload needs",
        "correct the server before you compare it",
    ),
    "counts": ("the generator counts missing responses, or leaves out responses (errors, ramp)", ""),
    "schedule lag": (
        "requests waited for the generator's CPU or for a free connection",
        "give the generator a CPU of its own (cpus.load), or use more connections",
    ),
    "no samples": ("the readings of the server's processes do not cover the load", "choose a longer load.duration_s"),
    "steal": ("other virtual machines on the same host", "repeat at another time, or on a machine of your own"),
    "shared CPU": ("too few CPUs, or shared CPUs in the study's [cpus]", "choose disjoint cpus.load and cpus.stack"),
    "no steady state": (
        "the server needs a longer warm-up or has no steady state, or another process uses its CPU",
        "choose a longer warmup_s or duration_s",
    ),
    "retransmits": (
        "packets were lost: a full accept queue, a full network queue, or a network with loss",
        "see nstat -az TcpRetransSegs",
    ),
    "listen queue": (
        "the server accepts connections too slowly, or its backlog is too short; each client retries after a second",
        "choose a larger backlog for the server; see also: sysctl net.core.somaxconn",
    ),
}
"""Probable cause and next step for each kind of reason. Kinds with several causes or next steps are missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Inputs of a verdict. None means unknown, and causes no reason; a field's text may give another meaning."""

    stack: str
    """Label of the stack; empty for a server without a manifest, which `weir stacks check` does not know."""
    load: LoadSummary
    """Summary of the whole load, with the generator's CPU use and the generator's own verdict."""
    window: MeasurementWindow | None = None
    """The part of the load that counts."""
    throughput_rps: float = 0.0
    """Throughput in `window`."""
    connections: int = 0
    failures: Failures = "reject"
    invariant: Invariant = "reject"
    stack_ended: str | None = None
    """How and when the stack ended, during the load or right after it; None if the stack still runs."""
    service_ended: str | None = None
    """Name of the service that ended, with its exit status or signal and the time; None if all services still run."""
    after: PostLoadCheck = field(default_factory=PostLoadCheck)
    cut_short_s: float | None = None
    """Time from the start of the load to the end of the generator, if a process other than weir ended it; else None."""
    lag_p99_us: float | None = None
    resources: StackResources | None = None
    """The server's use of resources in `window`; None if the samples do not cover the load."""
    processes_unknown: bool = False
    """Whether the server is external and the study does not name the server's processes."""
    load_shares_stack_cpu: bool = False
    violations: Sequence[Violation] = ()
    """Laws of physics that the figures of the trial violate."""
    other_generator: str = ""
    """Name of the generator if it is not weir's engine."""
    requests_in_kernel: int | None = None
    """Number of requests in the packet capture; None if the capture is incomplete."""
    script_ended_s: float | None = None
    """Length of the load if the user's script ended the load; None without a script, or if weir ended the script."""
    not_tapped: str = ""
    """Reason why the packet capture failed; empty after a successful capture, or if the study wants no capture."""


def judge(facts: Facts) -> TrialVerdict:
    """Applies all rules to a trial and returns the verdict."""
    return TrialVerdict(tuple(reason for rule in _RULES for reason in rule(facts)))


def _advise(kind: str, validity: Validity, fact: str, threshold: str = "") -> Reason:
    return Reason(kind, validity, fact, threshold, *_ADVICE[kind])


def _find_failures(facts: Facts) -> Iterator[Reason]:
    """Yields a reason for each failure of the stack and of its services, during and after the load."""
    rejected: Validity = "invalid" if facts.failures == "reject" else "suspect"
    if facts.stack_ended is not None:
        yield _advise("stack ended", rejected, f"the server ended {facts.stack_ended}")
    if facts.service_ended is not None:
        yield _advise(SERVICE_ENDED, "invalid", f"the service {facts.service_ended}")
    if facts.script_ended_s is not None and facts.script_ended_s < MIN_SCRIPT_S:
        fact = f"the script ended after {facts.load.requests.completed:,} responses and {facts.script_ended_s:.2g} s"
        yield _advise("short script", "invalid", fact, f"limit {MIN_SCRIPT_S:g} s")
    if facts.cut_short_s is not None:
        yield _advise("cut short", "invalid", f"another process ended the generator after {facts.cut_short_s:.1f} s")
    if facts.load.requests.failed:
        yield _judge_failed_requests(facts)
    after = facts.after
    if after.wrong is not None:
        yield _advise("wrong after the load", rejected, f"after the load: {after.wrong}")
    if after.discrepancies:
        text = f"the workload's invariant does not hold: {'; '.join(after.discrepancies)}"
        if facts.invariant == "reject":
            cause = "the server loses or repeats work under concurrent requests"
            yield Reason("invariant", "invalid", text, "only correct results count", cause)
        else:
            yield Reason("invariant", "valid", text)
    for fact in after.unexpected_work:
        yield _advise("work", "suspect", fact)


def _judge_failed_requests(facts: Facts) -> Reason:
    failed, intended, errors = facts.load.requests.failed, facts.load.requests.intended, facts.load.errors
    kinds = ", ".join(f"{kind} {count}" for kind, count in errors.occurred.items())
    fact = f"{failed} of {intended} requests failed ({kinds})"
    if facts.failures == "measure":
        share = f"{failed / intended:.2%}" if intended else "0 %"
        return Reason(
            "failed requests", "valid", f"{fact}, {share}: allowed, because the study has failures = “measure”"
        )
    if errors.check == failed:
        cause = "the server sends wrong responses under load"
        step = f"weir stacks check {facts.stack}" if facts.stack else _READ_LOG
    else:
        cause = "the server is overloaded, or its settings limit connections"
        step = f'{_READ_LOG}; in a study of overload, set failures = "measure"'
    return Reason("failed requests", "invalid", fact, "only error-free trials count", cause, step)


def _find_wrong_counts(facts: Facts) -> Iterator[Reason]:
    """Yields a reason for each violated law of physics, and if the generator and the kernel count differently."""
    yield from judge_violations(facts.violations, other_generator=facts.other_generator)
    seen, completed = facts.requests_in_kernel, facts.load.requests.completed
    if seen is not None and abs(seen - completed) > 2 * facts.connections + COUNT_SHARE * completed:
        fact = f"the generator counts {completed:,} responses, the kernel counts {seen:,}"
        yield _advise("counts", "suspect", fact, f"limit {COUNT_SHARE:.0%} and two per connection")


def _find_generator_limit(facts: Facts) -> Iterator[Reason]:
    """Yields a reason if the throughput is near the generator's own limit."""
    limit_rps = facts.load.generator.max_rate_rps
    if limit_rps is None or facts.throughput_rps <= MAX_RATE_SHARE * limit_rps:
        return
    fact = f"{facts.throughput_rps:,.0f} req/s of the {limit_rps:,.0f} that the generator reaches on a null server"
    validity: Validity = "suspect"
    threshold, cause, step = "more than half", "the generator may be the limit", "choose more CPUs in cpus.load"
    if facts.throughput_rps > BEYOND_MAX_RATE * limit_rps:
        threshold, step = "more than its highest rate", "run on a quieter machine"
        cause = "another process used the CPU while weir measured the highest rate, so the true limit is unknown"
    elif facts.throughput_rps > SATURATED_SHARE * limit_rps and _is_busy(facts):
        # Few connections and their round trips limit an idle generator, not the generator itself.
        validity, threshold = "invalid", f"more than {SATURATED_SHARE:.0%}"
        cause = "the generator is the limit, not the server"
    yield Reason("generator limit", validity, fact, threshold, cause, step)


def _is_busy(facts: Facts) -> bool:
    busy = facts.load.generator.busy_fraction
    return busy is not None and busy >= BUSY_FRACTION


def _find_delays(facts: Facts) -> Iterator[Reason]:
    """Yields a reason for each delay in the generator."""
    used, step = facts.load.generator, "choose more CPUs in cpus.load"
    limit, cause = f"limit {BUSY_FRACTION:.0%}", "the response times include the generator's own queueing"
    if facts.other_generator and used.cpu_fraction >= BUSY_FRACTION:
        fact = f"{facts.other_generator} used {used.cpu_fraction:.0%} of its CPU time"
        yield Reason("generator busy", "suspect", fact, limit, cause, f"{step}; or use a more efficient generator")
    elif _is_busy(facts):
        fact = f"the generator was busy {used.busy_fraction:.0%} of the time"
        yield Reason("generator busy", "suspect", fact, limit, cause, step)
    lag, response = facts.lag_p99_us, facts.load.response_time_us.p50
    if lag is not None and response is not None and lag > LAG_SHARE * response:
        fact = f"p99 of the schedule lag is {lag:,.0f} µs, {lag / response:.0%} of the median response time"
        yield _advise("schedule lag", "suspect", fact, f"limit {LAG_SHARE:.0%}")


def _find_disturbances(facts: Facts) -> Iterator[Reason]:
    """Yields a reason for each disturbance by the machine or the network, and for a load without a steady state."""
    resources = facts.resources
    if resources is None:
        fact = "the server's CPU time, memory and network are unknown"
        if facts.processes_unknown:
            cause = "the study does not name the processes of the external server"
            yield Reason("no samples", "valid", fact, "", cause, "set external.ID.pids to the server's process ids")
        else:
            yield _advise("no samples", "suspect", fact)
    elif resources.steal_fraction is not None and resources.steal_fraction > STEAL_SHARE:
        fact = f"the hypervisor took {resources.steal_fraction:.1%} of the server's CPU time"
        yield _advise("steal", "suspect", fact, f"limit {STEAL_SHARE:.0%}")
    if facts.load_shares_stack_cpu:
        yield _advise("shared CPU", "suspect", "the generator and the server share a CPU")
    window, completed = facts.window, facts.load.requests.completed
    if window is not None and window.steady is False:
        fact = f"no steady state{', though the load was extended' if window.extended else ''}"
        yield _advise("no steady state", "suspect", fact, window.why)
    retransmits, overflows, drops = (
        sum(getattr(network, name) for network in (resources.networks if resources else ()))
        for name in ("tcp_retransmits", "listen_overflows", "listen_drops")
    )
    if retransmits > RETRANSMIT_SHARE * max(completed, 1):
        fact = f"{retransmits:,} TCP retransmissions in {completed:,} requests"
        yield _advise("retransmits", "suspect", fact, f"limit {RETRANSMIT_SHARE:.1%}")
    if overflows or drops:
        validity: Validity = "suspect" if facts.failures == "reject" else "valid"
        fact = f"{overflows:,} connections arrived at a full listen queue; the kernel dropped {max(overflows, drops):,}"
        yield _advise("listen queue", validity, fact, "limit 0")


def _find_notes(facts: Facts) -> Iterator[Reason]:
    """Yields the generator's own reasons, and notes about unknown figures."""
    verdict = facts.load.verdict
    for kind, text in zip(verdict.kinds, verdict.reasons, strict=True):
        if kind in _GENERATOR_VALIDITY:
            step = f"read the output of {facts.other_generator} in the run's folder logs"
            next_step = step if facts.other_generator and kind == "no_response" else ""
            yield Reason(kind.replace("_", " "), _GENERATOR_VALIDITY[kind], text, next_step=next_step)
    # weir records the load of a script, with intervals and the tool's CPU time.
    if facts.other_generator and facts.load.generator.busy_fraction is None:
        unknown = "reports no intervals and no schedule lag: steady state, drift and lag are unknown"
        yield Reason("unchecked", "valid", f"{facts.other_generator} {unknown}")
    if facts.not_tapped:
        yield Reason("not tapped", "valid", f"the kernel's times are unknown: {facts.not_tapped}")


_RULES = (_find_failures, _find_wrong_counts, _find_generator_limit, _find_delays, _find_disturbances, _find_notes)
