"""The run file: one SQLite file for each run. weir writes the run file during the run, and reports read the run file.
Only this package contains the schema (`docs/reference/run-file.md`). Its functions use the types of `weir.model`."""

from weir.store.connection import RUN_FILE_NAME, find_run
from weir.store.handoff import AwayRun, away
from weir.store.reader import RunReader
from weir.store.recorder import Recorder
from weir.store.rows import Answered, IntervalRow
from weir.store.sample_rows import (
    CpuSampleRow,
    CpuUseRow,
    MachineSampleRow,
    NetworkSampleRow,
    SampleRow,
    ThreadStateRow,
    UseRow,
)
from weir.store.writer import RunWriter
