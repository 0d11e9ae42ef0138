"""The run file: one SQLite file a run, written while the run goes on and read by everything that comes after.

Only this room knows the schema (`docs/reference/run-file.md`); the types it takes and gives are those of `weir.model`.
It draws no conclusions and runs nothing.
"""

from weir.store.away import AwayRun, away
from weir.store.locate import RUN_FILE_NAME, find_run
from weir.store.reader import RunReader
from weir.store.recorder import Recorder
from weir.store.rows import Answered, IntervalRow
from weir.store.sample_rows import CpuSampleRow, MachineSampleRow, NetworkSampleRow, SampleRow, ThreadStateRow, UseRow
from weir.store.writer import RunWriter

__all__ = [
    "RUN_FILE_NAME",
    "Answered",
    "AwayRun",
    "CpuSampleRow",
    "IntervalRow",
    "MachineSampleRow",
    "NetworkSampleRow",
    "Recorder",
    "RunReader",
    "RunWriter",
    "SampleRow",
    "ThreadStateRow",
    "UseRow",
    "away",
    "find_run",
]
