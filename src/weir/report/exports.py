"""Exports a run or a load as JSON, CSV and Markdown, and in the formats of JMeter, Locust and HdrHistogram. Response
times count from the intended start of the request. Formats of other tools merge a stack's counted trials."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from weir.compat.jmx.jtl import AGGREGATE_COLUMNS
from weir.compat.latencies import list_spectrum, sort_counts
from weir.findings import LoadFindings, RunFindings
from weir.findings.formatting import counted, milliseconds
from weir.findings.metrics import BY_KEY, CPU, UNITS
from weir.findings.point_types import Point
from weir.model.hdr import RANGES, SUB_BUCKETS
from weir.model.hdr_batch import highest, merge, samples_of
from weir.model.run_types import Trial
from weir.report.load_tables import COLUMNS, clock_rows, part_rows
from weir.report.number_format import TABLE_METRICS, display, interval_text, value_text
from weir.report.timeseries import Array
from weir.store import RunReader

_LOCUST_PERCENTILES = (50, 66, 75, 80, 90, 95, 98, 99, 99.9, 99.99, 100)
_LOCUST = (
    *("Type", "Name", "Request Count", "Failure Count", "Median Response Time"),
    *("Average Response Time", "Min Response Time", "Max Response Time", "Average Content Size"),
    *("Requests/s", "Failures/s", *(f"{percent:g}%" for percent in _LOCUST_PERCENTILES)),
)
JMETER_PERCENTILES = (50, 90, 95, 99, 0, 100)


@dataclass(frozen=True)
class Sampled:
    """The counts and response times of a load, or of one stack's counted trials at one point."""

    name: str
    method: str = ""
    """The HTTP method; empty if unknown."""
    trials: tuple[int, ...] = ()
    requests: int = 0
    """Number of requests with a response or a failure."""
    failed: int = 0
    length_s: float = 0.0
    received_bytes: int = 0
    sent_bytes: int = 0
    parts: tuple[bytes, ...] = ()
    """Histograms of response times in nanoseconds, one for each trial."""

    @cached_property
    def times(self) -> tuple[Array, Array, Array]:
        """Three arrays: response times (ns, ascending); the number of requests with each time; its cumulative sum."""
        found = samples_of(self.parts)
        counts = np.bincount(found.bucket, weights=found.often).astype(np.float64)
        taken = np.flatnonzero(counts)
        return highest()[taken].astype(np.float64), counts[taken], counts[taken].cumsum()

    @property
    def answered(self) -> int:
        return int(self.times[1].sum())

    @property
    def mean_ms(self) -> float:
        times_ns, often, _ = self.times
        return float(times_ns @ often) / self.answered / 1e6 if len(often) else 0.0

    @property
    def failed_share(self) -> float:
        return self.failed / self.requests if self.requests else 0

    def per_s(self, count: float) -> float:
        return count / self.length_s if self.length_s else 0.0

    def percentiles_ms(self, percents: Sequence[float]) -> list[float]:
        """Returns the response time in milliseconds at each percentile of `percents` (0 to 100)."""
        times_ns, _, reached = self.times
        if not len(times_ns):
            return [0.0] * len(percents)
        # The tolerance prevents rounding errors from selecting the next request.
        at = np.searchsorted(reached, np.array(percents) / 100 * reached[-1] - 1e-6)
        return [float(time_ns) / 1e6 for time_ns in times_ns[at]]


def collect_samples(reader: RunReader, findings: RunFindings) -> list[Sampled]:
    """Returns the counts and response times of every stack at every point. A single load has the name of its target."""
    load = findings if isinstance(findings, LoadFindings) else None
    trials = {trial.id: trial for trial in ([load.trial] if load else reader.trials())}
    method = str((load.plan.get("request") or {}).get("method", "")) if load else ""
    found = []
    for point in findings.points:
        for stack in point.stacks:
            if stack.arm == "main" and stack.evidence.used:
                several = len(findings.points) > 1
                name = load.summary.target if load else f"{stack.name} ({point.label})" if several else stack.name
                rows = [_trial_samples(reader, trials[trial]) for trial in stack.evidence.used]
                found.append(_merge(rows, name, method))
    return found


def _trial_samples(reader: RunReader, trial: Trial) -> Sampled:
    if (summary := trial.result.summary) is None:
        return Sampled("")
    counts, moved, part = summary.requests, summary.bytes, reader.histogram(trial.id, "response_time_ns")
    sizes = (counts.ok + counts.failed, counts.failed, summary.duration_s, moved.received, moved.sent)
    return Sampled("", "", (trial.id,), *sizes, () if part is None else (part,))


def _merge(rows: Sequence[Sampled], name: str, method: str = "") -> Sampled:
    empty = Sampled(name, method)
    summed = [one.name for one in fields(empty) if one.name not in ("name", "method")]
    return replace(empty, **{name: sum((getattr(row, name) for row in rows), getattr(empty, name)) for name in summed})


