"""Shows the progress of a run: a line for each step, and at a terminal the load of the current trial."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from weir.cli.load_summary import microseconds
from weir.cli.output import say
from weir.cli.report import interim_answer
from weir.cli.terminal_progress import LiveView
from weir.lab.observer import RunObserver, TrialStart
from weir.model.load import Request
from weir.model.load_records import Interval, LoadStarted
from weir.model.run_types import TrialResult
from weir.parsing import format_duration
from weir.study.study import PlannedCell


class ProgressLines(RunObserver):
    """An observer that prints a run's progress. With the run file `answers_of`, also prints interim answers."""

    def __init__(self, answers_of: Path | None = None) -> None:
        self._answers_of = answers_of

    def on_step(self, text: str) -> None:
        say(f"weir: {text}")

    def on_trial_start(self, trial: TrialStart) -> None:
        total = "" if trial.total is None else f" of {trial.total}"
        left = "" if trial.left_s is None else f", about {format_duration(trial.left_s)} left"
        cell = trial.planned.cell
        say(f"weir: trial {trial.number}{total}, block {trial.block}: {cell.stack_label}, {cell.point_label}{left}")

    def on_trial_end(self, planned: PlannedCell, result: TrialResult) -> None:
        if result.summary is not None:
            window, times = result.window, result.summary.response_time_us
            if window is not None and not window.is_whole:
                extended = ", after an extension" if window.extended else ""
                steady = f"steady from {window.start_s:.1f} s of {window.end_s:.1f} s{extended}"
                say(f"      {steady}; the earlier time is warm-up")
            p50, p99 = microseconds(times.p50), microseconds(times.p99)
            say(f"      {result.summary.throughput_rps:,.0f} req/s, p50 {p50}, p99 {p99}")
        for reason in result.verdict.reasons:
            say(f"      {'note' if reason.validity == 'valid' else reason.validity}: {reason.text}")

    def on_answer(self, blocks: int, labels: Sequence[str]) -> None:
        if self._answers_of is not None:
            say(f"weir: interim answer, after {blocks} block{'s' if blocks > 1 else ''} of {', '.join(labels)}:")
            say(interim_answer(self._answers_of))


class RunView(RunObserver):
    """An observer that shows the current trial's load at a terminal. The caller must call `close`. The main thread
    calls the methods for trials. The engine's reader thread calls the methods for the load."""

    def __init__(self) -> None:
        self._planned: PlannedCell | None = None
        self._view: LiveView | None = None

    def on_trial_start(self, trial: TrialStart) -> None:
        self._planned = trial.planned

    def on_start(self, started: LoadStarted) -> None:
        if (planned := self._planned) is None:
            return
        named = Request("GET", f"{planned.cell.stack_label}, {planned.cell.point_label}")
        plan = planned.plan(named, targets=(), duration_s=planned.duration_s, interval_s=1.0, cpus=())
        self._view = LiveView(replace(plan, threads=max(1, started.threads)))
        self._view.on_start(started)

    def on_interval(self, interval: Interval) -> None:
        if self._view is not None:
            self._view.on_interval(interval)

    def on_trial_end(self, planned: PlannedCell, result: TrialResult) -> None:
        self.close()

    def close(self) -> None:
        """Removes the lines from the terminal. A second call does nothing."""
        if self._view is not None:
            self._view.close()
            self._view = None
