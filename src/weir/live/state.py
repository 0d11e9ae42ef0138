"""What the page shows: facts and records in, JSON values out. Pure: it is told the time.

`whole` is everything, for a viewer who comes; `news` what has changed since it was last asked, for all of them. Points carry the number of
the first of them and stand in place of all from there on, so that news that a viewer has already change nothing.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any

from weir.live.facts import About, Ended, Fact, LoadBegun, Logs, Step, Totals, TrialBegun, TrialEnded
from weir.live.points import Points
from weir.live.processes import Processes, cpu_by_tier
from weir.model.records import Interval, Sample

SCHEMA = 1
MOST_STEPS = 100
MOST_TRIALS = 300


class State:
    """Of a run, a load, or the loads that a form starts one after the other."""

    def __init__(self, about: About, controls: Sequence[str] = (), began_s: float = 0.0) -> None:
        self._about = about
        self._controls = list(controls)
        self._began_s = began_s
        self._steps: deque[dict[str, Any]] = deque(maxlen=MOST_STEPS)
        self._trials: deque[dict[str, Any]] = deque(maxlen=MOST_TRIALS)
        self._lists_changed = False
        self._lengths_s: list[float] = []
        self._trial: TrialBegun | None = None
        self._trial_began_s = 0.0
        self._phase = "preparing"
        self._ended: str | None = None
        self._points = Points()
        self._processes = Processes()
        self._start_ns: int | None = None
        self._last: Interval | None = None
        self.logs = Logs({})

    @property
    def number(self) -> int:
        """Of the trial that goes on, or of the last one."""
        return 0 if self._trial is None else self._trial.number

    @property
    def phase(self) -> str:
        """`preparing`, `starting`, `load`, `between` or `ended`."""
        return self._phase

    def learn(self, fact: Fact, at_s: float) -> None:
        """A fact, and when it was told."""
        match fact:
            case TrialBegun():
                self._trial, self._trial_began_s, self._phase = fact, at_s, "starting"
                self._points, self._processes = Points(), Processes()
                self._start_ns = self._last = None
                self.logs = Logs({})
            case Step():
                self._steps.append({"at_s": round(at_s - self._began_s, 1), "text": fact.text})
                self._lists_changed = True
            case Logs():
                self.logs = fact
            case LoadBegun():
                self._start_ns, self._phase = fact.started.start_monotonic_ns, "load"
            case TrialEnded():
                self._phase = "between"
                self._lengths_s.append(at_s - self._trial_began_s)
                self._trials.append(self._row(fact))
                self._lists_changed = True
            case Ended():
                self._phase, self._ended = "ended", fact.text

    def take(self, record: Interval | Sample) -> None:
        """What the generator saw, or a reading of the server's processes."""
        if isinstance(record, Interval):
            self._last = record
            self._points.take_interval(record)
            return
        before = self._processes.take(record)
        if before is not None and self._start_ns is not None:
            from_s, to_s = ((t_ns - self._start_ns) / 1e9 for t_ns in (before.t_ns, record.t_ns))
            self._points.take_cpu(from_s, to_s, cpu_by_tier(before, record))

    def whole(self, totals: Totals, now_s: float) -> dict[str, Any]:
        """Everything."""
        return {
            **self._always("whole", totals, now_s),
            "about": {"title": self._about.title, "question": self._about.question, "has_trials": self._about.has_trials},
            "controls": self._controls,
            "points": self._points.columns(),
            "steps": list(self._steps),
            "trials": list(self._trials),
        }

    def news(self, totals: Totals, now_s: float) -> dict[str, Any]:
        """What has changed since this was last asked."""
        lists = {"steps": list(self._steps), "trials": list(self._trials)} if self._lists_changed else {}
        self._lists_changed = False
        return {**self._always("news", totals, now_s), "points": self._points.changes(), **lists}

    def _always(self, kind: str, totals: Totals, now_s: float) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "kind": kind,
            "phase": self._phase,
            "ended": self._ended,
            "elapsed_s": round(now_s - self._began_s, 1),
            "left_s": self._left_s(now_s),
            "trial": None if self._trial is None else self._trial_now(self._trial),
            "now": self._now(totals),
            "processes": self._processes.rows(),
            "logs": sorted(self.logs.files),
        }

    def _trial_now(self, trial: TrialBegun) -> dict[str, Any]:
        return {
            "number": trial.number,
            "total": trial.total,
            "block": trial.block,
            "blocks": trial.blocks,
            "name": trial.name,
            "point": trial.point,
            "duration_s": trial.duration_s,
            "requests": trial.requests,
            "load_s": None if self._last is None else round(self._last.end_s, 1),
        }

    def _now(self, totals: Totals) -> dict[str, Any] | None:
        last = self._last
        if last is None:
            return None
        recent = self._points.now()
        return {
            "rate_rps": recent.rate(recent.completed),
            **recent.percentiles(),
            "in_flight": last.in_flight,
            "queued": last.queued,
            "oldest_ms": round(last.oldest_age_us / 1e3, 3),
            "answered": totals.answered,
            "failed": totals.failed,
            "errors": dict(totals.errors),
        }

    def _left_s(self, now_s: float) -> float | None:
        if self._trial is None or self._phase == "ended":
            return None
        in_trial_s = None if self._phase == "between" else now_s - self._trial_began_s
        left_s = time_left_s(self._trial, self._lengths_s, in_trial_s)
        return None if left_s is None else round(left_s)

    def _row(self, ended: TrialEnded) -> dict[str, Any]:
        trial = self._trial
        return {
            "number": self.number,
            "block": None if trial is None else trial.block,
            "name": "" if trial is None else trial.name,
            "point": "" if trial is None else trial.point,
            "validity": ended.validity,
            "reasons": list(ended.reasons),
            "throughput_rps": ended.throughput_rps,
            "p50_ms": None if ended.p50_us is None else ended.p50_us / 1e3,
            "p99_ms": None if ended.p99_us is None else ended.p99_us / 1e3,
            "failed": ended.failed,
            "run": ended.run,
        }


def time_left_s(trial: TrialBegun, lengths_s: Sequence[float], in_trial_s: float | None) -> float | None:
    """How long a run still takes: its trials as long as they were on average so far, the first one as it was planned.

    Args:
        trial: the trial that goes on, or has just ended.
        lengths_s: what each trial so far has taken.
        in_trial_s: how long it goes on; None where it has ended.

    Returns:
        None where nobody knows how many trials there are or how long they take.

    >>> time_left_s(TrialBegun(number=2, total=4, name="a", point="b"), [10.0], 4.0)
    26.0
    """
    each_s = sum(lengths_s) / len(lengths_s) if lengths_s else trial.planned_s
    if trial.total is None or each_s is None:
        return None
    after_s = max(0, trial.total - trial.number) * each_s
    return after_s if in_trial_s is None else after_s + max(0.0, each_s - in_trial_s)
