"""The result of one load as text. Formats what the engine computed; computes nothing but shares."""

from collections.abc import Sequence

from weir.model.load import Load, OpenLoad
from weir.model.records import (
    THREAD_STATE_WORDS,
    THREAD_STATES,
    AgentSummary,
    Fairness,
    KernelTimestamps,
    LoadSummary,
    Quantiles,
    SlowRequest,
    StepSummary,
    UntilFailure,
)
from weir.model.resources import StackResources
from weir.objective import Judged, judged_from_json

_SHOWN = ("mean", "p50", "p90", "p99", "p99_9", "max")
_SHOWN_LATE_US = 1_000.0
"""From where on it is told that an agent began late: below, it is in the JSON."""


def summary_text(summary: LoadSummary, load: Load, resources: StackResources | None, pipeline: int = 1) -> str:
    """The summary that `weir load` prints, and `weir report` of a load that was kept."""
    requests = summary.requests
    lines = [
        f"{summary.target}",
        f"  {load.label}{_pipelining(pipeline)}, {summary.duration_s:.1f} s",
        "",
        f"  {summary.throughput_rps:,.0f} req/s    {requests.completed:,} answered, {_failures(summary)}",
        "",
        "  " + " " * 15 + "".join(f"{name.replace('_', '.'):>10}" for name in _SHOWN),
        _row("response time", summary.response_time_us),
        _row("service time", summary.service_time_us),
    ]
    if isinstance(load, OpenLoad):
        lines.append(_row("schedule lag", summary.schedule_lag_us))
    if summary.tls_handshake_us is not None:
        lines.append(_row("TLS handshake", summary.tls_handshake_us))
    if summary.generator.kernel_timestamps is not None:
        lines.append("  " + _timestamps(summary.generator.kernel_timestamps))
    lines += ["", "  status  " + (", ".join(f"{code}: {count:,}" for code, count in summary.status.items()) or "none")]
    if summary.steps:
        lines += _parts("steps", list(summary.steps.items()))
    if summary.targets:
        lines += _parts("targets", [(target.url, target) for target in summary.targets])
    if summary.agents:
        lines += _agents(summary.agents)
    if requests.unanswered or requests.unsent:
        lines.append(f"  at the end  {requests.unanswered:,} unanswered, {requests.unsent:,} due but not sent")
    if summary.slowest:
        lines.append("  " + _slowest(summary.slowest[0]))
    if summary.fairness is not None and summary.fairness.max != summary.fairness.min:
        lines.append("  " + _fairness(summary.fairness))
    lines.append(f"  bytes   {_bytes(summary.bytes.sent)} sent, {_bytes(summary.bytes.received)} received")
    use = summary.generator
    if use.version:
        cpus = f"{use.threads} CPU{'s' if use.threads > 1 else ''}"
        lines.append(f"  generator  {use.cpu_fraction:.0%} of {cpus}, {_bytes(use.peak_rss_bytes)} at its peak")
    if resources is not None:
        lines += ["", *_server(resources, summary)]
    if summary.until_failure is not None:
        lines += ["", *(f"  {line}" for line in _until_failure(summary.until_failure))]
    lines += ["", *(f"  {line}" for line in summary.verdict.lines)]
    lines += [f"    {summary.limit_sentence}"] if summary.limit_sentence else []
    objectives = [judged_from_json(one) for one in summary.objectives or ()]
    aborted = [] if summary.aborted is None else [judged_from_json(summary.aborted)]
    return "\n".join([*lines, *_judged_lines(objectives, aborted, summary.duration_s)])


def _judged_lines(objectives: Sequence[Judged], aborted: Sequence[Judged], after_s: float) -> list[str]:
    """What was asked of the load, each with what was found, and why it was stopped early."""
    lines = ["", "  objectives"] if objectives else []
    width = max((len(one.condition.text) for one in objectives), default=0)
    lines += [f"    {'met   ' if one.met else 'MISSED'}  {one.condition.text:<{width}}  found {_found(one)}" for one in objectives]
    lines += ["", *(f"  stopped after {after_s:.1f} s: {one.condition.text}, found {_found(one)}" for one in aborted)] if aborted else []
    return lines


def _found(judged: Judged) -> str:
    value = judged.found
    if value is None:
        return "no such figure: too few requests were answered"
    match judged.condition.unit:
        case "us":
            return microseconds(value)
        case "fraction":
            return f"{value * 100:.3g} %"
        case "rps":
            return f"{value:,.0f} req/s"
        case "count":
            return f"{value:,.0f}"


def microseconds(value: float | None) -> str:
    """A time with three digits and the unit that fits it."""
    if value is None:
        return "–"
    for limit, divisor, unit in ((1e3, 1, "us"), (1e6, 1e3, "ms"), (float("inf"), 1e6, "s")):
        if value < limit:
            scaled = value / divisor
            return f"{scaled:.2f} {unit}" if scaled < 10 else f"{scaled:.1f} {unit}" if scaled < 100 else f"{scaled:.0f} {unit}"
    raise AssertionError("a time is below infinity")


