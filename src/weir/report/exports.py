"""A run or a load in the forms of other tools, for scripts that read those: JMeter's aggregate report, Locust's statistics, percentiles as
HdrHistogram prints them; and a run as a table of figures and as Markdown (`load_exports` has those of a load).

Response times are those of weir's clocks, from the intended start. Where a run has several trials of a stack their requests are merged.
"""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from weir.compat.jmx.tables import AGGREGATE_COLUMNS
from weir.findings import LoadFindings, Point, RunFindings, StackFindings
from weir.findings.metrics import BY_KEY
from weir.findings.words import counted
from weir.model import histogram
from weir.model.histograms import highest, samples_of
from weir.model.records import LoadSummary
from weir.report.lines import Array
from weir.report.numbers import display, interval_text, value_text
from weir.store import RunReader

_LOCUST_PERCENTILES = (50, 66, 75, 80, 90, 95, 98, 99, 99.9, 99.99, 100)
_LOCUST = (
    "Type", "Name", "Request Count", "Failure Count", "Median Response Time", "Average Response Time", "Min Response Time",
    "Max Response Time", "Average Content Size", "Requests/s", "Failures/s", *(f"{percent:g}%" for percent in _LOCUST_PERCENTILES),
)  # fmt: skip
_TABLE_METRICS = ("throughput_rps", "response_time_us.p50", "response_time_us.p99", "cpu_us_per_request", "pss_bytes", "ready_s")


@dataclass(frozen=True, slots=True)
class Sampled:
    """The requests of one stack at one point, of all used trials, or of one load."""

    name: str
    trials: tuple[int, ...]
    """Whose requests these are."""
    method: str
    """What was asked with; empty where nobody knows."""
    requests: int
    """Answered or failed."""
    failed: int
    length_s: float
    parts: tuple[bytes, ...]
    """Histograms of response times in nanoseconds, one a trial."""
    times_ns: Array
    """Every response time that there was, rising."""
    often: Array
    """How many requests took each."""
    reached: Array
    """How many took no longer."""
    received_bytes: int
    sent_bytes: int

    @property
    def answered(self) -> int:
        """How many requests have a response time."""
        return int(self.often.sum())

    @property
    def mean_ms(self) -> float:
        """Of the answered."""
        return float(self.times_ns @ self.often) / self.answered / 1e6 if len(self.often) else 0.0

    def percentile_ms(self, percent: float) -> float:
        """The smallest time within which this share of the answered were."""
        if not len(self.often):
            return 0.0
        # Rounding must not ask for one more than there is.
        return float(self.times_ns[np.searchsorted(self.reached, percent / 100 * self.reached[-1] - 1e-6)]) / 1e6


def of_run(reader: RunReader, findings: RunFindings) -> list[Sampled]:
    """Every stack at every point."""
    trials = {trial.id: trial for trial in reader.trials()}
    several = len(findings.points) > 1
    found = []
    for point in findings.points:
        for stack in point.stacks:
            if stack.arm == "main" and stack.evidence.used:
                summaries = [summary for trial in stack.evidence.used if (summary := trials[trial].result.summary) is not None]
                parts = [reader.histogram(trial, "response_time_ns") for trial in stack.evidence.used]
                name = f"{stack.name} ({point.label})" if several else stack.name
                found.append(_sampled(name, stack.evidence.used, "", summaries, [part for part in parts if part is not None]))
    return found


def of_load(reader: RunReader, load: LoadFindings) -> list[Sampled]:
    """The one load."""
    part = reader.histogram(load.trial.id, "response_time_ns")
    request = load.plan.get("request") or {}
    return [_sampled(load.summary.target, (load.trial.id,), str(request.get("method", "")), [load.summary], [] if part is None else [part])]


def _sampled(name: str, trials: tuple[int, ...], method: str, summaries: Sequence[LoadSummary], parts: Sequence[bytes]) -> Sampled:
    times_ns, often, reached = times_of(parts)
    return Sampled(
        name=name,
        trials=trials,
        method=method,
        requests=sum(summary.requests.ok + summary.requests.failed for summary in summaries),
        failed=sum(summary.requests.failed for summary in summaries),
        length_s=sum(summary.duration_s for summary in summaries),
        parts=tuple(parts),
        times_ns=times_ns,
        often=often,
        reached=reached,
        received_bytes=sum(summary.bytes.received for summary in summaries),
        sent_bytes=sum(summary.bytes.sent for summary in summaries),
    )


def times_of(parts: Sequence[bytes]) -> tuple[Array, Array, Array]:
    """Every response time in histograms, rising; how many requests took it, and how many no longer."""
    found = samples_of(parts)
    counts = np.bincount(found.bucket, weights=found.often).astype(np.float64)
    taken = np.flatnonzero(counts)
    often = counts[taken]
    return highest()[taken].astype(np.float64), often, often.cumsum()


def _together(rows: Sequence[Sampled], name: str) -> Sampled:
    parts = tuple(part for row in rows for part in row.parts)
    times_ns, often, reached = times_of(parts)
    return Sampled(
        name,
        tuple(trial for row in rows for trial in row.trials),
        "",
        sum(row.requests for row in rows),
        sum(row.failed for row in rows),
        sum(row.length_s for row in rows),
        parts,
        times_ns,
        often,
        reached,
        sum(row.received_bytes for row in rows),
        sum(row.sent_bytes for row in rows),
    )


