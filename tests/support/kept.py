"""Which trials of a run count: on a busy machine one is rejected now and then, and tried again."""

from pathlib import Path

from weir.model.run_types import Trial
from weir.store import RunReader


def kept_trials(run: Path) -> list[Trial]:
    """All trials of a run, file or folder, that were not rejected."""
    with RunReader(run) as reader:
        return [trial for trial in reader.trials() if trial.result.verdict.validity != "invalid"]
