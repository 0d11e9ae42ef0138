"""Shows the progress of `weir compare`. At a terminal, weir redraws a view. Elsewhere, weir prints a line per block."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from weir.lab.observer import RunObserver, TrialStart
from weir.model.load_records import Interval, LoadStarted
from weir.model.run_types import TrialResult
from weir.model.sanitize import sanitize
from weir.store import RunReader
from weir.study.study import PlannedCell


class CompareProgress(RunObserver):
    """Shows the current server and rate, the remaining time and the interim answer. The caller must call `close`."""

    def __init__(self, file: Path, budget_s: float, tell: Callable[[str], None], *, live: bool) -> None:
        self._file, self._budget_s = file, budget_s
        self._started: float | None = None
        self._side, self._state = "", "starting"
        self._spinner = Spinner("dots", style="cyan")
        self._answer: RenderableType = ""
        self._told = set[tuple[str, str]]()
        # A separate console: `output.stderr` leaves long lines to the terminal, and rich cannot redraw such lines.
        console = Console(stderr=True, highlight=False, markup=False, emoji=False)
        self._view = Live(console=console, get_renderable=self._render, transient=True) if live else None
        self.tell = tell
        """A function that prints a line. If weir shows a view, the line appears above the view."""
        if self._view is not None:
            # Other consoles would write into the view.
            self.tell = console.print
            self._view.start()

    def on_step(self, text: str) -> None:
        self._state = text
        # After the first trial, the interim answers make lines about steps unnecessary.
        if self._view is None and self._started is None:
            self.tell(f"weir: {text}")

    def on_trial_start(self, trial: TrialStart) -> None:
        self._started = self._started or time.monotonic()
        self._side = f"block {trial.block}: {_name(trial.planned)}, "
        self._state = "warming up"

    def on_start(self, started: LoadStarted) -> None:
        self._state = "measuring"

    def on_interval(self, interval: Interval) -> None:
        self._state = f"{interval.completed / (interval.end_s - interval.start_s):,.0f} req/s"

    def on_trial_end(self, planned: PlannedCell, result: TrialResult) -> None:
        self._state = "stopping"
        for reason in result.verdict.reasons:
            # A server that fails does so in each trial.
            if reason.validity == "invalid" and (key := (_name(planned), reason.kind)) not in self._told:
                self._told.add(key)
                self.tell(f"weir: {_name(planned)}: {reason.text.removeprefix(f'{_name(planned)}: ')}")

    def on_answer(self, blocks: int, labels: Sequence[str]) -> None:
        # Findings take half a second to import, and no load runs now.
        from weir.findings import RunFindings, of_run
        from weir.report.comparison import render_so_far, summarize

        with RunReader(self._file) as reader:
            findings = of_run(reader)
        assert isinstance(findings, RunFindings)
        if self._view is None:
            self.tell(
                f"after block {blocks} ({self._spent_s():.0f} s, budget {self._budget_s:.0f} s): {summarize(findings)}"
            )
        else:
            self._answer = render_so_far(findings)

    def close(self) -> None:
        """Removes the view. A second call does nothing."""
        if self._view is not None:
            self._view.stop()

    def _spent_s(self) -> float:
        return 0.0 if self._started is None else time.monotonic() - self._started

    def _render(self) -> RenderableType:
        left = "" if self._started is None else f", at most {max(0.0, self._budget_s - self._spent_s()):.0f} s left"
        self._spinner.update(text=Text(sanitize(f"{self._side}{self._state}{left}"), overflow="ellipsis", no_wrap=True))
        return Group(self._answer, self._spinner) if self._answer else self._spinner


def _name(planned: PlannedCell) -> str:
    """Returns the name of a side. The second copy of the first side has the suffix ' (A/A)'."""
    return planned.name + " (A/A)" * (planned.cell.arm == "aa")