def jmeter(rows: Sequence[Sampled]) -> str:
    """JMeter's aggregate report: milliseconds, whole ones; the last row is all together."""
    return csv_text(AGGREGATE_COLUMNS, [_jmeter_row(row) for row in [*rows, _together(rows, "TOTAL")]])


def _jmeter_row(row: Sampled) -> list[str]:
    percentiles = [f"{row.percentile_ms(percent):.0f}" for percent in (50, 90, 95, 99, 0, 100)]
    second = max(row.length_s, 1e-9)
    return [
        row.name,
        str(row.requests),
        f"{row.mean_ms:.0f}",
        *percentiles,
        f"{row.failed / row.requests if row.requests else 0:.3%}",
        f"{row.requests / second:.5f}",
        f"{row.received_bytes / 1024 / second:.2f}",
        f"{row.sent_bytes / 1024 / second:.2f}",
    ]


def locust(rows: Sequence[Sampled]) -> str:
    """Locust's `_stats.csv`: milliseconds; the last row is all together."""
    return csv_text(_LOCUST, [_locust_row(row) for row in [*rows, _together(rows, "Aggregated")]])


def _locust_row(row: Sampled) -> list[str]:
    second = max(row.length_s, 1e-9)
    return [
        row.method,
        row.name,
        str(row.requests),
        str(row.failed),
        f"{row.percentile_ms(50):.0f}",
        f"{row.mean_ms}",
        f"{row.percentile_ms(0)}",
        f"{row.percentile_ms(100)}",
        f"{row.received_bytes / row.requests if row.requests else 0}",
        f"{row.requests / second}",
        f"{row.failed / second}",
        *(f"{row.percentile_ms(percent):.0f}" for percent in _LOCUST_PERCENTILES),
    ]


def hgrm(rows: Sequence[Sampled]) -> str:
    """Percentile distributions as HdrHistogram prints them, in milliseconds, each with its name in a comment above."""
    return "\n".join(_distribution(row) for row in rows)


def _distribution(row: Sampled) -> str:
    text = io.BytesIO()
    histogram.merge(row.parts).output_percentile_distribution(text, 1e6)
    lines = [f"# {row.name}", text.getvalue().decode().rstrip()]
    lines.append(f"#[Mean    = {row.mean_ms:12.3f}, Total count    = {row.answered:12d}]")
    lines.append(f"#[Max     = {row.percentile_ms(100):12.3f}, Seconds        = {row.length_s:12.3f}]")
    return "\n".join(lines) + "\n"


def table(findings: RunFindings) -> str:
    """Every metric of every stack at every point as CSV: value, interval, trials."""
    columns = ("workload", "load", "point", "stack", "name", "metric", "unit", "value", "low", "high", "trials", "note")
    rows = [
        [
            point.workload, point.load, point.label, stack.label, stack.name, measure.metric, measure.unit, _number(measure.value),
            _number(measure.low), _number(measure.high), str(len(measure.trials)), measure.note,
        ]
        for point in findings.points
        for stack in point.stacks
        for measure in stack.measures
    ]  # fmt: skip
    return csv_text(columns, rows)


def markdown(findings: RunFindings) -> str:
    """The answer, a table a point, and what weakens it, for a page or a comment."""
    answer = findings.answer
    verdict = answer.validity + (", indicative" if answer.indicative else "")
    lines = [f"## {findings.title}", "", f"{findings.question}", "", f"**{answer.sentence}** [{verdict}]", ""]
    for point in findings.points:
        if len(findings.points) > 1:
            lines += [f"### {point.label}", ""]
        lines += [*_markdown_table(point), ""]
    for heading, sentences in (
        ("Where the better one changes", [found.sentence for found in findings.break_evens if found.crossings]),
        ("What holds them back", [f"{found.sentence} To prove it: {found.would_prove}" for found in findings.bottlenecks]),
        ("To keep in mind", [f"{caution.fact} {caution.threshold}".strip() for caution in findings.cautions]),
    ):
        if sentences:
            lines += [f"### {heading}", "", *(f"- {sentence}" for sentence in sentences), ""]
    lines.append(f"{findings.trials.used} of {counted(findings.trials.finished, 'trial')} used. {findings.audit.sentence}")
    return "\n".join(lines) + "\n"


def _markdown_table(point: Point) -> list[str]:
    titles = [f"{BY_KEY[metric].title}, {display(metric).unit}" for metric in _TABLE_METRICS]
    lines = [f"| stack | {' | '.join(titles)} |", f"|---|{'---:|' * len(titles)}"]
    lines += [f"| {stack.name} | {' | '.join(_cells(stack))} |" for stack in point.stacks]
    return lines


def _cells(stack: StackFindings) -> list[str]:
    cells = []
    for metric in _TABLE_METRICS:
        measure = stack.measure(metric)
        interval = interval_text(measure)
        cells.append(value_text(measure) + (f" ({interval})" if interval else ""))
    return cells


def _number(value: float | None) -> str:
    return "" if value is None else repr(value)


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table as CSV, a row a line."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()
