"""The report of one load without a study: the same page, script and style as a study's, with what one load can tell.

It draws no conclusion that needs a second trial.
"""

from dataclasses import asdict
from pathlib import Path

from weir.findings import LoadFindings
from weir.findings.words import counted, significant
from weir.model.load import Load, OpenLoad
from weir.model.records import LoadSummary, Quantiles, StepSummary
from weir.report import load_sentences
from weir.report.load_series import load_series
from weir.report.page import flat, island, render_page, write_page
from weir.store import RunReader

SHOWN = ("mean", "p50", "p75", "p90", "p95", "p99", "p99_9", "p99_99", "max")
CLOCKS = {
    "response_time": "from the moment the request was due to its last byte",
    "service_time": "from the moment it was sent to its last byte",
    "schedule_lag": "how long after it was due it was sent",
    "connect_time": "to make a connection",
    "tls_handshake": "the TLS handshake after it",
    "time_to_first_byte": "from the moment it was sent to the first byte",
}
"""What each of them measures."""
_MOST_EVENTS = 30


def write_load_html(reader: RunReader, findings: LoadFindings, path: Path) -> None:
    """Write the report of a load to `path`, whole or not at all.

    Raises:
        WeirError: the web bundle is missing, or the file cannot be written.
    """
    write_page(render_load_html(reader, findings), path)


def render_load_html(reader: RunReader, findings: LoadFindings) -> str:
    """The report of a load, as a page."""
    series = load_series(reader, findings)
    summary, load = findings.summary, findings.trial.cell.load
    return render_page(
        "load.html.j2",
        island({"points": [asdict(series.over_time), asdict(series.clocks)]}),
        findings=findings,
        info=findings.info,
        summary=summary,
        series=series,
        load=load,
        is_open=isinstance(load, OpenLoad),
        headline=headline(summary),
        basis=basis(load, summary),
        tiles=_tiles(findings),
        columns=[name.replace("_", ".") for name in SHOWN],
        clocks=clocks_of(summary),
        drawn=series.answered,
        sentences=load_sentences,
        events=findings.events[:_MOST_EVENTS],
        more_events=max(0, len(findings.events) - _MOST_EVENTS),
        slowest=[
            {
                "due_s": f"{slow.intended_us / 1e6:.3f}",
                "lag": milliseconds(slow.written_us - slow.intended_us),
                "first": milliseconds(slow.first_byte_us - slow.written_us),
                "rest": milliseconds(slow.last_byte_us - slow.first_byte_us),
                "all": milliseconds(slow.last_byte_us - slow.intended_us),
                "status": slow.status,
                "connection": slow.connection,
            }
            for slow in summary.slowest or ()
        ],
        parts=parts_of(summary),
        ms=milliseconds,
        asked=_asked(findings),
        environment=flat(findings.info.environment),
    )


def headline(summary: LoadSummary) -> str:
    """What a load came to, in a sentence."""
    times = summary.response_time_us
    rate = f"{significant(summary.throughput_rps, 4)} requests per second"
    if times.p50 is None or times.p99 is None:
        return f"{rate}: nothing was answered" if not summary.requests.completed else rate
    return f"{rate}; half of the answers within {milliseconds(times.p50)} ms, 99 % within {milliseconds(times.p99)} ms"


def basis(load: Load, summary: LoadSummary) -> str:
    """What the figures rest on: the load, how long, how many answers."""
    answered = counted(summary.requests.completed, "request")
    return f"{load.label}, {summary.duration_s:.1f}\u00a0s: {answered} answered, {_failures(summary)}"


def _failures(summary: LoadSummary) -> str:
    kinds = [f"{kind} {count:,}" for kind, count in summary.errors.model_dump().items() if count]
    return f"{summary.requests.failed:,} failed ({', '.join(kinds)})" if kinds else "none failed"


def _tiles(findings: LoadFindings) -> list[tuple[str, str, str, str]]:
    """(title, unit, value, what is beside it)."""
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
            tiles.append(("Server's memory", "MB", f"{resources.pss_bytes / 1e6:,.1f}", counted(resources.peak_threads, "thread")))
    return tiles


def clocks_of(summary: LoadSummary) -> list[tuple[str, str, list[str]]]:
    """(name, meaning, values in ms) of each clock with samples."""
    rows = []
    for clock, meaning in CLOCKS.items():
        times: Quantiles | None = getattr(summary, f"{clock}_us")
        if times is not None and times.max is not None:
            rows.append((clock.replace("_", " "), meaning, [milliseconds(getattr(times, name)) for name in SHOWN]))
    return rows


def parts_of(summary: LoadSummary) -> list[tuple[str, str, list[tuple[str, StepSummary]]]]:
    """(title, what one is called, what came of each by name): of the steps of a scenario, and of several targets."""
    steps = list((summary.steps or {}).items())
    targets: list[tuple[str, StepSummary]] = [(target.url, target) for target in summary.targets or ()]
    return [part for part in (("Steps", "step", steps), ("Targets", "target", targets)) if part[2]]


def _asked(findings: LoadFindings) -> list[tuple[str, str]]:
    """The plan in words, as far as words are clearer than its JSON."""
    plan, request = findings.plan, findings.plan.get("request", {})
    rows = [
        ("target", findings.info.title),
        ("request", f"{request.get('method', 'GET')}" if request else "a scenario: see the plan"),
        ("load", findings.trial.cell.load.label),
        ("connections", f"{findings.trial.cell.load.connections:,}"),
        ("at most", f"{plan['duration_s']:g} s" + (f", {plan['requests']:,} requests" if plan.get("requests") else "")),
        ("timeout", f"{plan['timeout_s']:g} s"),
        ("generator", f"{counted(plan['threads'], 'thread')}, CPUs {', '.join(map(str, plan['cpus'])) or 'any'}"),
    ]
    if (depth := plan.get("pipeline", 1)) > 1:
        rows.append(("pipelining", f"up to {depth} requests unanswered on a connection"))
    return [*rows, ("keep-alive", "no: a connection for each request")] if plan.get("keep_alive") is False else rows


def milliseconds(value_us: float | None) -> str:
    """Microseconds as milliseconds with three digits, to the microsecond."""
    if value_us is None:
        return "–"
    value = value_us / 1e3
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"
