"""Shows the progress of `weir compare`: at a terminal one line that weir redraws, elsewhere a line for each block."""

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from weir.lab.observer import RunObserver, TrialStart
from weir.model.records import Interval
from weir.model.run_types import TrialResult
from weir.store import RunReader
from weir.study.study import PlannedCell

_REFRESH_S = 0.25
_MAX_COLUMNS = 100


class CompareProgress(RunObserver):
    """The progress display of a comparison: current side, rate and answer so far. The caller must call `close`."""

    def __init__(self, file: Path, budget_s: float, tell: Callable[[str], None], *, live: bool) -> None:
        self._file, self._budget_s, self._tell, self._live = file, budget_s, tell, live
        self._started: float | None = None
        self._drawn_at = 0.0
        self._current = self._answer = ""

    def on_step(self, text: str) -> None:
        # After the first trial, the line with the answer so far shows the progress.
        if self._started is None:
            self._say(text)

    def _say(self, text: str) -> None:
        self._clear()
        self._tell(f"weir: {text}")

    def on_trial_start(self, trial: TrialStart) -> None:
        self._started = self._started or time.monotonic()
        self._current = f"block {trial.block}, {trial.planned.stack.title or trial.planned.stack.label}"
        self._draw("starting")

    def on_interval(self, interval: Interval) -> None:
        if time.monotonic() - self._drawn_at >= _REFRESH_S:
            self._draw(f"{interval.completed / (interval.end_s - interval.start_s):,.0f} req/s")

    def on_trial_end(self, planned: PlannedCell, result: TrialResult) -> None:
        for reason in result.verdict.reasons:
            if reason.validity == "invalid":
                self._say(f"{planned.stack.title or planned.stack.label}: {reason.text}")

    def on_answer(self, blocks: int, labels: Sequence[str]) -> None:
        # Findings take half a second to import, and no load runs now.
        from weir.findings import RunFindings, of_run
        from weir.report.comparison import summarize

        with RunReader(self._file) as reader:
            findings = of_run(reader)
        assert isinstance(findings, RunFindings)
        self._answer = summarize(findings)
        if not self._live:
            self._tell(f"after block {blocks}, {self._describe_time()}: {self._answer}")

    def close(self) -> None:
        """Removes the progress line. A second call does nothing."""
        self._clear()
        self._live = False

    def _describe_time(self) -> str:
        spent_s = time.monotonic() - (self._started or time.monotonic())
        return f"{spent_s:.0f} s of at most {self._budget_s:.0f} s"

    def _draw(self, state: str) -> None:
        if self._live:
            self._drawn_at = time.monotonic()
            text = f"{self._current}: {state}; {self._describe_time()}"
            answer = f"{self._answer[:_MAX_COLUMNS]}\n" if self._answer else ""
            self._clear()
            sys.stderr.write(f"{answer}{text[:_MAX_COLUMNS]}")
            sys.stderr.flush()
            self._lines = 1 if answer else 0

    _lines = 0

    def _clear(self) -> None:
        if self._live and self._drawn_at:
            sys.stderr.write("\r\x1b[K" + "\x1b[1A\x1b[K" * self._lines)
            self._lines = 0
