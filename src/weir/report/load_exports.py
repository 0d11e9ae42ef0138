"""One load as a table of its figures and as Markdown: what `exports` has for a run, without intervals and without a comparison."""

from collections.abc import Iterator, Sequence

from weir.findings import LoadFindings
from weir.findings.metrics import CPU, MEMORY, UNITS
from weir.model.records import AgentSummary, Quantiles, StepSummary
from weir.objective import judged_from_json
from weir.report.exports import csv_text
from weir.report.load import CLOCKS, SHOWN, basis, clocks_of, headline, milliseconds, parts_of

_COLUMNS = ("target", "load", "part", "name", "metric", "unit", "value")
_Figure = tuple[str, str, str, str, float | int | None]
"""Part, its name, metric, unit and value: a row but for its target and load."""


def table(findings: LoadFindings) -> str:
    """Every figure of the load as CSV, then those of its steps, targets and agents; a figure that nobody knows has no row."""
    target, load = findings.summary.target, findings.trial.cell.load.label
    return csv_text(
        _COLUMNS,
        [
            [target, load, part, name, metric, unit, repr(value)]
            for part, name, metric, unit, value in _figures(findings)
            if value is not None
        ],
    )


def _figures(findings: LoadFindings) -> Iterator[_Figure]:
    summary = findings.summary
    yield "load", "", "duration_s", "s", summary.duration_s
    yield "load", "", "throughput_rps", "req/s", summary.throughput_rps
    yield from (("load", "", f"requests.{name}", "requests", count) for name, count in summary.requests.model_dump().items())
    yield from (("load", "", f"status.{code}", "requests", count) for code, count in summary.status.items())
    yield from (("load", "", f"errors.{kind}", "requests", count) for kind, count in summary.errors.model_dump().items())
    for clock in CLOCKS:
        times: Quantiles | None = getattr(summary, f"{clock}_us")
        if times is not None:
            yield from _times("load", "", f"{clock}_us", times)
    yield "load", "", "bytes.sent", "bytes", summary.bytes.sent
    yield "load", "", "bytes.received", "bytes", summary.bytes.received
    resources = findings.trial.result.resources
    if resources is not None:
        yield "load", "", "server.cpu_user_s", "s", resources.cpu_user_s
        yield "load", "", "server.cpu_system_s", "s", resources.cpu_system_s
        if summary.requests.completed:
            yield "load", "", CPU, UNITS[CPU], resources.cpu_s / summary.requests.completed * 1e6
        yield "load", "", MEMORY, UNITS[MEMORY], resources.pss_bytes
    for _, one, parts in parts_of(summary):
        for name, part in parts:
            yield from _part(one, name, part)
    for agent in summary.agents or ():
        yield from _agent(agent)


def _part(kind: str, name: str, part: StepSummary) -> Iterator[_Figure]:
    for count in ("sent", "completed", "ok", "failed"):
        yield kind, name, f"requests.{count}", "requests", getattr(part, count)
    yield from _times(kind, name, "response_time_us", part.response_time_us)


def _agent(agent: AgentSummary) -> Iterator[_Figure]:
    yield from (("agent", agent.name, f"requests.{name}", "requests", count) for name, count in agent.requests.model_dump().items())
    yield from _times("agent", agent.name, "response_time_us", agent.response_time_us)


def _times(part: str, name: str, clock: str, times: Quantiles) -> Iterator[_Figure]:
    return ((part, name, f"{clock}.{key}", "µs", value) for key, value in times.model_dump().items())


def markdown(findings: LoadFindings) -> str:
    """What the load came to, its clocks, what became of its requests, and what weakens it, for a page or a comment."""
    summary, requests = findings.summary, findings.summary.requests
    verdict = summary.verdict.validity + ("" if findings.finished else ", unfinished")
    lines = [f"## {_inline(findings.info.title)}", "", f"**{headline(summary)}** [{verdict}]", ""]
    lines += [f"{_inline(basis(findings.trial.cell.load, summary))}.", ""]
    clocks = [[name, *values] for name, _, values in clocks_of(summary)]
    if clocks:
        lines += [*_table(["clock, ms", *(name.replace("_", ".") for name in SHOWN)], clocks), ""]
    outcomes = [
        ("right answers", requests.ok),
        *((f"failed: {kind}", count) for kind, count in summary.errors.model_dump().items() if count),
        ("unanswered at the end", requests.unanswered),
        ("due and not sent", requests.unsent),
        ("intended", requests.intended),
    ]
    lines += [*_table(["requests", "number"], [[name, f"{count:,}"] for name, count in outcomes]), ""]
    if summary.status:
        lines += [*_table(["status", "answers"], [[code, f"{count:,}"] for code, count in summary.status.items()]), ""]
    for _, one, parts in parts_of(summary):
        rows = [
            [
                name,
                f"{part.completed:,}",
                f"{part.failed:,}",
                *(milliseconds(getattr(part.response_time_us, key)) for key in ("p50", "p99")),
            ]
            for name, part in parts
        ]
        lines += [*_table([one, "answered", "failed", "p50, ms", "p99, ms"], rows), ""]
    judged = [judged_from_json(one) for one in summary.objectives or ()]
    cautions = [*summary.verdict.reasons, *([summary.limit_sentence] if summary.limit_sentence else [])]
    for heading, sentences in (
        ("Objectives", [f"{one.condition.text} {'met' if one.met else 'missed'}" for one in judged]),
        ("To keep in mind", cautions),
    ):
        if sentences:
            lines += [f"### {heading}", "", *(f"- {_inline(sentence)}" for sentence in sentences), ""]
    return "\n".join(lines).rstrip() + "\n"


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(titles)} |", f"|---|{'---:|' * (len(titles) - 1)}"]
    return lines + [f"| {' | '.join(_inline(cell).replace('|', chr(92) + '|') for cell in row)} |" for row in rows]


def _inline(text: str) -> str:
    """`text` on one line: what a scenario calls a step may hold anything."""
    return " ".join(text.split())