def render_json(findings: RunFindings) -> str:
    """Returns the findings of a run or a load as JSON. The key `schema` contains the version of this JSON format."""
    return json.dumps(findings.to_json(), indent=2, ensure_ascii=False, allow_nan=False)


def render_jmeter(rows: Sequence[Sampled]) -> str:
    """Returns JMeter's aggregate report as CSV, in whole milliseconds. The last row merges all other rows."""
    return csv_text(AGGREGATE_COLUMNS, [_jmeter_row(row) for row in [*rows, _merge(rows, "TOTAL")]])


def _jmeter_row(row: Sampled) -> list[Any]:
    return [
        row.name,
        row.requests,
        *(f"{time_ms:.0f}" for time_ms in (row.mean_ms, *row.percentiles_ms(JMETER_PERCENTILES))),
        f"{row.failed_share:.3%}",
        f"{row.per_s(row.requests):.5f}",
        f"{row.per_s(row.received_bytes / 1024):.2f}",
        f"{row.per_s(row.sent_bytes / 1024):.2f}",
    ]


def render_locust(rows: Sequence[Sampled]) -> str:
    """Returns Locust's `_stats.csv`, in milliseconds. The last row merges all other rows."""
    return csv_text(_LOCUST, [_locust_row(row) for row in [*rows, _merge(rows, "Aggregated")]])


def _locust_row(row: Sampled) -> list[Any]:
    median, shortest, *percentiles = row.percentiles_ms((50, 0, *_LOCUST_PERCENTILES))
    size = row.received_bytes / row.requests if row.requests else 0
    return [
        *(row.method, row.name, row.requests, row.failed, f"{median:.0f}"),
        *(row.mean_ms, shortest, percentiles[-1], size, row.per_s(row.requests), row.per_s(row.failed)),
        *(f"{time_ms:.0f}" for time_ms in percentiles),
    ]


def render_hgrm(rows: Sequence[Sampled]) -> str:
    """Returns the name and percentile distribution of each row, in HdrHistogram's format and in milliseconds."""
    return "\n".join(_distribution(row) for row in rows)


def _distribution(row: Sampled) -> str:
    merged = merge(row.parts)
    lines = [f"# {row.name}", f"{'Value':>12} {'Percentile':>14} {'TotalCount':>10} {'1/(1-Percentile)':>14}", ""]
    for value_ns, share, count in list_spectrum(sort_counts(merged.by_value())) if row.answered else ():
        inverse = f" {1 / (1 - share):14.2f}" if share < 1 else ""
        lines.append(f"{value_ns / 1e6:12.3f} {share:2.12f} {count:10d}{inverse}")
    lines += [
        f"#[Mean    = {merged.mean / 1e6:12.3f}, StdDeviation   = {merged.stdev / 1e6:12.3f}]",
        f"#[Max     = {merged.max / 1e6:12.3f}, Total count    = {merged.total:12d}]",
        f"#[Buckets = {RANGES:12d}, SubBuckets     = {SUB_BUCKETS:12d}]",
        f"#[Seconds = {row.length_s:12.3f}]",
    ]
    return "\n".join(lines) + "\n"


def render_csv(findings: RunFindings) -> str:
    """Returns every metric of every stack at every point as CSV; for a load, every number of the load's JSON."""
    columns = ("workload", "load", "point", "stack", "name", "metric", "unit", "value", "low", "high", "trials", "note")
    if isinstance(findings, LoadFindings):
        target, (point,) = findings.summary.target, findings.points
        place = (point.workload, point.load, point.label, target, target)
        figures = ([*place, key, _unit(key), value, None, None, 1, None] for key, value in _figures(findings))
        return csv_text(columns, figures)
    rows: list[list[Any]] = []
    for point in findings.points:
        for stack in point.stacks:
            place = (point.workload, point.load, point.label, stack.label, stack.name)
            for one in stack.measures:
                values = (one.metric, one.unit, one.value, one.low, one.high, len(one.trials), one.note)
                rows.append([*place, *values])
    return csv_text(columns, rows)


def _figures(findings: LoadFindings) -> Iterator[tuple[str, float]]:
    """Yields (key, value) for every number in a load's JSON, and for the CPU time per request."""
    value = findings.to_json()
    del value["run"], value["schema"]
    yield from _numbers(value)
    (stack,) = findings.points[0].stacks
    if (used := stack.measure(CPU).value) is not None:
        yield CPU, used


