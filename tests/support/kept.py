"""Finds the trials of a run that count. On a busy machine weir sometimes rejects a trial and tries it again."""

from pathlib import Path

from weir.model.run_types import Trial
from weir.store import RunReader


def kept_trials(run: Path) -> list[Trial]:
    """Returns all trials of a run, file or folder, except rejected ones."""
    with RunReader(run) as reader:
        return [trial for trial in reader.trials() if trial.result.verdict.validity != "invalid"]
