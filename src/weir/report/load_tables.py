"""Builds the tables in the report of a single load, as rows of texts: clocks, requests and plan."""

from collections.abc import Iterator

from weir.findings import LoadFindings
from weir.findings.formatting import counted, milliseconds, significant
from weir.model.load_records import LoadSummary, Quantiles

SHOWN = ("mean", "p50", "p75", "p90", "p95", "p99", "p99_9", "p99_99", "max")
COLUMNS = tuple(name.replace("_", ".") for name in SHOWN)
CLOCKS = {
    "response_time": "from the request's due time to the last byte of the response",
    "service_time": "from the request's sending to the last byte of the response",
    "schedule_lag": "from the request's due time to its sending",
    "connect_time": "time to open a connection",
    "tls_handshake": "time of the TLS handshake",
    "time_to_first_byte": "from the request's sending to the first byte of the response",
}
"""The meaning of each clock of a load."""
MOST_EVENTS = 30
"""Maximum number of a load's events that the report lists."""
Part = tuple[str, int, int, Quantiles]
"""A step, a target or an agent of a load: name, number of responses, number of failures, and response times."""


def list_tiles(findings: LoadFindings) -> list[tuple[str, str, str, str]]:
    """Returns (title, unit, value, second figure) for each tile with a key figure of the load."""
    summary, resources = findings.summary, findings.trial.result.resources
    requests, times = summary.requests, summary.response_time_us
    share = f"{requests.failed / requests.intended * 100:.2g} % of {requests.intended:,}" if requests.intended else ""
    tiles = [
        ("Throughput", "req/s", significant(summary.throughput_rps, 4), f"{requests.completed:,} answered"),
        ("Response time p50", "ms", milliseconds(times.p50), f"mean {milliseconds(times.mean)}"),
        ("Response time p99", "ms", milliseconds(times.p99), f"longest {milliseconds(times.max)}"),
        ("Failed", "requests", f"{requests.failed:,}", share),
    ]
    if resources is not None and summary.duration_s > 0:
        per_request = f"{resources.cpu_s / requests.completed * 1e6:.3g} µs per request" if requests.completed else ""
        tiles.append(("Server's CPU", "CPUs", f"{resources.cpu_s / summary.duration_s:.2f}", per_request))
        if resources.pss_bytes is not None:
            threads = counted(resources.peak_threads, "thread")
            tiles.append(("Server's memory", "MB", f"{resources.pss_bytes / 1e6:,.1f}", threads))
    return tiles


def clock_rows(summary: LoadSummary) -> list[tuple[str, str, list[str]]]:
    """Returns (name, meaning, values in ms) for each clock that has samples."""
    rows = []
    for clock, meaning in CLOCKS.items():
        times: Quantiles | None = getattr(summary, f"{clock}_us")
        if times is not None and times.max is not None:
            rows.append((clock.replace("_", " "), meaning, [milliseconds(getattr(times, name)) for name in SHOWN]))
    return rows


def part_rows(summary: LoadSummary) -> Iterator[tuple[str, str, list[Part]]]:
    """Yields (title, noun for a part, parts) for each table: the steps, the targets and the agents of a load."""
    steps = [(name, one, one.response_time_us) for name, one in (summary.steps or {}).items()]
    targets = [(one.url, one, one.response_time_us) for one in summary.targets or ()]
    agents = [(one.name, one.requests, one.response_time_us) for one in summary.agents or ()]
    for title, noun, parts in (("Steps", "step", steps), ("Targets", "target", targets), ("Agents", "agent", agents)):
        if parts:
            yield title, noun, [(name, counts.completed, counts.failed, times) for name, counts, times in parts]


def slowest_rows(summary: LoadSummary) -> list[tuple[str, ...]]:
    """Returns a row for each of the slowest requests: due time in s, four times in ms, status and connection."""
    rows = []
    for slow in summary.slowest or ():
        due, written, first, last = slow.intended_us, slow.written_us, slow.first_byte_us, slow.last_byte_us
        times = (last - due, written - due, first - written, last - first)
        rows.append((f"{due / 1e6:.3f}", *map(milliseconds, times), str(slow.status), str(slow.connection)))
    return rows


def plan_rows(findings: LoadFindings) -> list[tuple[str, str]]:
    """Returns (name, text) for the main values of a load's plan. The report has the whole plan elsewhere."""
    plan, request = findings.plan, findings.plan.get("request", {})
    rows = [
        ("target", findings.title),
        ("request", f"{request.get('method', 'GET')}" if request else "a scenario: see the plan"),
        ("load", findings.trial.cell.load.label),
        ("connections", f"{findings.trial.cell.load.connections:,}"),
        ("ends at", f"{plan['duration_s']:g} s" + (f", {plan['requests']:,} requests" if plan.get("requests") else "")),
        ("timeout", f"{plan['timeout_s']:g} s"),
        ("generator", f"{counted(plan['threads'], 'thread')}, CPUs {', '.join(map(str, plan['cpus'])) or 'any'}"),
    ]
    if (depth := plan.get("pipeline", 1)) > 1:
        rows.append(("pipelining", f"up to {depth} unanswered requests on a connection"))
    return [*rows, ("keep-alive", "no: a connection for each request")] if plan.get("keep_alive") is False else rows
