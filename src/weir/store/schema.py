"""Tables of the run file, and numbers that identify a run file. The tables are derived from row types. Each change of a
row type needs a higher `SCHEMA_NUMBER` and a line in `docs/reference/run-file.md`. A test compares the tables with
`tests/store/schema.sql`."""

from weir.model.run_types import Cell, RunInfo, Trial, TrialEvent, TrialResult
from weir.store.rows import BEGUN_COLUMNS, RESULT, IntervalRow
from weir.store.sample_rows import CpuSampleRow, MachineSampleRow, NetworkSampleRow, SampleRow, ThreadStateRow
from weir.store.table import Table, derive_columns

APPLICATION_ID = 0x57454952
"""The text 'WEIR' in the file's header. weir and the program `file` recognise run files by this text."""

SCHEMA_NUMBER = 6
"""Version of the schema. weir reads only run files with this version."""

_ID = {"id": "INTEGER PRIMARY KEY"}
_OF_TRIAL = {"trial_id": "INTEGER NOT NULL REFERENCES trial (id) ON DELETE CASCADE"}
_BLOB = "BLOB NOT NULL"
_RUN = {
    "id": "INTEGER PRIMARY KEY CHECK (id = 1)",
    **derive_columns(RunInfo),
    "finished_unix_ns": "INTEGER",
    "ended": "TEXT CHECK (ended IN ('complete', 'interrupted'))",
    "stopped": "TEXT",
}
_BEGUN = derive_columns(Trial) | {"cell_id": "INTEGER NOT NULL REFERENCES cell (id)"}
_RESULT = derive_columns(TrialResult, nullable=True) | {
    "validity": "TEXT CHECK (validity IN ('valid', 'suspect', 'invalid'))",
    "reasons": "TEXT",
}
_TRIAL = {
    **_ID,
    **{name: _BEGUN[name] for name in BEGUN_COLUMNS},
    "finished": "INTEGER NOT NULL DEFAULT 0 CHECK (finished IN (0, 1))",
    **{name: _RESULT[name] for name in RESULT.columns},
}
_INTERVAL = {**_OF_TRIAL, **derive_columns(IntervalRow), "histogram": _BLOB}


def _readings(name: str, row: type) -> Table:
    return Table(name, _OF_TRIAL | derive_columns(row), index=("trial_id", "t_s"))


APPENDED = (
    Table("interval", _INTERVAL, primary_key=("trial_id", "idx")),
    _readings("sample", SampleRow),
    _readings("cpu_sample", CpuSampleRow),
    _readings("thread_state", ThreadStateRow),
    _readings("network_sample", NetworkSampleRow),
    _readings("machine_sample", MachineSampleRow),
    _readings("event", TrialEvent),
)
"""The tables to which the writer appends rows during a trial."""
TABLES = (
    Table("run", _RUN),
    Table("cell", derive_columns(Cell) | _ID),
    Table("trial", _TRIAL),
    Table("histogram", {**_OF_TRIAL, "clock": "TEXT NOT NULL", "data": _BLOB}, primary_key=("trial_id", "clock")),
    *APPENDED,
)
CREATE_TABLES = "\n".join(table.create for table in TABLES)
