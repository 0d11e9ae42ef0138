"""Writes a run file during the run. The writer collects intervals, samples and events. About once a second, the writer
appends the collected rows in one transaction, so that the disk does not disturb the measurement. Readers see a trial
only after `finish_trial`. `resume` deletes unfinished trials."""

import fcntl
import json
import os
import sqlite3
import threading
import time
from base64 import b64decode
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, Self

from weir.model.errors import NotWrittenError, UsageError, WeirError
from weir.model.load_records import Interval
from weir.model.observer_records import Sample
from weir.model.run_types import Cell, RunInfo, StopReason, TrialEvent, TrialResult
from weir.store import rows, sample_rows
from weir.store.connection import check_identity, explained
from weir.store.schema import APPENDED, APPLICATION_ID, CREATE_TABLES, SCHEMA_NUMBER
from weir.store.table import Row, insert_into

Ended = Literal["complete", "interrupted"]

FLUSH_PERIOD_S = 1.0
_BUSY_TIMEOUT_S = 5.0
_SPACE = "check the space left on the disk"
_INSERT_CELL = insert_into("cell", rows.CELL.columns)
_INSERTS = {table.name: table.insert for table in APPENDED}


class RunWriter(AbstractContextManager["RunWriter"]):
    """The only writer of a run file. Several threads may call the methods. As a context manager, the writer marks the
    run as complete at the end, or as interrupted after an exception."""

    def __init__(
        self, path: Path, connection: sqlite3.Connection, resources: ExitStack, info: RunInfo, cells: tuple[Cell, ...]
    ) -> None:
        """Stores the arguments. Callers use `create` or `resume` instead of this constructor."""
        self.path = path
        self.info = info
        self.cells = cells
        self._connection = connection
        self._resources = resources
        """`_resources.close()` closes the connection, and then unlocks the folder."""
        self._lock = threading.RLock()
        self._pending: dict[str, list[Row]] = {table: [] for table in _INSERTS}
        self._flushed_at = time.monotonic()
        self._closed = False

    @classmethod
    def create(cls, path: Path, info: RunInfo, cells: Sequence[Cell]) -> Self:
        """Creates a new run file at `path`, and the file's folder. Each run of a study needs a separate folder. Loads
        without a study may share a folder, because weir never resumes them. Raises UsageError if the file exists, or if
        another weir writes a run in the folder. Raises WeirError if weir cannot write the file."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            problem = f"{path.parent}: cannot create the run folder: {error.strerror}"
            raise WeirError(problem, hint="name another folder with --out DIR") from error
        with ExitStack() as resources:
            if not info.is_load:
                resources.enter_context(locked_folder(path))
            if path.exists():
                load, run = f"weir report {path}, or another --out", f"weir run --resume {path}, or another --out DIR"
                raise UsageError(f"{path}: found an existing file, expected none", hint=load if info.is_load else run)
            _write_whole(path, _serialize_new(info, cells))
            with explained(path):
                connection = resources.enter_context(_open(path))
            return cls(path, connection, resources.pop_all(), info, tuple(cells))

    @classmethod
    def resume(cls, path: Path) -> Self:
        """Opens an earlier run so that weir can continue the run. Deletes the unfinished trials. Raises UsageError if
        the file is missing, is not a run file, or has another schema, or if another weir writes the run."""
        if not path.is_file():
            problem = f"{path}: found no such file, expected a run file to resume"
            raise UsageError(problem, hint="to start a new run: weir run STUDY")
        with ExitStack() as resources:
            resources.enter_context(locked_folder(path))
            with explained(path):
                connection = resources.enter_context(_open(path))
                connection.execute("DELETE FROM trial WHERE finished = 0")
                connection.execute("UPDATE run SET ended = NULL, finished_unix_ns = NULL, stopped = NULL")
                run = connection.execute(f"SELECT {', '.join(rows.RUN.columns)} FROM run").fetchone()
                found = connection.execute(f"SELECT {', '.join(rows.CELL.columns)} FROM cell ORDER BY id").fetchall()
                info = RunInfo(**rows.RUN.decode(run))
                cells = tuple(Cell(**rows.CELL.decode(row)) for row in found)
            return cls(path, connection, resources.pop_all(), info, cells)

    def add_cells(self, cells: Sequence[Cell]) -> None:
        """Adds cells that weir has planned after the start of the run."""
        with self._transaction() as connection:
            connection.executemany(_INSERT_CELL, map(rows.CELL.encode, cells))
        self.cells = (*self.cells, *cells)

    def change_load(self, cell: Cell) -> None:
        """Replaces the load of a stored cell by that of `cell`. Another tool reports its users only at the end."""
        with self._transaction() as connection:
            values = dict(zip(rows.CELL.columns, rows.CELL.encode(cell), strict=True))
            connection.execute("UPDATE cell SET load = ? WHERE id = ?", (values["load"], cell.id))

    def begin_trial(self, cell: Cell, *, block: int, position: int, attempt: int, started_unix_ns: int) -> int:
        """Adds an unfinished trial and returns the trial's id. Readers see the trial only after `finish_trial`."""
        values = (cell.id, block, position, attempt, started_unix_ns)
        with self._transaction() as connection:
            cursor = connection.execute(insert_into("trial", rows.BEGUN_COLUMNS), values)
            assert cursor.lastrowid is not None
            return cursor.lastrowid

    def add_interval(self, trial_id: int, interval: Interval) -> None:
        row = (trial_id, *rows.INTERVAL.encode(interval), b64decode(interval.histogram))
        self._append("interval", row)

    def add_sample(self, trial_id: int, t_s: float, sample: Sample) -> None:
        """Appends a sample of processes and machine. `t_s`: seconds since the load's start (before: negative)."""
        for table, row in sample_rows.split_sample(trial_id, t_s, sample):
            self._append(table, row)

    def add_event(self, trial_id: int, event: TrialEvent) -> None:
        self._append("event", (trial_id, *rows.EVENT.encode(event)))

    def finish_trial(self, trial_id: int, result: TrialResult) -> None:
        """Writes the trial's result and all collected rows, and marks the trial as finished, in one transaction. Raises
        ValueError if the trial has not been started, or is already finished."""
        assignments = ", ".join(f"{column} = ?" for column in rows.RESULT.columns)
        statement = f"UPDATE trial SET {assignments}, finished = 1 WHERE id = ? AND finished = 0"
        with self._transaction() as connection:
            self._write_pending(connection)
            histograms = [(trial_id, clock, data) for clock, data in result.histograms.items()]
            connection.executemany(insert_into("histogram", ("trial_id", "clock", "data")), histograms)
            if connection.execute(statement, (*rows.RESULT.encode(result), trial_id)).rowcount != 1:
                raise ValueError(f"trial {trial_id}: found missing or already finished, expected unfinished")
        # Between trials, a disk write disturbs no measurement. After the checkpoint, the trial survives a power cut.
        with self._lock, explained_write(self.path):
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()

    def discard_trial(self, trial_id: int) -> None:
        with self._transaction() as connection:
            self._write_pending(connection)
            connection.execute("DELETE FROM trial WHERE id = ?", (trial_id,))

    def note_stop(self, stop: StopReason) -> None:
        with self._transaction() as connection:
            connection.execute("UPDATE run SET stopped = ?", (json.dumps(asdict(stop)),))

    def close(self, ended: Ended) -> None:
        """Stores how the run ended, and merges the write-ahead log into the run file. A second call does nothing."""
        with self._lock:
            if self._closed:
                return
            try:
                with self._transaction() as connection:
                    self._write_pending(connection)
                    connection.execute("UPDATE run SET ended = ?, finished_unix_ns = ?", (ended, time.time_ns()))
                # While another process reads the file, the file stays in WAL mode. It is complete and readable.
                with suppress(sqlite3.OperationalError):
                    self._connection.execute("PRAGMA busy_timeout = 200")
                    self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                    self._connection.execute("PRAGMA journal_mode = DELETE").fetchone()
            finally:
                self._closed = True
                self._resources.close()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close("complete" if kind is None else "interrupted")

    def _append(self, table: str, row: Row) -> None:
        with self._lock:
            self._pending[table].append(row)
            if time.monotonic() - self._flushed_at >= FLUSH_PERIOD_S:
                with self._transaction() as connection:
                    self._write_pending(connection)

    def _write_pending(self, connection: sqlite3.Connection) -> None:
        for table, pending in self._pending.items():
            connection.executemany(_INSERTS[table], pending)
            pending.clear()
        self._flushed_at = time.monotonic()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock, explained_write(self.path):
            # Ctrl-C between two lines may have left a transaction open.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                # On a full disk, SQLite has already rolled back. After Ctrl-C between two lines, this code runs when
                # Python collects the generator; the file may then be closed.
                with suppress(sqlite3.ProgrammingError):
                    if self._connection.in_transaction:
                        self._connection.execute("ROLLBACK")
                raise


