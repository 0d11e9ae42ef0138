"""A run as polars frames, for notebooks: one row a trial, an interval, a reading, a comparison.

    >>> from weir import frames                                  # doctest: +SKIP
    >>> run = frames.read("runs/sync-vs-async-1")                # doctest: +SKIP
    >>> run.trials().group_by("stack").agg(pl.col("throughput_rps").median())   # doctest: +SKIP

Reads the run file alone. Times are in seconds and microseconds as the columns' names say; a figure that a trial cannot give is null.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from weir.findings import METRICS, RunFindings, of_run
from weir.findings.evidence import is_used
from weir.model.errors import UsageError
from weir.model.run import Cell
from weir.store import RunReader

_Rows = Callable[[RunReader, int], Sequence[Any]]


class Run:
    """A run whose tables can be asked for. It is read when they are: the file may still be growing."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def findings(self) -> RunFindings:
        """All conclusions, as `weir report --json` has them.

        Raises:
            WeirError: the run file is damaged.
        """
        with RunReader(self._path) as reader:
            return of_run(reader)

    def trials(self) -> pl.DataFrame:
        """One row a finished trial: its cell, its verdict, whether findings use it, and its value of each metric of findings."""
        with RunReader(self._path) as reader:
            rows = [
                {
                    "trial": trial.id,
                    **_cell(trial.cell),
                    "block": trial.block,
                    "position": trial.position,
                    "attempt": trial.attempt,
                    "started_unix_ns": trial.started_unix_ns,
                    "verdict": trial.result.verdict.validity,
                    "reasons": list(trial.result.verdict.texts),
                    "used": is_used(trial),
                    **{metric.key: metric.of(trial) for metric in METRICS},
                }
                for trial in reader.trials()
            ]
        return _frame(rows)

    def intervals(self) -> pl.DataFrame:
        """One row an interval of a trial: what the generator saw."""
        return self._rows(RunReader.intervals)

    def samples(self) -> pl.DataFrame:
        """One row a reading of a process tree: CPU, memory, threads, bytes; what counts up is cumulative."""
        return self._rows(RunReader.samples)

    def thread_states(self) -> pl.DataFrame:
        """One row a reading of the threads of one name: cumulative thread-seconds by what they were doing."""
        return self._rows(RunReader.thread_states)

    def comparisons(self) -> pl.DataFrame:
        """One row a comparison of findings: ratio, interval, outcome, sentence."""
        rows = [
            {
                "point": point.label,
                **{key: value for key, value in asdict(found).items() if key != "evidence"},
                "trials": list(found.evidence.used),
            }
            for point in self.findings().points
            for found in point.comparisons
        ]
        return _frame(rows)

    def measures(self) -> pl.DataFrame:
        """One row a metric of a stack at a point: its value over trials with its interval."""
        rows = [
            {
                "point": point.label, "stack": stack.label, "name": stack.name, "metric": measure.metric, "unit": measure.unit,
                "value": measure.value, "low": measure.low, "high": measure.high, "trials": len(measure.trials), "note": measure.note,
            }
            for point in self.findings().points
            for stack in point.stacks
            for measure in stack.measures
        ]  # fmt: skip
        return _frame(rows)

    def _rows(self, of: _Rows) -> pl.DataFrame:
        with RunReader(self._path) as reader:
            rows = [
                {"trial": trial.id, "stack": trial.cell.stack_label, **row._asdict()}
                for trial in reader.trials()
                for row in of(reader, trial.id)
            ]
        return _frame(rows)


def read(path: str | Path) -> Run:
    """The run in that folder or file.

    Raises:
        UsageError: there is none, or it is a single load.
    """
    with RunReader(Path(path)) as reader:
        if reader.info.is_load:
            raise UsageError(f"{reader.path}: found a single load, expected a run of a study", hint=f"weir report {path}")
        return Run(reader.path)


def _cell(cell: Cell) -> dict[str, Any]:
    return {
        "stack": cell.stack_label,
        "workload": cell.workload,
        "load": cell.load.label,
        "connections": cell.load.connections,
        "arm": cell.arm,
        **cell.coordinates,
    }


def _frame(rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    # All rows decide on a column's type: the first may hold a null, and a coordinate only some cells have.
    return pl.DataFrame([dict(row) for row in rows], infer_schema_length=None)
