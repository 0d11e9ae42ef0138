"""The run file: one SQLite file for each run. weir writes the file during the run, and all later steps read it. Only
this package contains the file's schema (`docs/reference/run-file.md`). Its functions use the types of `weir.model`."""

from weir.store.connection import RUN_FILE_NAME, find_run
from weir.store.handoff import AwayRun, away
from weir.store.reader import RunReader
from weir.store.recorder import Recorder
from weir.store.rows import Answered, IntervalRow
from weir.store.sample_rows import CpuSampleRow, MachineSampleRow, NetworkSampleRow, SampleRow, ThreadStateRow, UseRow
from weir.store.writer import RunWriter
