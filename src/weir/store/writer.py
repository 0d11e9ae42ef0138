"""Writes a run file while the run goes on.

Rows of intervals, samples and events are gathered and appended about once a second in one transaction, so that the disk does not
disturb the measurement. A trial exists for readers from the moment `finish_trial` returns; anything else is deleted by `resume`.
"""

import fcntl
import json
import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from weir.model.errors import NotWrittenError, UsageError, WeirError
from weir.model.records import Interval, Sample
from weir.model.run import Cell, RunInfo, TrialEvent, TrialResult
from weir.model.stop import Stop
from weir.store import rows, sample_rows
from weir.store.connection import bring_up_to_date, check_identity, explained
from weir.store.schema import APPLICATION_ID, SCHEMA_NUMBER, TABLES

Ended = Literal["complete", "interrupted"]

FLUSH_PERIOD_S = 1.0
_BUSY_TIMEOUT_S = 5.0
_SPACE = "check the space left on the disk"


def _insert(table: str, columns: Sequence[str]) -> str:
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"


_INSERTS = {
    "interval": _insert("interval", ("trial_id", *rows.INTERVAL_COLUMNS, "histogram")),
    **{table: _insert(table, ("trial_id", *columns)) for table, columns in sample_rows.TABLES.items()},
    "event": _insert("event", ("trial_id", "t_s", "kind", "detail", "duration_s")),
}


