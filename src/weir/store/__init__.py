"""The run file: one SQLite file for each run, which weir writes during the run, and all later steps read. Only this
room knows the schema (`docs/reference/run-file.md`). The room takes and returns the types of `weir.model`, draws no
conclusions and runs nothing."""

from weir.store.connection import RUN_FILE_NAME, find_run
from weir.store.handoff import AwayRun, away
from weir.store.reader import RunReader
from weir.store.recorder import Recorder
from weir.store.rows import Answered, IntervalRow
from weir.store.sample_rows import CpuSampleRow, MachineSampleRow, NetworkSampleRow, SampleRow, ThreadStateRow, UseRow
from weir.store.writer import RunWriter