@contextmanager
def explained_write(path: Path) -> Iterator[None]:
    """Turns SQLite's errors in a `with` block that writes `path` into NotWrittenError. Other errors stay unchanged."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise NotWrittenError(f"{path}: cannot write the run file: {error}", hint=_SPACE) from error


def _serialize_new(info: RunInfo, cells: Sequence[Cell]) -> bytes:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        numbers = f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_NUMBER};"
        connection.executescript(f"{numbers} {CREATE_TABLES}")
        connection.execute(insert_into("run", rows.RUN.columns), rows.RUN.encode(info))
        connection.executemany(_INSERT_CELL, map(rows.CELL.encode, cells))
        return connection.serialize()


def _write_whole(path: Path, content: bytes) -> None:
    """Writes a file completely or not at all. After a kill of the writer, `resume` finds no incomplete file."""
    unfinished = path.with_name(f".{path.name}.new")
    try:
        with unfinished.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except OSError as error:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise NotWrittenError(f"{path}: cannot write the run file: {error.strerror}", hint=_SPACE) from error


@contextmanager
def _open(path: Path) -> Iterator[sqlite3.Connection]:
    """Opens a run file for writing, in WAL mode and with the current schema."""
    options: dict[str, Any] = {"timeout": _BUSY_TIMEOUT_S, "isolation_level": None, "check_same_thread": False}
    with closing(sqlite3.connect(path, **options)) as connection:
        check_identity(connection, path)
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA journal_mode = WAL").fetchone()
        connection.execute("PRAGMA synchronous = NORMAL")
        yield connection


@contextmanager
def locked_folder(path: Path) -> Iterator[None]:
    """Locks the folder of the run file `path` for one writer. The kernel releases the lock at the end of the process.
    weir does not lock the file itself: closing a descriptor of the file would release SQLite's locks. Raises UsageError
    if another weir holds the lock."""
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        problem = f"{path}: found another weir that writes this run, expected only one writer"
        raise UsageError(problem, hint="wait until the other weir ends, or stop the other weir") from error
    try:
        yield
    finally:
        os.close(descriptor)
