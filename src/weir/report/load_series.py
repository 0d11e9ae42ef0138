"""The numbers behind the charts of one load, in the form of `report/series.py`, so that the same script draws them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from weir.findings import LoadFindings
from weir.model.histograms import samples_of
from weir.model.load import Load, OpenLoad, value_at
from weir.report.lines import Line, coarser, line_of, middles, slices
from weir.report.process_series import SHORTEST_THREADS_SLICE_S, machine_lines, memory_lines, thread_lines, tier_lines, traffic_lines
from weir.report.series import (
    SHORTEST_COARSE_SLICE_S,
    PointSeries,
    StackSeries,
    error_lines,
    latency_distribution,
    nines_of,
    quantiles_over_time,
    rates_of,
    waiting_lines,
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
    """Throughput (with the rate that was asked for), percentiles, failed and waiting requests, what the server used."""
    clocks: PointSeries
    """The distribution of each clock."""

    @property
    def answered(self) -> StackSeries:
        """What was measured; beside it there may be what was asked for."""
        return self.over_time.stacks[0]


def load_series(reader: RunReader, findings: LoadFindings) -> LoadSeries:
    """The series of a load, finished or not."""
    trial = findings.trial
    rows = reader.intervals(trial.id)
    edges = slices(rows)
    coarse = coarser(edges, _slice_s(rows))
    rate = rates_of(rows, edges, "completed")
    p50, p90, p99 = quantiles_over_time(reader, {trial.id: rows}, coarse)
    threads = coarser(edges, max(_slice_s(rows), SHORTEST_THREADS_SLICE_S))
    samples = [reader.use(trial.id)]
    answered = replace(
        _stack("answered", 0, rate_rps=line_of(rate)),
        p50_ms=p50,
        p90_ms=p90,
        p99_ms=p99,
        tiers=tier_lines(samples, coarse),
        machine_percent=machine_lines([reader.cpu_samples(trial.id)], coarse, reader.info.placement),
        waiting=waiting_lines([rows], edges),
        errors_rps=error_lines([rows], edges),
        memory_mb=memory_lines(samples, coarse),
        traffic_mb_s=traffic_lines(samples, [reader.network_samples(trial.id)], coarse),
        threads=thread_lines([reader.thread_states(trial.id)], threads),
    )
    asked = asked_rate(trial.cell.load)
    stacks = [answered]
    if asked is not None:
        stacks.append(_stack("asked for", TARGET_COLOUR, rate_rps=line_of(np.array([asked(at) for at in middles(edges)]))))
    return LoadSeries(
        over_time=PointSeries(middles(edges), middles(coarse), [], stacks, middles(threads)),
        clocks=_clocks(reader, findings),
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


def _clocks(reader: RunReader, findings: LoadFindings) -> PointSeries:
    known = {name: [data] for name, data in reader.histograms(findings.trial.id).items()}
    if not known:
        known = {"response_time_ns": reader.interval_histograms(findings.trial.id)}
    # A user's request is meant to start when the user is free: in a closed loop the two clocks are one line.
    names = ("response_time_ns", "service_time_ns") if isinstance(findings.trial.cell.load, OpenLoad) else ("response_time_ns",)
    parts = {_CLOCKS[key]: samples_of(known[key]) for key in names if key in known}
    nines = nines_of(list(parts.values()))
    stacks = [_stack(name, colour, distribution_ms=latency_distribution(part, nines)) for colour, (name, part) in enumerate(parts.items())]
    return PointSeries([], [], [round(value, 4) for value in nines], stacks)


def _stack(name: str, colour: int, *, rate_rps: Line | None = None, distribution_ms: Line | None = None) -> StackSeries:
    """A line that has nothing but this."""
    nothing: Line = []
    return StackSeries(
        name, name, colour, 1, rate_rps or [], nothing, nothing, nothing, nothing, nothing, nothing, [], [], distribution_ms or []
    )