def _slowest(slow: SlowRequest) -> str:
    times = (
        f"{microseconds(slow.last_byte_us - slow.intended_us)}, {microseconds(slow.last_byte_us - slow.written_us)} of it after it was sent"
    )
    return f"slowest  {times}; due at {slow.intended_us / 1e6:.3f} s, connection {slow.connection}, status {slow.status}"


def _timestamps(stamps: KernelTimestamps) -> str:
    by_the_clock = f", of {stamps.missing:,} when it was read" if stamps.missing else ""
    return f"last byte: of {stamps.used:,} answers when the kernel received it{by_the_clock}"


def _fairness(fairness: Fairness) -> str:
    return f"requests by connection  {fairness.min:,} to {fairness.max:,}, median {fairness.median:,.0f}"


def _until_failure(until: UntilFailure) -> list[str]:
    end = "no request failed" if until.at_s is None else f"first failure at {until.at_s:.3f} s ({until.kind})"
    mean = microseconds(until.mean_response_time_us)
    return [
        f"{end}, after {until.requests_before:,} answered",
        f"highest throughput until then  {until.highest_throughput_rps:,.0f} req/s in a second; mean response time {mean}",
    ]


def _pipelining(depth: int) -> str:
    return f", up to {depth} requests unanswered on each" if depth > 1 else ""


def _parts(title: str, parts: Sequence[tuple[str, StepSummary]]) -> list[str]:
    width = max(len(name) for name, _ in parts)
    lines = ["", f"  {title}"]
    for name, part in parts:
        times = part.response_time_us
        shown = "none" if times.mean is None else f"p50 {microseconds(times.p50)}  p99 {microseconds(times.p99)}"
        if times.mean is not None and times.p50 is None:
            # Of several agents the percentiles of a part are not known.
            shown = f"mean {microseconds(times.mean)}  max {microseconds(times.max)}"
        lines.append(f"    {name:<{width}}  {part.completed:>10,} answered, {part.failed:,} failed  {shown}")
    return [*lines, ""]


def _agents(agents: Sequence[AgentSummary]) -> list[str]:
    width = max(len(agent.name) for agent in agents)
    lines = ["", "  agents"]
    for agent in agents:
        busy = "" if agent.generator.busy_fraction is None else f"  busy {agent.generator.busy_fraction:.0%}"
        times = f"p50 {microseconds(agent.response_time_us.p50)}  p99 {microseconds(agent.response_time_us.p99)}"
        clock = f"clock {agent.clock_offset_us / 1e3:+,.2f} ms (± {agent.clock_error_us / 1e3:.2f})"
        late = f"  began {microseconds(agent.began_late_us)} late" if agent.began_late_us > _SHOWN_LATE_US else ""
        lines.append(f"    {agent.name:<{width}}  {agent.requests.completed:>10,} answered  {times}{busy}  {clock}{late}")
    return [*lines, ""]


def _row(name: str, quantiles: Quantiles) -> str:
    return f"  {name:<15}" + "".join(f"{microseconds(getattr(quantiles, key)):>10}" for key in _SHOWN)


def _failures(summary: LoadSummary) -> str:
    kinds = {kind: count for kind, count in summary.errors.model_dump().items() if count}
    if not kinds:
        return "none failed"
    return f"{summary.requests.failed:,} failed (" + ", ".join(f"{kind} {count:,}" for kind, count in kinds.items()) + ")"


def _server(resources: StackResources, summary: LoadSummary) -> list[str]:
    split = f"{resources.cpu_user_s:.2f} s user, {resources.cpu_system_s:.2f} s system"
    per_request = f", {resources.cpu_s / summary.requests.completed * 1e6:.1f} us per request" if summary.requests.completed else ""
    lines = [
        f"  server  {resources.cpu_s / summary.duration_s:.2f} CPUs busy ({split}){per_request}",
        f"          {resources.peak_processes} process{'es' if resources.peak_processes > 1 else ''}, {resources.peak_threads} threads",
    ]
    if resources.pss_bytes is not None and resources.private_bytes is not None:
        lines.append(f"          memory {_bytes(resources.pss_bytes)} (Pss), {_bytes(resources.private_bytes)} private")
    states = {state: sum(pool.in_state.get(state, 0.0) for pool in resources.pools) for state in THREAD_STATES}
    often = sorted(states.items(), key=lambda item: -item[1])
    if found := [f"{count:.1f} {THREAD_STATE_WORDS[state]}" for state, count in often if count >= _LEAST_THREADS]:
        lines.append(f"          of its threads, on average {', '.join(found)}")
    return [*lines, *(f"          {limit}" for limit in resources.limits)]


_LEAST_THREADS = 0.05


def _bytes(count: int) -> str:
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"
