"""One load without a study, from its run file: what it came to, and of one that was killed what it had seen so far."""

import json
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any, Literal

from weir.model import histogram
from weir.model.errors import UsageError
from weir.model.merged import times_of
from weir.model.records import (
    ByteCounts,
    ErrorCounts,
    GeneratorUse,
    LoadSummary,
    Quantiles,
    RequestCounts,
    Verdict,
)
from weir.model.run import RunInfo, Trial, TrialEvent
from weir.store import RunReader

_NOTHING = Quantiles()


@dataclass(frozen=True, slots=True)
class LoadFindings:
    """What one load came to."""

    info: RunInfo
    trial: Trial
    summary: LoadSummary
    """Of an unfinished load what its intervals give: response times and counts; its generator has no version."""
    plan: dict[str, Any]
    finished: bool
    ended: Literal["complete", "interrupted"] | None
    events: tuple[TrialEvent, ...]

    def to_json(self) -> dict[str, Any]:
        """The JSON of one load, as `weir load --json` writes it, with how it was made."""
        value = self.summary.model_dump(by_alias=True)
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


def of_load(reader: RunReader) -> LoadFindings:
    """What the load in the run file came to. The same file gives the same findings anywhere.

    Raises:
        UsageError: the run file holds no load.
    """
    finished = next(iter(reader.trials()), None)
    trial = finished or reader.unfinished()
    if trial is None:
        raise UsageError(f"{reader.path}: found no load in it, expected what weir load --out kept")
    plan: dict[str, Any] = json.loads(reader.info.study_text)
    return LoadFindings(
        info=reader.info,
        trial=trial,
        summary=trial.result.summary or _so_far(reader, trial, plan),
        plan=plan,
        finished=finished is not None,
        ended=reader.ended,
        events=tuple(reader.events(trial.id)),
    )


def _so_far(reader: RunReader, trial: Trial, plan: dict[str, Any]) -> LoadSummary:
    """The summary of what the intervals of an unfinished load hold."""
    rows = reader.intervals(trial.id)
    duration_s = rows[-1].end_s if rows else 0.0
    completed = sum(row.completed for row in rows)
    errors: Counter[str] = Counter()
    for row in rows:
        errors.update(row.errors)
    in_flight = rows[-1].in_flight if rows else 0
    due, sent, ok, failed = (sum(getattr(row, name) for row in rows) for name in ("due", "sent", "ok", "failed"))
    reason = (
        f"unfinished: the load ended without a result or still runs; what its first {duration_s:.1f} s gave is shown, "
        "without the clocks and the checks that are computed at the end"
    )
    return LoadSummary(
        schema_number=1,
        target=reader.info.title,
        duration_s=duration_s,
        requests=RequestCounts(
            intended=due,
            sent=sent,
            completed=completed,
            ok=ok,
            failed=failed,
            unanswered=in_flight,
            unsent=max(0, due - ok - failed - in_flight),
        ),
        throughput_rps=completed / duration_s if duration_s else 0.0,
        status={},
        errors=ErrorCounts(**{kind: count for kind, count in errors.items() if kind in ErrorCounts.model_fields}),
        response_time_us=times_of(
            histogram.merge(reader.interval_histograms(trial.id)), max((row.max_us for row in rows if row.max_us is not None), default=None)
        ),
        service_time_us=_NOTHING,
        schedule_lag_us=_NOTHING,
        connect_time_us=_NOTHING,
        time_to_first_byte_us=_NOTHING,
        bytes=ByteCounts(sent=sum(row.bytes_sent for row in rows), received=sum(row.bytes_received for row in rows)),
        generator=GeneratorUse(version="", cpu_fraction=0.0, peak_rss_bytes=0, threads=plan.get("threads", 1), cpus=plan.get("cpus", [])),
        verdict=Verdict(validity="suspect", reasons=[reason]),
    )
