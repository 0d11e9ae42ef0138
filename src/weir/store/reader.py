"""Reads the finished trials of a run file. For a load without a study, also reads the unfinished trial. The reader
never changes the file. The reader works during a run, on a read-only medium, and after the writer was killed."""

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

from weir.model.errors import UsageError
from weir.model.run_types import Cell, RunInfo, StopReason, Trial, TrialEvent, TrialResult
from weir.model.verdict import TrialVerdict
from weir.store import rows
from weir.store.connection import explained, find_run, open_read_only
from weir.store.sample_rows import (
    CpuSampleRow,
    CpuUseRow,
    MachineSampleRow,
    NetworkSampleRow,
    SampleRow,
    ThreadStateRow,
    UseRow,
)

_Row = TypeVar("_Row", SampleRow, UseRow, CpuSampleRow, CpuUseRow, ThreadStateRow, NetworkSampleRow, MachineSampleRow)
_READINGS: dict[type, tuple[str, str]] = {
    SampleRow: ("sample", "t_s, name"),
    UseRow: ("sample", "t_s, name"),
    CpuSampleRow: ("cpu_sample", "t_s, cpu"),
    CpuUseRow: ("cpu_sample", "t_s, cpu"),
    ThreadStateRow: ("thread_state", "t_s, name, pool"),
    NetworkSampleRow: ("network_sample", "t_s, name"),
    MachineSampleRow: ("machine_sample", "t_s"),
}
"""Table and sort columns of each row type."""
_WORKED = "user_s + system_s + irq_s + softirq_s"
_SUMS = {"worked_s": _WORKED, "total_s": f"{_WORKED} + idle_s + iowait_s + steal_s"}
"""SQL expressions of the fields that are no columns."""


