"""The findings of a single load: a run with one cell and one trial, and without comparisons."""

import json
from collections import Counter
from dataclasses import asdict, dataclass, replace
from typing import Any

from weir.findings.formatting import counted, milliseconds, significant
from weir.findings.types import RunFindings
from weir.model.hdr_batch import merge
from weir.model.load_records import (
    ByteCounts,
    ErrorCounts,
    GeneratorUse,
    LoadSummary,
    Quantiles,
    RequestCounts,
    Verdict,
)
from weir.model.run_types import RunInfo, Trial, TrialEvent
from weir.model.verdict import TrialVerdict
from weir.store import RunReader

SERVER = "the server"
"""The name of the loaded server in sentences and charts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadFindings(RunFindings):
    """The findings of a run without comparisons, and the load's summary, plan and events."""

    info: RunInfo
    trial: Trial
    summary: LoadSummary
    """The load's summary. For an unfinished load, weir computes the summary from the intervals."""
    basis: str
    """A text with the load, its duration, and its numbers of responses and failures."""
    plan: dict[str, Any]
    finished: bool
    events: tuple[TrialEvent, ...]

    def to_json(self) -> dict[str, Any]:
        """Returns the JSON of `weir load --json` with one more key, `run`: command, environment, plan and events."""
        value = self.summary.to_json()
        resources = self.trial.result.resources
        if resources is not None:
            value["server"] = asdict(resources)
        value["run"] = {
            "finished": self.finished,
            "ended": self.ended,
            "command": self.info.command,
            "started_unix_ns": self.info.started_unix_ns,
            "weir_version": self.info.weir_version,
            "environment": self.info.environment,
            "plan": self.plan,
            "events": [{"t_s": event.t_s, "kind": event.kind, "detail": event.detail} for event in self.events],
        }
        return value


def trials_to_show(reader: RunReader) -> list[Trial]:
    """Returns the finished trials of a run. For a single load, returns the only trial, even if unfinished or invalid.
    That trial counts as valid, so that reports show it. The load's summary has the real verdict."""
    trials = reader.trials()
    if not reader.info.is_load:
        return trials
    trial = next(iter(trials), None) or reader.unfinished()
    if trial is None:
        return []
    summary = trial.result.summary or _summarize_intervals(reader, trial)
    return [replace(trial, result=replace(trial.result, summary=summary, verdict=TrialVerdict()))]


def describe_result(summary: LoadSummary) -> str:
    """Describes the result of a load: the throughput, and the median and 99th percentile of the response time."""
    times = summary.response_time_us
    rate = f"{significant(summary.throughput_rps, 4)} requests per second"
    if times.p50 is None or times.p99 is None:
        return rate if summary.requests.completed else f"{rate}: no response arrived"
    return (
        f"{rate}; half of the responses within {milliseconds(times.p50)} ms, 99 % within {milliseconds(times.p99)} ms"
    )


def describe_basis(trial: Trial, summary: LoadSummary) -> str:
    """Describes the basis of a load's result: the load, its duration, and its numbers of responses and failures."""
    answered, failed = counted(summary.requests.completed, "request"), summary.requests.failed
    kinds = [f"{kind} {count:,}" for kind, count in summary.errors.occurred.items()]
    failures = f"{failed:,} failed ({', '.join(kinds)})" if kinds else "none failed"
    return f"{trial.cell.load.label}, {summary.duration_s:.1f}\u00a0s: {answered} answered, {failures}"


def _summarize_intervals(reader: RunReader, trial: Trial) -> LoadSummary:
    """Computes the summary of an unfinished load from its intervals."""
    plan = json.loads(reader.info.study_text)
    rows = reader.intervals(trial.id)
    duration_s = rows[-1].end_s if rows else 0.0
    completed = sum(row.completed for row in rows)
    errors = sum((Counter(row.errors) for row in rows), Counter[str]())
    in_flight = rows[-1].in_flight if rows else 0
    due, sent, ok, failed = (sum(getattr(row, name) for row in rows) for name in ("due", "sent", "ok", "failed"))
    max_us = max((row.max_us for row in rows if row.max_us is not None), default=None)
    counts = merge(reader.interval_histograms(trial.id)).counts
    reason = (
        f"unfinished: the load was killed or still runs. The results cover the first {duration_s:.1f} s, "
        "without the clocks and checks that weir computes at the end"
    )
    return LoadSummary.from_figures(
        RequestCounts(
            intended=due,
            sent=sent,
            completed=completed,
            ok=ok,
            failed=failed,
            unanswered=in_flight,
            unsent=max(0, due - ok - failed - in_flight),
        ),
        duration_s,
        target=reader.info.title,
        errors=ErrorCounts(**{kind: count for kind, count in errors.items() if kind in ErrorCounts.names()}),
        response_time_us=Quantiles.from_counts(counts, max_us),
        bytes=ByteCounts(sent=sum(row.bytes_sent for row in rows), received=sum(row.bytes_received for row in rows)),
        generator=GeneratorUse(
            version="", cpu_fraction=0.0, peak_rss_bytes=0, threads=plan.get("threads", 1), cpus=plan.get("cpus", [])
        ),
        verdict=Verdict(validity="suspect", reasons=[reason]),
    )
