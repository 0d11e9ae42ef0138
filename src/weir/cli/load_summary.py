"""Formats the result of one load as text."""

from collections.abc import Sequence

from weir.model.load import Load, OpenLoad
from weir.model.load_records import AgentSummary, LoadSummary, Quantiles, SlowRequest, StepSummary
from weir.model.observer_records import THREAD_STATE_WORDS
from weir.model.resources import StackResources
from weir.objective import Judged, judged_from_json

_SHOWN = ("mean", "p50", "p90", "p99", "p99_9", "max")
_SHOWN_LATE_US = 1_000.0
"""The text shows only delays of an agent's start above this limit. The JSON shows every delay."""
_LEAST_THREADS = 0.05
"""The text shows a thread state only if the state has at least this number of threads on average."""


def summary_text(summary: LoadSummary, load: Load, resources: StackResources | None, pipeline: int = 1) -> str:
    """Returns the text that `weir load` prints. `weir report` prints the same text for a load from `--out`."""
    requests = summary.requests
    depth = f", up to {pipeline} requests unanswered on each" if pipeline > 1 else ""
    lines = [
        summary.target,
        f"  {load.label}{depth}, {summary.duration_s:.1f} s",
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
    if (stamps := summary.generator.kernel_timestamps) is not None:
        by_the_clock = f", the generator's clock for {stamps.missing:,} others" if stamps.missing else ""
        lines.append(f"  end of response: kernel timestamps of {stamps.used:,} responses{by_the_clock}")
    lines += ["", "  status  " + (", ".join(f"{code}: {count:,}" for code, count in summary.status.items()) or "none")]
    if summary.steps:
        lines += _parts("steps", list(summary.steps.items()))
    if summary.targets:
        lines += _parts("targets", [(target.url, target) for target in summary.targets])
    if summary.agents:
        lines += _agents(summary.agents)
    if requests.unanswered or requests.unsent:
        lines.append(f"  at the end  {requests.unanswered:,} unanswered, {requests.unsent:,} due but not sent")
    if requests.retried:
        lines.append(f"  retried  {requests.retried:,} requests: the server closed their connections before a response")
    if summary.slowest:
        lines.append("  " + _slowest(summary.slowest[0]))
    if (found := summary.fairness) is not None and found.max != found.min:
        lines.append(f"  requests per connection  {found.min:,} to {found.max:,}, median {found.median:,.0f}")
    lines.append(f"  bytes   {_bytes(summary.bytes.sent)} sent, {_bytes(summary.bytes.received)} received")
    use = summary.generator
    if use.version:
        cpus = f"{use.threads} CPU{'s' if use.threads > 1 else ''}"
        lines.append(f"  generator  {use.cpu_fraction:.0%} of {cpus}, {_bytes(use.peak_rss_bytes)} at its peak")
    if resources is not None:
        lines += ["", *_server(resources, summary)]
    if (until := summary.until_failure) is not None:
        end = "no request failed" if until.at_s is None else f"first failure at {until.at_s:.3f} s ({until.kind})"
        highest = f"{until.highest_throughput_rps:,.0f} req/s in a second"
        mean = microseconds(until.mean_response_time_us)
        lines += ["", f"  {end}, after {until.requests_before:,} answered"]
        lines.append(f"  highest throughput until then  {highest}; mean response time {mean}")
    lines += ["", *(f"  {line}" for line in summary.verdict.lines)]
    if summary.limit_sentence:
        lines.append(f"    {summary.limit_sentence}")
    if objectives := [judged_from_json(one) for one in summary.objectives or ()]:
        width = max(len(one.condition.text) for one in objectives)
        lines += ["", "  objectives"]
        for one in objectives:
            lines.append(f"    {'met   ' if one.met else 'MISSED'}  {one.condition.text:<{width}}  found {_found(one)}")
    if summary.aborted is not None:
        reason = judged_from_json(summary.aborted)
        found_text = f"{reason.condition.text}, found {_found(reason)}"
        lines += ["", f"  stopped after {summary.duration_s:.1f} s: {found_text}"]
    return "\n".join(lines)


def _found(judged: Judged) -> str:
    value = judged.found
    if value is None:
        return "no such figure: weir needs more responses"
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
    """Formats a time with three digits in us, ms or s. None becomes a dash."""
    if value is None:
        return "–"
    scaled, unit = (value, "us") if value < 1e3 else (value / 1e3, "ms") if value < 1e6 else (value / 1e6, "s")
    return f"{scaled:.{2 if scaled < 10 else 1 if scaled < 100 else 0}f} {unit}"


def _slowest(slow: SlowRequest) -> str:
    service = microseconds(slow.last_byte_us - slow.written_us)
    times = f"{microseconds(slow.last_byte_us - slow.intended_us)}, of which {service} after the request was sent"
    request = f"due at {slow.intended_us / 1e6:.3f} s, connection {slow.connection}, status {slow.status}"
    return f"slowest  {times}; {request}"


def _parts(title: str, parts: Sequence[tuple[str, StepSummary]]) -> list[str]:
    width = max(len(name) for name, _ in parts)
    lines = ["", f"  {title}"]
    for name, part in parts:
        times = part.response_time_us
        shown = "none" if times.mean is None else f"p50 {microseconds(times.p50)}  p99 {microseconds(times.p99)}"
        if times.mean is not None and times.p50 is None:
            # With several agents, the percentiles of the parts are unknown.
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
        lines.append(
            f"    {agent.name:<{width}}  {agent.requests.completed:>10,} answered  {times}{busy}  {clock}{late}"
        )
    return [*lines, ""]


def _row(name: str, quantiles: Quantiles) -> str:
    return f"  {name:<15}" + "".join(f"{microseconds(getattr(quantiles, key)):>10}" for key in _SHOWN)


def _failures(summary: LoadSummary) -> str:
    kinds = [f"{kind} {count:,}" for kind, count in summary.errors.occurred.items()]
    return f"{summary.requests.failed:,} failed ({', '.join(kinds)})" if kinds else "none failed"


def _server(resources: StackResources, summary: LoadSummary) -> list[str]:
    split = f"{resources.cpu_user_s:.2f} s user, {resources.cpu_system_s:.2f} s system"
    completed, processes = summary.requests.completed, resources.peak_processes
    per_request = f", {resources.cpu_s / completed * 1e6:.1f} us per request" if completed else ""
    lines = [
        f"  server  {resources.cpu_s / summary.duration_s:.2f} CPUs busy ({split}){per_request}",
        f"          {processes} process{'es' if processes > 1 else ''}, {resources.peak_threads} threads",
    ]
    if resources.pss_bytes is not None and resources.private_bytes is not None:
        lines.append(f"          memory {_bytes(resources.pss_bytes)} (Pss), {_bytes(resources.private_bytes)} private")
    states = {state: sum(pool.in_state.get(state, 0.0) for pool in resources.pools) for state in THREAD_STATE_WORDS}
    often = sorted(states.items(), key=lambda item: -item[1])
    if found := [f"{count:.1f} {THREAD_STATE_WORDS[state]}" for state, count in often if count >= _LEAST_THREADS]:
        lines.append(f"          threads on average: {', '.join(found)}")
    return [*lines, *(f"          {limit}" for limit in resources.limits)]


def _bytes(count: int) -> str:
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"
