"""Reads a run file: finished trials only, in the types of `weir.model`; of a load without a study also what an unfinished one has so far.

Opened read-only; it works while the run is still being written, on a read-only medium, and after the writer was killed.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

from weir.model.errors import UsageError
from weir.model.run import Cell, RunInfo, Trial, TrialEvent, TrialResult
from weir.model.stop import Stop
from weir.model.verdict import TrialVerdict
from weir.store import rows
from weir.store.connection import explained, open_read_only
from weir.store.locate import find_run
from weir.store.sample_rows import CpuSampleRow, MachineSampleRow, NetworkSampleRow, SampleRow, ThreadStateRow, UseRow

_Row = TypeVar("_Row", SampleRow, UseRow, CpuSampleRow, ThreadStateRow, NetworkSampleRow, MachineSampleRow)


@dataclass(slots=True)
class _Read:
    """What was read of a file that nobody has changed since."""

    trials: list[Trial] | None = None
    intervals: dict[int, list[rows.IntervalRow]] = field(default_factory=dict)
    answered: dict[int, rows.Answered] | None = None


class RunReader:
    """An open run file. A context manager; or `close` it."""

    info: RunInfo
    ended: Literal["complete", "interrupted"] | None
    """How the run ended; None where it still goes on, or its writer was killed."""
    finished_unix_ns: int | None
    stopped: Stop | None
    """Why a complete run has as many blocks as it has."""

    def __init__(self, path: Path) -> None:
        """Open the run file that `path`, a file or a run folder, names.

        Raises:
            WeirError: missing, of another kind, truncated, or from a newer weir.
        """
        self.path = find_run(path)
        self._open = open_read_only(self.path)
        self._read = _Read()
        self._version = -1
        try:
            with explained(self.path):
                found = self._select("run", (*rows.RUN_COLUMNS, "ended", "finished_unix_ns", "stopped"))
                if not found:
                    raise UsageError(f"{self.path}: found no run in it, expected a weir run file")
                *columns, self.ended, self.finished_unix_ns, stopped = found[0]
                self.stopped = None if stopped is None else Stop.from_json(json.loads(stopped))
                self.info = rows.run_from_row(columns)
        except BaseException:
            self._open.close()
            raise

    def cells(self) -> list[Cell]:
        """All cells of the study, by id."""
        with explained(self.path):
            return [rows.cell_from_row(row) for row in self._select("cell", rows.CELL_COLUMNS, "ORDER BY id")]

    def trials(self) -> list[Trial]:
        """Finished trials in the order in which they ran, without their histograms (see `histograms`)."""
        read = self._what_was_read()
        if read.trials is None:
            cells = {cell.id: cell for cell in self.cells()}
            with explained(self.path):
                found = self._select("trial", rows.TRIAL_COLUMNS, "WHERE finished = 1 ORDER BY id")
                read.trials = [rows.trial_from_row(row, cells) for row in found]
        return list(read.trials)

    def unfinished(self) -> Trial | None:
        """The trial of a load without a study that still goes on, or whose writer was killed; it has no summary."""
        if not self.info.is_load:
            return None
        cells = {cell.id: cell for cell in self.cells()}
        columns = ("id", "cell_id", "block", "position", "attempt", "started_unix_ns")
        with explained(self.path):
            found = self._select("trial", columns, "WHERE finished = 0 ORDER BY id")
            if not found:
                return None
            identifier, cell_id, block, position, attempt, started = found[0]
            result = TrialResult(TrialVerdict.told("suspect", ["unfinished"]))
            return Trial(identifier, cells[cell_id], block, position, attempt, started, result)

    def intervals(self, trial_id: int) -> list[rows.IntervalRow]:
        """What the generator saw, by time."""
        read = self._what_was_read().intervals
        if trial_id not in read:
            with explained(self.path):
                found = self._of_trial("interval", rows.INTERVAL_COLUMNS, trial_id, "idx")
                read[trial_id] = [rows.interval_from_row(row) for row in found]
        return read[trial_id]

    def answered(self, trial_id: int) -> rows.Answered:
        """How many requests were answered in each interval, by time: of many trials at a fraction of what `intervals` takes."""
        # Here and not above: `weir load` does not need it.
        import numpy as np

        read = self._what_was_read()
        if read.answered is None:
            with explained(self.path):
                found = self._select("interval", ("trial_id", *rows.Answered._fields), "ORDER BY trial_id, idx")
            table = np.array(found, dtype=np.float64).reshape(-1, 1 + len(rows.Answered._fields))
            trials, first = np.unique(table[:, 0], return_index=True)
            parts = np.split(table[:, 1:], first[1:]) if len(trials) else []
            read.answered = {int(trial): rows.Answered(*part.T) for trial, part in zip(trials, parts, strict=True)}
        return read.answered.get(trial_id, rows.Answered(*np.zeros((len(rows.Answered._fields), 0))))

    def interval_histograms(self, trial_id: int) -> list[bytes]:
        """Response times of each interval in nanoseconds, HdrHistogram V2, in the order of `intervals`."""
        with explained(self.path):
            return [data for (data,) in self._of_trial("interval", ("histogram",), trial_id, "idx")]

    def samples(self, trial_id: int) -> list[SampleRow]:
        """Readings of the processes, by time."""
        return self._readings(SampleRow, "sample", trial_id, "t_s, name")

    def tiers_on(self, node: str) -> frozenset[str]:
        """Tiers whose processes ran on another machine: readings of them bear its name."""
        with explained(self.path):
            found = self._select("sample", ["DISTINCT tier"], "WHERE substr(name, -length(?1)) = ?1", (f"@{node}",))
        return frozenset(tier for (tier,) in found)

    def use(self, trial_id: int) -> list[UseRow]:
        """Of `samples` what charts draw."""
        return self._readings(UseRow, "sample", trial_id, "t_s, name")

    def cpu_samples(self, trial_id: int) -> list[CpuSampleRow]:
        """Readings of the machine's CPUs, by time."""
        return self._readings(CpuSampleRow, "cpu_sample", trial_id, "t_s, cpu")

    def thread_states(self, trial_id: int) -> list[ThreadStateRow]:
        """What threads spent their time on, by time."""
        return self._readings(ThreadStateRow, "thread_state", trial_id, "t_s, name, pool")

    def network_samples(self, trial_id: int) -> list[NetworkSampleRow]:
        """Readings of network namespaces, by time."""
        return self._readings(NetworkSampleRow, "network_sample", trial_id, "t_s, name")

    def machine_samples(self, trial_id: int) -> list[MachineSampleRow]:
        """Readings of the machine's pressure and of the observer's cost, by time."""
        return self._readings(MachineSampleRow, "machine_sample", trial_id, "t_s")

    def events(self, trial_id: int) -> list[TrialEvent]:
        """What happened, by time."""
        with explained(self.path):
            return [TrialEvent(*row) for row in self._of_trial("event", ("t_s", "kind", "detail", "duration_s"), trial_id, "t_s")]

    def histogram(self, trial_id: int, clock: str) -> bytes | None:
        """The one of a clock, `response_time_ns` and so on; None where none was kept."""
        with explained(self.path):
            found = self._of_trial("histogram", ("data",), trial_id, "clock", "AND clock = ?", clock)
        return found[0][0] if found else None

    def histograms(self, trial_id: int) -> dict[str, bytes]:
        """HdrHistogram V2 by clock: `response_time_ns` and so on."""
        with explained(self.path):
            return {row[0]: row[1] for row in self._of_trial("histogram", ("clock", "data"), trial_id, "clock")}

    def close(self) -> None:
        """Close the file."""
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _what_was_read(self) -> "_Read":
        """What is kept because several findings and charts ask for it; nothing once somebody else has written to the file."""
        with explained(self.path):
            (version,) = self._open.connection.execute("PRAGMA data_version").fetchone()
        if version != self._version:
            self._read, self._version = _Read(), version
        return self._read

    def _select(self, table: str, columns: Sequence[str], rest: str = "", parameters: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        return self._open.connection.execute(f"SELECT {', '.join(columns)} FROM {table} {rest}", parameters).fetchall()

    def _readings(self, row_type: type[_Row], table: str, trial_id: int, order: str) -> list[_Row]:
        with explained(self.path):
            found = self._of_trial(table, row_type._fields, trial_id, order)
        # Without `_make`, which is a function of Python's: of a run's hundreds of thousands of rows it takes as long as reading them.
        return list(map(partial(tuple.__new__, row_type), found))

    def _of_trial(
        self, table: str, columns: Sequence[str], trial_id: int, order: str, where: str = "", *values: str
    ) -> list[tuple[Any, ...]]:
        # The join keeps rows of a trial that is still running out of sight; a load without a study has nothing else to show.
        finished = "" if self.info.is_load else "AND finished = 1"
        rest = f"WHERE trial_id = (SELECT id FROM trial WHERE id = ? {finished}) {where} ORDER BY {order}"
        return self._select(table, columns, rest, (trial_id, *values))
