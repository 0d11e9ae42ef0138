"""Builds tables in the style of other tools (hey, wrk, JMeter), and a table of the first loads with failed requests.
Response times are in milliseconds, from all counted trials of a stack."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weir.findings import RunFindings
from weir.findings.formatting import amount, significant
from weir.findings.metrics import MEAN, THROUGHPUT
from weir.findings.point_types import StackFindings
from weir.findings.variance_components import drop_partial_interval
from weir.report.exports import JMETER_PERCENTILES, Sampled
from weir.report.number_format import value_text
from weir.store import RunReader

_HEY_PERCENTILES = (10, 25, 50, 75, 90, 95, 99)


@dataclass(frozen=True, slots=True)
class SummaryTable:
    """A table with a heading above each column. Each row has a name and a text for each column."""

    title: str
    columns: tuple[str, ...]
    """Headings of all columns but the first. The first column contains the names of the rows."""
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    note: str


def build_summaries(reader: RunReader, findings: RunFindings, sampled: Sequence[Sampled]) -> list[SummaryTable]:
    """Returns the tables that have data. `sampled` is the result of `exports.collect_samples`."""
    answered = [row for row in sampled if row.answered]
    failing = _failure_points(findings)
    tables = [_hey(answered), _wrk(reader, answered), _jmeter(answered)] if answered else []
    return [failing, *tables] if failing is not None else tables


def _hey(rows: Sequence[Sampled]) -> SummaryTable:
    columns = "requests/sec", "average", "fastest", "slowest", *(f"{percent} % in" for percent in _HEY_PERCENTILES)
    note = "hey's response times start when a request is sent. In a closed loop, a request is sent when it is due."
    times = [(row.mean_ms, *row.percentiles_ms((0, 100, *_HEY_PERCENTILES))) for row in rows]
    lines = [(row.name, (_rate(row), *map(significant, found))) for row, found in zip(rows, times, strict=True)]
    return SummaryTable("hey", columns, tuple(lines), note)


def _wrk(reader: RunReader, rows: Sequence[Sampled]) -> SummaryTable:
    lines = []
    for row in rows:
        parts = [drop_partial_interval(reader.answered(trial)).rate_rps for trial in row.trials]
        rates = np.concatenate(parts) if sum(map(len, parts)) else np.zeros(1)
        times_ns, often, _ = row.times
        apart = np.abs(times_ns / 1e6 - row.mean_ms)
        deviation_ms = float(np.sqrt(np.average(apart**2, weights=often)))
        cells = (
            _rate(row),
            *map(significant, (row.mean_ms, deviation_ms, *row.percentiles_ms([100]))),
            f"{often[apart <= deviation_ms].sum() / often.sum():.1%}",
            *(f"{value:,.0f}" for value in (rates.mean(), rates.std(), rates.max())),
            f"{row.per_s(row.received_bytes) / 1e6:,.2f}",
        )
        lines.append((row.name, cells))
    return SummaryTable(
        "wrk",
        ("requests/sec", "latency avg", "stdev", "max", "+/- stdev", "req/sec avg", "stdev", "max", "MB/sec"),
        tuple(lines),
        "“+/- stdev” is the share of response times within one standard deviation of the mean. Response times are "
        "never normally distributed, so this share means little. “req/sec” is over the intervals of the load.",
    )


def _jmeter(rows: Sequence[Sampled]) -> SummaryTable:
    percentiles = "median", "90 % line", "95 % line", "99 % line", "min", "max"
    lines = []
    for row in rows:
        times = map(significant, (row.mean_ms, *row.percentiles_ms(JMETER_PERCENTILES)))
        # JMeter's samples and its throughput include failed requests.
        cells = (f"{row.requests:,}", *times, f"{row.failed_share:.2%}", f"{row.per_s(row.requests):,.1f}")
        lines.append((row.name, cells))
    return SummaryTable(
        "JMeter",
        ("samples", "average", *percentiles, "error %", "throughput/sec"),
        tuple(lines),
        "The charts above correspond to JMeter's charts of transactions per second (throughput over time), of "
        "response times over time (percentiles), and of thread states.",
    )


def _failure_points(findings: RunFindings) -> SummaryTable | None:
    """Returns a table with each stack's first load with failures. None without failures, or with a single load."""
    by_stack: dict[tuple[str, str], list[tuple[float, StackFindings]]] = {}
    for point in findings.points:
        place = ", ".join(f"{key} {value}" for key, value in point.coordinates.items())
        for stack in point.stacks:
            if point.amount is not None and stack.arm == "main" and stack.evidence.used:
                by_stack.setdefault((stack.name, place), []).append((point.amount, stack))
    rows = []
    for (name, place), found in by_stack.items():
        if len(found) < 2:
            continue
        found.sort(key=lambda one: one[0])
        first = next((index for index, (_, stack) in enumerate(found) if stack.failed_share), len(found))
        before = [stack for _, stack in found[:first]]
        fastest = max(before, key=lambda stack: stack.measure(THROUGHPUT).value or 0.0, default=None)
        without = "none" if first == 0 else amount(found[first - 1][0])
        failing = [(amount(level), f"{stack.failed_share:.2%}") for level, stack in found[first:]]
        reached = [value_text(fastest.measure(metric)) if fastest else "–" for metric in (THROUGHPUT, MEAN)]
        rows.append((f"{name} ({place})" if place else name, (without, *next(iter(failing), ("none", "–")), *reached)))
    if all(cells[1] == "none" for _, cells in rows):
        return None
    unit = "req/s" if findings.points[0].axis == "rate_rps" else "connections"
    columns = (f"no failures up to ({unit})", f"first failures at ({unit})", "share of failed requests there")
    return SummaryTable(
        "Where requests begin to fail",
        (*columns, "highest req/s without failures", "mean ms at this req/s"),
        tuple(rows),
        "The first failure lies between the last load without failures and the first load with failures.",
    )


def _rate(row: Sampled) -> str:
    """Returns the number of correct responses per second, as a text."""
    return f"{row.per_s(row.requests - row.failed):,.0f}"