def _numbers(value: Any, key: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield key, value
    elif isinstance(value, dict):
        for name, one in value.items():
            yield from _numbers(one, f"{key}.{name}" if key else name)
    elif isinstance(value, list | tuple):
        for number, one in enumerate(value, 1):
            # A target's or an agent's name is a part of the key.
            name = one.get("url") or one.get("name") or number if isinstance(one, dict) else number
            yield from _numbers(one, f"{key}.{name}")


def _unit(key: str) -> str:
    """Returns the unit of the number under `key` in a load's JSON. The end of `key`, such as `_us`, shows the unit."""
    if key in UNITS:
        return UNITS[key]
    for part in reversed(key.split(".")):
        for ending, unit in (("_us", "µs"), ("_rps", "req/s"), ("_s", "s"), ("bytes", "bytes")):
            if part.endswith(ending):
                return unit
    counts = {"sent", "completed", "ok", "failed", "other_length"}
    return "requests" if counts & {key.split(".")[-1]} or {"requests", "status", "errors"} & set(key.split(".")) else ""


def render_markdown(findings: RunFindings) -> str:
    """Returns the findings as Markdown: the answer, the tables, and the reasons to doubt the answer."""
    answer = findings.answer
    load = findings if isinstance(findings, LoadFindings) else None
    note = ", indicative" if answer.indicative else ", unfinished" if load and not load.finished else ""
    verdict = answer.validity + note
    sentence = f"**{_inline(answer.sentence)}** [{verdict}]"
    lead = [sentence, "", f"{load.basis}."] if load else [_inline(findings.question), "", sentence]
    lines = [f"## {_inline(findings.title)}", "", *lead, ""]
    lines += _load_tables(load) if load else ()
    for point in () if load else findings.points:
        if len(findings.points) > 1:
            lines += [f"### {point.label}", ""]
        lines += [*_point_table(point), ""]
    judged = [held for _, _, held in findings.objectives()] if load else []
    cautions = [f"{caution.fact} {caution.threshold}".strip() for caution in findings.cautions]
    lists = {
        "Break-even": [found.sentence for found in findings.break_evens if found.crossings],
        "Bottlenecks": [f"{one.sentence} To confirm: {one.would_prove}" for one in findings.bottlenecks],
        "Objectives": [f"{one.objective} {'met' if one.met else 'missed'}" for one in judged],
        "To keep in mind": [*(answer.reasons if load else ()), *cautions],
    }
    for heading, found in lists.items():
        if found:
            lines += [f"### {heading}", "", *(f"- {_inline(sentence)}" for sentence in found), ""]
    if load is None:
        used = f"{findings.trials.used} of {counted(findings.trials.finished, 'trial')} used."
        lines.append(f"{used} {findings.audit.sentence}")
    return "\n".join(lines).rstrip() + "\n"


def _point_table(point: Point) -> list[str]:
    titles = [f"{BY_KEY[metric].title}, {display(metric).unit}" for metric in TABLE_METRICS]
    rows = []
    for stack in point.stacks:
        measures = [stack.measure(metric) for metric in TABLE_METRICS]
        intervals = {one.metric: f" ({text})" for one in measures if (text := interval_text(one))}
        rows.append([stack.name, *(value_text(one) + intervals.get(one.metric, "") for one in measures)])
    return _markdown_table(["stack", *titles], rows)


def _load_tables(load: LoadFindings) -> Iterator[str]:
    """Yields the Markdown lines of a load's tables: clocks, outcomes, statuses, and parts (steps, targets, agents)."""
    summary, requests = load.summary, load.summary.requests
    outcomes = [
        ("correct responses", requests.ok),
        *((f"failed: {kind}", count) for kind, count in summary.errors.occurred.items()),
        ("unanswered at the end", requests.unanswered),
        ("due and not sent", requests.unsent),
        ("intended", requests.intended),
    ]
    tables: list[tuple[list[str], list[list[str]]]] = [
        (["clock, ms", *COLUMNS], [[name, *values] for name, _, values in clock_rows(summary)]),
        (["requests", "number"], [[name, f"{count:,}"] for name, count in outcomes]),
        (["status", "responses"], [[code, f"{count:,}"] for code, count in summary.status.items()]),
    ]
    for _, noun, parts in part_rows(summary):
        rows = [
            [name, f"{done:,}", f"{failed:,}", milliseconds(times.p50), milliseconds(times.p99)]
            for name, done, failed, times in parts
        ]
        tables.append(([noun, "answered", "failed", "p50, ms", "p99, ms"], rows))
    for titles, rows in tables:
        if rows:
            yield from (*_markdown_table(titles, rows), "")


def _markdown_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(titles)} |", f"|---|{'---:|' * (len(titles) - 1)}"]
    return lines + [f"| {' | '.join(_inline(cell).replace('|', chr(92) + '|') for cell in row)} |" for row in rows]


def _inline(text: str) -> str:
    """Returns `text` on one line. Names of stacks and steps may contain line breaks."""
    return " ".join(text.split())


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Returns a table as CSV. Numbers keep all digits, and None becomes an empty cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()
