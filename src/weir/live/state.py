"""The page's state: takes facts and records, and returns JSON values. Pure: the caller passes the time. `snapshot`
returns the whole state for a new viewer. `changes` returns the changes since the last call, for all viewers. An update
replaces the chart points from the index `first`, so a viewer may receive a point twice without harm."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from weir.live.page_facts import PageInfo, Totals, TrialEnded, TrialStarted
from weir.live.processes import Processes, cpu_by_tier
from weir.live.time_buckets import Points
from weir.model.load_records import Interval, LoadStarted
from weir.model.observer_records import Sample

SCHEMA = 1
MOST_STEPS = 100
MOST_TRIALS = 300


class PageState:
    """The state of one live page. The page shows a run, a load, or several loads that its form starts one after another."""

    def __init__(self, about: PageInfo, controls: Sequence[str] = (), began_s: float = 0.0) -> None:
        self._about = about
        self._controls = list(controls)
        self._began_s = began_s
        self._steps: deque[dict[str, Any]] = deque(maxlen=MOST_STEPS)
        self._trials: deque[dict[str, Any]] = deque(maxlen=MOST_TRIALS)
        self._lists_changed = False
        self._lengths_s: list[float] = []
        self._trial: TrialStarted | None = None
        self._trial_began_s = 0.0
        self.phase = "preparing"
        """The current phase: `preparing`, `starting`, `load`, `between` (trials) or `ended`."""
        self._ended: str | None = None
        self._points = Points()
        self._processes = Processes()
        self._start_ns: int | None = None
        self._last: Interval | None = None
        self.logs: Mapping[str, Path] = {}

    @property
    def number(self) -> int:
        return 0 if self._trial is None else self._trial.number

    def begin_trial(self, trial: TrialStarted, at_s: float) -> None:
        self._trial, self._trial_began_s, self.phase = trial, at_s, "starting"
        self._points, self._processes = Points(), Processes()
        self._start_ns = self._last = None
        self.logs = {}

    def add_step(self, text: str, at_s: float) -> None:
        self._steps.append({"at_s": round(at_s - self._began_s, 1), "text": text})
        self._lists_changed = True

    def show_logs(self, files: Mapping[str, Path], _: float) -> None:
        self.logs = files

    def start_load(self, started: LoadStarted, _: float) -> None:
        self._start_ns, self.phase = started.start_monotonic_ns, "load"

    def end_trial(self, ended: TrialEnded, at_s: float) -> None:
        self.phase = "between"
        self._lengths_s.append(at_s - self._trial_began_s)
        trial = self._trial or TrialStarted(number=0, name="", point="")
        result = asdict(ended)
        for name in ("p50", "p99"):
            time_us = result.pop(f"{name}_us")
            result[f"{name}_ms"] = None if time_us is None else time_us / 1e3
        place = {"number": trial.number, "block": trial.block, "name": trial.name, "point": trial.point}
        self._trials.append(place | result)
        self._lists_changed = True

    def end(self, text: str, _: float) -> None:
        self.phase, self._ended = "ended", text

    def add_record(self, record: Interval | Sample) -> None:
        if isinstance(record, Interval):
            self._last = record
            self._points.take_interval(record)
            return
        before = self._processes.add_sample(record)
        if before is not None and self._start_ns is not None:
            from_s, to_s = ((t_ns - self._start_ns) / 1e9 for t_ns in (before.t_ns, record.t_ns))
            self._points.take_cpu(from_s, to_s, cpu_by_tier(before, record))

    def snapshot(self, totals: Totals, now_s: float) -> dict[str, Any]:
        lists = {"controls": self._controls, "steps": list(self._steps), "trials": list(self._trials)}
        page = {"about": asdict(self._about), "points": self._points.columns()}
        return {**self._always("whole", totals, now_s), **page, **lists}

    def changes(self, totals: Totals, now_s: float) -> dict[str, Any]:
        """Returns the changes since the last call of this method."""
        lists = {"steps": list(self._steps), "trials": list(self._trials)} if self._lists_changed else {}
        self._lists_changed = False
        return {**self._always("news", totals, now_s), "points": self._points.changes(), **lists}

    def _always(self, kind: str, totals: Totals, now_s: float) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "kind": kind,
            "phase": self.phase,
            "ended": self._ended,
            "elapsed_s": round(now_s - self._began_s, 1),
            "left_s": self._left_s(now_s),
            "trial": None if self._trial is None else self._trial_now(self._trial),
            "now": None if self._last is None else self._now(self._last, totals),
            "processes": self._processes.build_rows(),
            "logs": sorted(self.logs),
        }

    def _trial_now(self, trial: TrialStarted) -> dict[str, Any]:
        values = asdict(trial)
        del values["planned_s"]
        return {**values, "load_s": None if self._last is None else round(self._last.end_s, 1)}

    def _now(self, last: Interval, totals: Totals) -> dict[str, Any]:
        recent = self._points.now()
        waiting = {"in_flight": last.in_flight, "queued": last.queued, "oldest_ms": round(last.oldest_age_us / 1e3, 3)}
        return {"rate_rps": recent.rate(recent.completed), **recent.percentiles(), **waiting, **asdict(totals)}

    def _left_s(self, now_s: float) -> float | None:
        if self._trial is None or self.phase == "ended":
            return None
        in_trial_s = None if self.phase == "between" else now_s - self._trial_began_s
        left_s = time_left_s(self._trial, self._lengths_s, in_trial_s)
        return None if left_s is None else round(left_s)


def time_left_s(trial: TrialStarted, lengths_s: Sequence[float], in_trial_s: float | None) -> float | None:
    """Estimates the remaining seconds of a run from the mean length of past trials, or else from the planned length.
    `in_trial_s`: the time since the start of the current trial; None after the trial's end. Returns None if the number
    or the length of the trials is unknown.

    >>> time_left_s(TrialStarted(number=2, total=4, name="a", point="b"), [10.0], 4.0)
    26.0
    """
    each_s = sum(lengths_s) / len(lengths_s) if lengths_s else trial.planned_s
    if trial.total is None or each_s is None:
        return None
    after_s = max(0, trial.total - trial.number) * each_s
    return after_s if in_trial_s is None else after_s + max(0.0, each_s - in_trial_s)
