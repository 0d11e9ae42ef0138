"""Reads run files: the trials that count, and the rows of a run that goes on."""

import sqlite3
from contextlib import closing
from pathlib import Path

from weir.model.run_types import Trial
from weir.store import RunReader


def kept_trials(run: Path) -> list[Trial]:
    """Returns all trials of a run, file or folder, except rejected ones. On a busy machine weir sometimes rejects a trial
    and tries it again."""
    with RunReader(run) as reader:
        return [trial for trial in reader.trials() if trial.result.verdict.validity != "invalid"]


def kept_rows(path: Path, table: str) -> int:
    """Returns the current number of rows in a table, also of a load that goes on; 0 if the table does not exist."""
    if not path.exists():
        return 0
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        try:
            return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
        except sqlite3.OperationalError:
            return 0
