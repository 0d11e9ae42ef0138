"""The numbers behind the charts of one load, in the form of `report/series.py`, so that the same script draws them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from weir.findings import LoadFindings
from weir.model.load import Load, OpenLoad, value_at
from weir.report.series import (
    SHORTEST_COARSE_SLICE_S,
    Array,
    CpuLine,
    Line,
    PointSeries,
    StackSeries,
    coarser,
    latency_distribution,
    line_of,
    machine_lines,
    middles,
    nines_of,
    quantiles_over_time,
    rates_of,
    samples_in,
    slices,
    tier_lines,
)
from weir.store import IntervalRow, RunReader

_CLOCKS = {"response_time_ns": "response time", "service_time_ns": "service time"}
TARGET_COLOUR = 6
_REQUESTS_FOR_P99 = 1200
_FEWEST_SLICES = 6


@dataclass(frozen=True, slots=True)
class LoadSeries:
    """Everything that is drawn of one load, each part on axes of its own."""

    over_time: PointSeries
    """Throughput (with the rate that was asked for), percentiles, CPU."""
    clocks: PointSeries
    """The distribution of each clock."""
    errors: PointSeries
    """Failed requests per second by kind."""
    waiting: PointSeries
    """Requests in flight and waiting for a connection."""


def load_series(reader: RunReader, findings: LoadFindings) -> LoadSeries:
    """The series of a load, finished or not."""
    trial = findings.trial
    rows = reader.intervals(trial.id)
    edges = slices(rows)
    coarse = coarser(edges, _slice_s(rows))
    rate = rates_of(rows, edges, "completed")
    p50, p90, p99 = quantiles_over_time(reader, {trial.id: rows}, coarse)
    answered = _stack(
        "answered",
        0,
        rate_rps=line_of(rate),
        p50_ms=p50,
        p90_ms=p90,
        p99_ms=p99,
        tiers=tier_lines([reader.samples(trial.id)], coarse),
        machine_percent=machine_lines([reader.cpu_samples(trial.id)], coarse, reader.info.placement),
    )
    asked = asked_rate(trial.cell.load)
    stacks = [answered]
    if asked is not None:
        stacks.append(_stack("asked for", TARGET_COLOUR, rate_rps=line_of(np.array([asked(at) for at in middles(edges)]))))
    return LoadSeries(
        over_time=PointSeries(middles(edges), middles(coarse), [], stacks),
        clocks=_clocks(reader, findings),
        errors=PointSeries(middles(edges), [], [], _errors(rows, edges)),
        waiting=PointSeries(middles(edges), [], [], _waiting(rows, edges)),
    )


def _slice_s(rows: Sequence[IntervalRow]) -> float:
    """Long enough for a p99 of a slice (ten samples beyond it), as long as that leaves slices to tell apart."""
    length_s = rows[-1].end_s if rows else 0.0
    completed = sum(row.completed for row in rows)
    wanted_s = _REQUESTS_FOR_P99 * length_s / completed if completed else 0.0
    return max(SHORTEST_COARSE_SLICE_S, min(wanted_s, length_s / _FEWEST_SLICES))


def asked_rate(load: Load) -> Callable[[float], float] | None:
    """The rate that an open load asks for at a moment; None of a load that waits for answers or whose arrivals ask more than once."""
    if not isinstance(load, OpenLoad) or load.session is not None:
        return None
    return lambda at_s: value_at(load.rate_rps, at_s)


def _errors(rows: Sequence[IntervalRow], edges: Array) -> list[StackSeries]:
    kinds = sorted({kind for row in rows for kind, count in row.errors.items() if count})
    counted, _ = np.histogram([_middle(row) for row in rows], edges, weights=[row.end_s - row.start_s for row in rows])
    series = []
    for colour, kind in enumerate(kinds):
        counts, _ = np.histogram([_middle(row) for row in rows], edges, weights=[row.errors.get(kind, 0) for row in rows])
        with np.errstate(divide="ignore", invalid="ignore"):
            series.append(_stack(kind, colour + 1, rate_rps=line_of(np.where(counted > 0, counts / counted, np.nan))))
    return series


def _waiting(rows: Sequence[IntervalRow], edges: Array) -> list[StackSeries]:
    series = []
    for colour, (name, field) in enumerate((("in flight", "in_flight"), ("queued", "queued"))):
        if field == "queued" and not any(row.queued for row in rows):
            continue
        at = np.searchsorted(edges, [_middle(row) for row in rows], side="right") - 1
        highest = np.full(len(edges) - 1, np.nan)
        for slot, row in zip(at, rows, strict=True):
            if 0 <= slot < len(highest):
                highest[slot] = np.fmax(highest[slot], getattr(row, field))
        series.append(_stack(name, colour, rate_rps=line_of(highest)))
    return series


def _clocks(reader: RunReader, findings: LoadFindings) -> PointSeries:
    known = {name: [data] for name, data in reader.histograms(findings.trial.id).items()}
    if not known:
        known = {"response_time_ns": reader.interval_histograms(findings.trial.id)}
    # A user's request is meant to start when the user is free: in a closed loop the two clocks are one line.
    names = ("response_time_ns", "service_time_ns") if isinstance(findings.trial.cell.load, OpenLoad) else ("response_time_ns",)
    parts = {_CLOCKS[key]: known[key] for key in names if key in known}
    nines = nines_of([samples_in(clock) for clock in parts.values()])
    stacks = [_stack(name, colour, distribution_ms=latency_distribution(part, nines)) for colour, (name, part) in enumerate(parts.items())]
    return PointSeries([], [], [round(value, 4) for value in nines], stacks)


def _stack(
    name: str,
    colour: int,
    *,
    rate_rps: Line | None = None,
    p50_ms: Line | None = None,
    p90_ms: Line | None = None,
    p99_ms: Line | None = None,
    tiers: list[CpuLine] | None = None,
    machine_percent: list[CpuLine] | None = None,
    distribution_ms: Line | None = None,
) -> StackSeries:
    return StackSeries(
        label=name,
        name=name,
        colour=colour,
        trials=1,
        rate_rps=rate_rps or [],
        rate_low_rps=[],
        rate_high_rps=[],
        failed_rps=[],
        p50_ms=p50_ms or [],
        p90_ms=p90_ms or [],
        p99_ms=p99_ms or [],
        tiers=tiers or [],
        machine_percent=machine_percent or [],
        distribution_ms=distribution_ms or [],
    )


def _middle(row: IntervalRow) -> float:
    return (row.start_s + row.end_s) / 2