class RunReader(AbstractContextManager["RunReader"]):
    """An open run file. The caller uses the reader as a context manager, or calls `close`."""

    info: RunInfo
    ended: Literal["complete", "interrupted"] | None
    """How the run ended. None if the run continues, or after a kill of the writer."""
    finished_unix_ns: int | None
    stopped: StopReason | None
    """The rule that ended a complete run."""

    def __init__(self, path: Path) -> None:
        """Opens the run file `path`, or the run file in the folder `path`. Raises WeirError if the file is missing, is
        not a run file, is truncated, or has another schema."""
        self.path = find_run(path)
        self._open = open_read_only(self.path)
        self._cached: dict[Any, Any] = {}
        self._version = -1
        try:
            with explained(self.path):
                found = self._select("run", (*rows.RUN.columns, "ended", "finished_unix_ns", "stopped"))
                if not found:
                    raise UsageError(f"{self.path}: found an empty run file, expected a weir run file with a run")
                *columns, self.ended, self.finished_unix_ns, stopped = found[0]
                self.stopped = None if stopped is None else StopReason(**json.loads(stopped))
                self.info = RunInfo(**rows.RUN.decode(columns))
        except BaseException:
            self._open.close()
            raise

    def cells(self) -> list[Cell]:
        with explained(self.path):
            return [Cell(**rows.CELL.decode(row)) for row in self._select("cell", rows.CELL.columns, "ORDER BY id")]

    def trials(self) -> list[Trial]:
        """Returns the finished trials in the order of their start, without histograms (see `histograms`)."""
        with self._cache() as cache:
            if "trials" not in cache:
                cells = {cell.id: cell for cell in self.cells()}
                found = self._select("trial", rows.TRIAL_COLUMNS, "WHERE finished = 1 ORDER BY id")
                cache["trials"] = [rows.trial_from_row(row, cells) for row in found]
            return list(cache["trials"])

    def unfinished(self) -> Trial | None:
        """Returns the unfinished trial of a load without a study; otherwise None. This trial has no summary."""
        if not self.info.is_load:
            return None
        cells = {cell.id: cell for cell in self.cells()}
        with explained(self.path):
            found = self._select("trial", ("id", *rows.BEGUN_COLUMNS), "WHERE finished = 0 ORDER BY id")
            if not found:
                return None
            id_, cell_id, block, position, attempt, started_unix_ns = found[0]
            result = TrialResult(TrialVerdict.from_texts("suspect", ["unfinished"]))
            return Trial(id_, cells[cell_id], block, position, attempt, started_unix_ns, result)

    def intervals(self, trial_id: int) -> list[rows.IntervalRow]:
        """Returns the intervals of a trial, sorted by time."""
        with self._cache() as cache:
            if trial_id not in cache:
                found = self._of_trial("interval", rows.IntervalRow._fields, trial_id, "idx")
                cache[trial_id] = [rows.interval_from_row(row) for row in found]
            intervals: list[rows.IntervalRow] = cache[trial_id]
            return intervals

    def answered(self, trial_id: int) -> rows.Answered:
        """Returns the number of responses in each interval, sorted by time. Much faster than a call of `intervals`."""
        # Imported here because `weir load` does not need it.
        import numpy as np

        width = len(rows.Answered._fields)
        with self._cache() as cache:
            if "answered" not in cache:
                found = self._select("interval", ("trial_id", *rows.Answered._fields), "ORDER BY trial_id, idx")
                table = np.array(found, dtype=np.float64).reshape(-1, 1 + width)
                trials, first = np.unique(table[:, 0], return_index=True)
                parts = np.split(table[:, 1:], first[1:]) if len(trials) else []
                cache["answered"] = {int(id_): rows.Answered(*part.T) for id_, part in zip(trials, parts, strict=True)}
            answered: dict[int, rows.Answered] = cache["answered"]
            return answered.get(trial_id) or rows.Answered(*np.zeros((width, 0)))

    def interval_histograms(self, trial_id: int) -> list[bytes]:
        """Returns a histogram of response times for each interval (nanoseconds, HdrHistogram V2), sorted by time."""
        with explained(self.path):
            return [data for (data,) in self._of_trial("interval", ("histogram",), trial_id, "idx")]

    def readings(self, row_type: type[_Row], trial_id: int) -> list[_Row]:
        """Returns the rows of the type `row_type` for a trial, sorted by time."""
        table, order = _READINGS[row_type]
        with explained(self.path):
            columns = [_SUMS.get(name, name) for name in row_type._fields]
            found = self._of_trial(table, columns, trial_id, order)
        # `_make` is a Python function, so it would take as long as the reading of the rows.
        return list(map(partial(tuple.__new__, row_type), found))

    def tiers_on(self, node: str) -> frozenset[str]:
        """Returns the tiers with processes on the machine `node`. The names of these processes end with `@node`."""
        with explained(self.path):
            found = self._select("sample", ["DISTINCT tier"], "WHERE substr(name, -length(?1)) = ?1", (f"@{node}",))
        return frozenset(tier for (tier,) in found)

    def events(self, trial_id: int) -> list[TrialEvent]:
        with explained(self.path):
            return [TrialEvent(*row) for row in self._of_trial("event", rows.EVENT.columns, trial_id, "t_s")]

    def histogram(self, trial_id: int, clock: str) -> bytes | None:
        """Returns a trial's histogram of one clock, such as `response_time_ns`. None if this histogram is missing."""
        with explained(self.path):
            found = self._of_trial("histogram", ("data",), trial_id, "clock", "AND clock = ?", clock)
        return found[0][0] if found else None

    def histograms(self, trial_id: int) -> dict[str, bytes]:
        with explained(self.path):
            return dict(self._of_trial("histogram", ("clock", "data"), trial_id, "clock"))

    def close(self) -> None:
        self._open.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _cache(self) -> Iterator[dict[Any, Any]]:
        """Yields the cache of rows for findings and charts. Empties the cache after another process's write."""
        with explained(self.path):
            (version,) = self._open.connection.execute("PRAGMA data_version").fetchone()
            if version != self._version:
                self._cached, self._version = {}, version
            yield self._cached

    def _select(
        self, table: str, columns: Sequence[str], rest: str = "", parameters: tuple[Any, ...] = ()
    ) -> list[tuple[Any, ...]]:
        return self._open.connection.execute(f"SELECT {', '.join(columns)} FROM {table} {rest}", parameters).fetchall()

    def _of_trial(
        self, table: str, columns: Sequence[str], trial_id: int, order: str, where: str = "", *values: str
    ) -> list[tuple[Any, ...]]:
        # Hides the rows of an unfinished trial. A load without a study has only one trial, so its rows stay visible.
        finished = "" if self.info.is_load else "AND finished = 1"
        rest = f"WHERE trial_id = (SELECT id FROM trial WHERE id = ? {finished}) {where} ORDER BY {order}"
        return self._select(table, columns, rest, (trial_id, *values))
