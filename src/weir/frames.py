"""Reads a run as polars data frames for notebooks. A row is a trial, an interval, a reading, a comparison or a metric.

    >>> from weir import frames                                  # doctest: +SKIP
    >>> run = frames.read("runs/sync-vs-async-1")                # doctest: +SKIP
    >>> run.trials().group_by("stack").agg(pl.col("throughput_rps").median())   # doctest: +SKIP

This module reads only the run file. Column names end with the unit, such as `_s` and `_us`. A missing figure is null.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

try:
    import polars as pl
except ImportError as missing:
    raise ImportError("weir.frames: polars is not installed here; try: pip install 'weirbench[frames]'") from missing

from weir.findings import RunFindings, of_run
from weir.findings.evidence import is_used
from weir.findings.metrics import METRICS
from weir.model.errors import UsageError
from weir.model.run_types import Cell
from weir.store import RunReader, SampleRow, ThreadStateRow

_Rows = Callable[[RunReader, int], Sequence[Any]]


class Run:
    """The tables of a run. Each method reads the run file again, because an unfinished study adds rows."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def findings(self) -> RunFindings:
        """Returns all findings of the run. Raises WeirError if the run file is damaged."""
        with RunReader(self._path) as reader:
            return of_run(reader)

    def trials(self) -> pl.DataFrame:
        """Returns one row per finished trial: cell, verdict, each metric, and whether findings use the trial."""
        with RunReader(self._path) as reader:
            rows = [
                {
                    "trial": trial.id,
                    **_cell(trial.cell),
                    **{name: getattr(trial, name) for name in ("block", "position", "attempt", "started_unix_ns")},
                    "verdict": trial.result.verdict.validity,
                    "reasons": list(trial.result.verdict.texts),
                    "used": is_used(trial),
                    **{metric.key: metric.of(trial) for metric in METRICS},
                }
                for trial in reader.trials()
            ]
        return _frame(rows)

    def intervals(self) -> pl.DataFrame:
        """Returns one row per interval of each finished trial."""
        return self._rows(RunReader.intervals)

    def samples(self) -> pl.DataFrame:
        """Returns one row per reading of a stack or service: CPU, memory, threads, bytes. Counters are cumulative."""
        return self._rows(lambda reader, trial: reader.readings(SampleRow, trial))

    def thread_states(self) -> pl.DataFrame:
        """Returns one row per reading and thread name: the threads' cumulative seconds in each state."""
        return self._rows(lambda reader, trial: reader.readings(ThreadStateRow, trial))

    def comparisons(self) -> pl.DataFrame:
        """Returns one row per comparison of two stacks: ratio, confidence interval, outcome and sentence."""
        rows = []
        for point in self.findings().points:
            for found in point.comparisons:
                values = {key: value for key, value in asdict(found).items() if key != "evidence"}
                rows.append({"point": point.label, **values, "trials": list(found.evidence.used)})
        return _frame(rows)

    def measures(self) -> pl.DataFrame:
        """Returns one row per load point, stack and metric: the value from all trials, with a confidence interval."""
        rows = [
            {
                "point": point.label,
                "stack": stack.label,
                "name": stack.name,
                **{name: getattr(measure, name) for name in ("metric", "unit", "value", "low", "high")},
                "trials": len(measure.trials),
                "note": measure.note,
            }
            for point in self.findings().points
            for stack in point.stacks
            for measure in stack.measures
        ]
        return _frame(rows)

    def _rows(self, of: _Rows) -> pl.DataFrame:
        with RunReader(self._path) as reader:
            return _frame(
                {"trial": trial.id, "stack": trial.cell.stack_label, **row._asdict()}
                for trial in reader.trials()
                for row in of(reader, trial.id)
            )


def read(path: str | Path) -> Run:
    """Opens the run in a folder or file. Raises UsageError if the path has no run of a study."""
    with RunReader(Path(path)) as reader:
        if reader.info.is_load:
            problem = f"{reader.path}: found a single load, expected a run of a study"
            raise UsageError(problem, hint=f"weir report {path}")
        return Run(reader.path)


def _cell(cell: Cell) -> dict[str, Any]:
    load = {"load": cell.load.label, "connections": cell.load.connections}
    return {"stack": cell.stack_label, "workload": cell.workload, **load, "arm": cell.arm, **cell.coordinates}


def _frame(rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    # polars needs all rows to find a column's type: the first row may have null or no value.
    return pl.DataFrame([dict(row) for row in rows], infer_schema_length=None)
