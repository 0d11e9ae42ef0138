"""A run as the tools of the published studies print one: hey's and wrk's summaries, JMeter's aggregate report, the load at which requests
begin to fail. Response times are in milliseconds, of all used trials of a stack together."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weir.findings import Point, RunFindings, StackFindings
from weir.findings.metrics import MEAN, THROUGHPUT
from weir.findings.variation import whole_intervals
from weir.findings.words import amount, significant
from weir.report.exports import Sampled
from weir.report.numbers import value_text
from weir.store import RunReader

_HEY_PERCENTILES = (10, 25, 50, 75, 90, 95, 99)


@dataclass(frozen=True, slots=True)
class Reading:
    """A table."""

    title: str
    columns: tuple[str, ...]
    """Of what stands behind the stack's name."""
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    """A name, and a text for each column."""
    note: str


def readings_of(reader: RunReader, findings: RunFindings, sampled: Sequence[Sampled]) -> list[Reading]:
    """The tables; none where nothing was answered.

    Args:
        reader: the run.
        findings: of it.
        sampled: its requests by stack and point (`exports.of_run`).
    """
    answered = [row for row in sampled if row.answered]
    failing = _failure_points(findings)
    tables = [_hey(answered), _wrk(reader, answered), _jmeter(answered)] if answered else []
    return [failing, *tables] if failing is not None else tables


def _hey(rows: Sequence[Sampled]) -> Reading:
    return Reading(
        "hey",
        ("requests/sec", "average", "fastest", "slowest", *(f"{percent} % in" for percent in _HEY_PERCENTILES)),
        tuple(
            (
                row.name,
                (
                    f"{_rate(row):,.0f}",
                    *(significant(value) for value in (row.mean_ms, row.percentile_ms(0), row.percentile_ms(100))),
                    *(significant(row.percentile_ms(percent)) for percent in _HEY_PERCENTILES),
                ),
            )
            for row in rows
        ),
        "hey counts a response time from the moment a request was sent; in a closed loop that is when it was due.",
    )


def _wrk(reader: RunReader, rows: Sequence[Sampled]) -> Reading:
    lines = []
    for row in rows:
        rates = [rate for trial in row.trials for rate in whole_intervals(reader.answered(trial)).rate_rps.tolist()] or [0.0]
        deviation, within = _spread(row)
        mean = sum(rates) / len(rates)
        about = math.sqrt(sum((rate - mean) ** 2 for rate in rates) / len(rates))
        cells = (
            f"{_rate(row):,.0f}", significant(row.mean_ms), significant(deviation), significant(row.percentile_ms(100)), f"{within:.1%}",
            f"{mean:,.0f}", f"{about:,.0f}", f"{max(rates):,.0f}", f"{row.received_bytes / max(row.length_s, 1e-9) / 1e6:,.2f}",
        )  # fmt: skip
        lines.append((row.name, cells))
    return Reading(
        "wrk",
        ("requests/sec", "latency avg", "stdev", "max", "+/- stdev", "req/sec avg", "stdev", "max", "MB/sec"),
        tuple(lines),
        "Latency's +/- stdev is the share within one standard deviation of the mean: for response times, which are never normally "
        "distributed, it says little. Req/sec is over the intervals of the load.",
    )


def _jmeter(rows: Sequence[Sampled]) -> Reading:
    return Reading(
        "JMeter",
        ("samples", "average", "median", "90 % line", "95 % line", "99 % line", "min", "max", "error %", "throughput/sec"),
        tuple(
            (
                row.name,
                (
                    f"{row.requests:,}",
                    significant(row.mean_ms),
                    *(significant(row.percentile_ms(percent)) for percent in (50, 90, 95, 99, 0, 100)),
                    f"{row.failed / row.requests if row.requests else 0:.2%}",
                    # Samples are all requests, failed ones too.
                    f"{row.requests / max(row.length_s, 1e-9):,.1f}",
                ),
            )
            for row in rows
        ),
        "Its charts are above: transactions per second is throughput over time, response times over time are the percentiles, and thread "
        "states are what threads were doing.",
    )


def _failure_points(findings: RunFindings) -> Reading | None:
    """Where each stack begins to fail, along the amount of load; None of a run in which nothing failed or that has one load only."""
    by_stack: dict[tuple[str, str], list[tuple[Point, StackFindings]]] = {}
    for point in findings.points:
        if point.amount is not None:
            place = ", ".join(f"{key} {value}" for key, value in point.coordinates.items())
            for stack in point.stacks:
                if _is_shown(stack):
                    by_stack.setdefault((stack.name, place), []).append((point, stack))
    rows = []
    for (name, place), found in by_stack.items():
        found.sort(key=lambda one: one[0].amount or 0.0)
        if len(found) < 2:
            continue
        first = next((index for index, (_, stack) in enumerate(found) if stack.failed_share), len(found))
        before = [stack for _, stack in found[:first]]
        fastest = max(before, key=lambda stack: stack.measure(THROUGHPUT).value or 0.0, default=None)
        failing = found[first] if first < len(found) else None
        rows.append(
            (
                f"{name} ({place})" if place else name,
                (
                    "none" if first == 0 else amount(found[first - 1][0].amount or 0.0),
                    "none" if failing is None else amount(failing[0].amount or 0.0),
                    "–" if failing is None else f"{failing[1].failed_share:.2%}",
                    "–" if fastest is None else value_text(fastest.measure(THROUGHPUT)),
                    "–" if fastest is None else value_text(fastest.measure(MEAN)),
                ),
            )
        )
    if not any(cells[1] != "none" for _, cells in rows):
        return None
    unit = "req/s" if findings.points[0].axis == "rate_rps" else "connections"
    return Reading(
        "Where requests begin to fail",
        (f"{unit} without a failure, up to", "first failures at", "share failed there", "highest req/s before", "mean ms at that"),
        tuple(rows),
        "Of the loads that were measured: the first failure lies somewhere between the two.",
    )


def _is_shown(stack: StackFindings) -> bool:
    return stack.arm == "main" and bool(stack.evidence.used)


def _spread(row: Sampled) -> tuple[float, float]:
    """Standard deviation in milliseconds, and the share of samples within one of the mean."""
    apart = np.abs(row.times_ns / 1e6 - row.mean_ms)
    deviation = float(np.sqrt(np.average(apart**2, weights=row.often)))
    return deviation, float(row.often[apart <= deviation].sum() / row.often.sum())


def _rate(row: Sampled) -> float:
    """Right answers a second."""
    return (row.requests - row.failed) / max(row.length_s, 1e-9)