class RunWriter:
    """The one writer of a run file. Its methods may be called from several threads.

    As a context manager it closes the run as complete, or as interrupted when the block ends with an exception.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, folder_lock: int | None, info: RunInfo, cells: tuple[Cell, ...]) -> None:
        """Use `create` or `resume`."""
        self.path = path
        self.info = info
        self.cells = cells
        self._connection = connection
        self._folder_lock = folder_lock
        self._lock = threading.RLock()
        self._pending: dict[str, list[rows.Row]] = {table: [] for table in _INSERTS}
        self._flushed_at = time.monotonic()
        self._closed = False

    @classmethod
    def create(cls, path: Path, info: RunInfo, cells: Sequence[Cell]) -> Self:
        """Make a new run file at `path`, and its folder.

        A run has its folder for itself; loads without a study may be kept beside one another, and are never resumed.

        Raises:
            UsageError: there is a file already, or another weir writes into this folder.
            WeirError: the file cannot be written.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise WeirError(f"{path.parent}: cannot make the run folder: {error.strerror}", hint="name another with --out DIR") from error
        folder_lock = None if info.is_load else lock_folder(path)
        try:
            if path.exists():
                hint = f"weir report {path}, or another --out" if info.is_load else f"weir run --resume {path}, or another --out DIR"
                raise UsageError(f"{path}: found a file, expected none", hint=hint)
            _write_whole(path, _beginning(info, cells))
            with explained(path):
                connection = _open(path)
                try:
                    _write_ahead(connection)
                except BaseException:
                    connection.close()
                    raise
            return cls(path, connection, folder_lock, info, tuple(cells))
        except BaseException:
            if folder_lock is not None:
                os.close(folder_lock)
            raise

    @classmethod
    def resume(cls, path: Path) -> Self:
        """Open an earlier run to go on with it: trials that were not finished are deleted.

        Raises:
            UsageError: no file, not a weir run, of another schema, or another weir is writing it.
        """
        if not path.is_file():
            raise UsageError(f"{path}: found nothing there, expected a run file to resume", hint="weir run STUDY starts a new run")
        folder_lock = lock_folder(path)
        try:
            with explained(path):
                connection = _open(path)
                try:
                    schema = check_identity(connection, path)
                    _write_ahead(connection)
                    bring_up_to_date(connection, schema)
                    connection.execute("DELETE FROM trial WHERE finished = 0")
                    connection.execute("UPDATE run SET ended = NULL, finished_unix_ns = NULL, stopped = NULL")
                    info = rows.run_from_row(connection.execute(f"SELECT {', '.join(rows.RUN_COLUMNS)} FROM run").fetchone())
                    found = connection.execute(f"SELECT {', '.join(rows.CELL_COLUMNS)} FROM cell ORDER BY id").fetchall()
                    cells = tuple(rows.cell_from_row(row) for row in found)
                except BaseException:
                    connection.close()
                    raise
            return cls(path, connection, folder_lock, info, cells)
        except BaseException:
            os.close(folder_lock)
            raise

    def add_cells(self, cells: Sequence[Cell]) -> None:
        """Add cells that nobody knew of when the run began."""
        with self._transaction() as connection:
            connection.executemany(_insert("cell", rows.CELL_COLUMNS), [rows.cell_row(cell) for cell in cells])
        self.cells = (*self.cells, *cells)

    def begin_trial(self, cell: Cell, *, block: int, position: int, attempt: int, started_unix_ns: int) -> int:
        """Start a trial and return its id. Readers do not see it until it is finished."""
        columns = ("cell_id", "block", "position", "attempt", "started_unix_ns")
        with self._transaction() as connection:
            cursor = connection.execute(_insert("trial", columns), (cell.id, block, position, attempt, started_unix_ns))
            assert cursor.lastrowid is not None
            return cursor.lastrowid

    def add_interval(self, trial_id: int, interval: Interval) -> None:
        """Append what the generator saw in one interval."""
        self._append("interval", [rows.interval_row(trial_id, interval)])

    def add_sample(self, trial_id: int, t_s: float, sample: Sample) -> None:
        """Append a reading of processes and machine, `t_s` seconds since the load's start (negative before it)."""
        for table, row in sample_rows.rows_of(trial_id, t_s, sample):
            self._append(table, [row])

    def add_event(self, trial_id: int, event: TrialEvent) -> None:
        """Append something that happened."""
        self._append("event", [(trial_id, event.t_s, rows.storable(event.kind), rows.storable(event.detail), event.duration_s)])

    def finish_trial(self, trial_id: int, result: TrialResult) -> None:
        """Write the trial's result and mark it finished, in one transaction with the rows still pending.

        Raises:
            ValueError: there is no such unfinished trial.
        """
        assignments = ", ".join(f"{column} = ?" for column in rows.RESULT_COLUMNS)
        statement = f"UPDATE trial SET {assignments}, finished = 1 WHERE id = ? AND finished = 0"
        with self._transaction() as connection:
            self._write_pending(connection)
            histograms = [(trial_id, clock, data) for clock, data in result.histograms.items()]
            connection.executemany(_insert("histogram", ("trial_id", "clock", "data")), histograms)
            if connection.execute(statement, (*rows.result_row(result), trial_id)).rowcount != 1:
                raise ValueError(f"trial {trial_id} was not begun, or is finished already")
        # Between trials the disk disturbs nobody: from here on the trial survives a power cut as well.
        with self._lock, explained_write(self.path):
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()

    def discard_trial(self, trial_id: int) -> None:
        """Delete a trial that was begun, and all its rows."""
        with self._transaction() as connection:
            self._write_pending(connection)
            connection.execute("DELETE FROM trial WHERE id = ?", (trial_id,))

    def note_stop(self, stop: Stop) -> None:
        """Note why the run has no more blocks."""
        with self._transaction() as connection:
            connection.execute("UPDATE run SET stopped = ?", (json.dumps(stop.to_json()),))

    def close(self, ended: Ended) -> None:
        """Note how the run ended and leave one file behind. Closing twice does nothing."""
        with self._lock:
            if self._closed:
                return
            try:
                with self._transaction() as connection:
                    self._write_pending(connection)
                    connection.execute("UPDATE run SET ended = ?, finished_unix_ns = ?", (ended, time.time_ns()))
                try:
                    self._connection.execute("PRAGMA busy_timeout = 200")
                    self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                    self._connection.execute("PRAGMA journal_mode = DELETE").fetchone()
                except sqlite3.OperationalError:
                    # Somebody is reading: the file stays in WAL mode, complete and readable as it is.
                    pass
            finally:
                self._closed = True
                self._connection.close()
                if self._folder_lock is not None:
                    os.close(self._folder_lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close("complete" if kind is None else "interrupted")

    def _append(self, table: str, new: list[rows.Row]) -> None:
        with self._lock:
            self._pending[table].extend(new)
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
            # Ctrl-C between two lines may have left one open that nobody was in yet.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                # SQLite itself has rolled back what failed for want of space. And where Ctrl-C came between two lines, this runs when the
                # transaction is collected, and the file may be closed by then.
                with suppress(sqlite3.ProgrammingError):
                    if self._connection.in_transaction:
                        self._connection.execute("ROLLBACK")
                raise


@contextmanager
def explained_write(path: Path) -> Iterator[None]:
    """Like `explained`, for SQLite's errors alone: a caller's own mistakes keep their type."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise NotWrittenError(f"{path}: cannot write: {error}", hint=_SPACE) from error


def _beginning(info: RunInfo, cells: Sequence[Cell]) -> bytes:
    """The run file before its first trial."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        numbers = f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_NUMBER};"
        connection.executescript(f"{numbers} {TABLES}")
        connection.execute(_insert("run", rows.RUN_COLUMNS), rows.run_row(info))
        connection.executemany(_insert("cell", rows.CELL_COLUMNS), [rows.cell_row(cell) for cell in cells])
        return connection.serialize()
    finally:
        connection.close()


def _write_whole(path: Path, content: bytes) -> None:
    """Put a file at `path`, whole or not at all: what is there can always be resumed, whenever its writer was killed."""
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
        raise NotWrittenError(f"{path}: cannot write: {error.strerror}", hint=_SPACE) from error


def _open(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def _write_ahead(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = WAL").fetchone()
    connection.execute("PRAGMA synchronous = NORMAL")


def lock_folder(path: Path) -> int:
    """Hold the run folder for this writer; released by the kernel when the process ends, however it ends.

    The folder and not the file: closing any other descriptor of the file would drop the locks that SQLite holds on it.
    """
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise UsageError(f"{path}: found another weir writing this run, expected none", hint="wait for it, or end it first") from error
    return descriptor
