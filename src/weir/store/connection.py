"""Opening the run file, and turning what SQLite says into what a user can act on.

A reader must work while the run is still being written (WAL), on a read-only medium, and on a file whose writer was killed.
"""

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from weir.model.errors import UsageError, WeirError
from weir.store.schema import ADDED, APPLICATION_ID, OLDEST_READ, SCHEMA_NUMBER

_NEXT_STEP = "name a run folder that `weir run` made, or run the study again"


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Raise what goes wrong with the file at `path` as a `WeirError` that names it."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        text = str(error)
        if "not a database" in text:
            raise UsageError(f"{path}: found a file of another kind, expected a weir run file", hint=_NEXT_STEP) from error
        if any(sign in text for sign in ("malformed", "disk image", "no such table", "no such column")):
            found = "a damaged or truncated file"
            raise UsageError(f"{path}: found {found} ({text}), expected a whole weir run file", hint=_NEXT_STEP) from error
        raise WeirError(f"{path}: {text}", hint="check the permissions of the file and of its folder, and the space on the disk") from error
    except (ValueError, KeyError, TypeError) as error:
        # Values that no weir writes: JSON that is none, an unknown arm, a summary with keys missing.
        detail = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UsageError(f"{path}: found a row that weir did not write ({detail}), expected a weir run file", hint=_NEXT_STEP) from error


def check_identity(connection: sqlite3.Connection, path: Path) -> int:
    """The schema's number; raise unless the open file is a weir run of one that this weir reads."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (schema,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION_ID:
        raise UsageError(f"{path}: found a file of another kind, expected a weir run file", hint=_NEXT_STEP)
    if schema > SCHEMA_NUMBER:
        raise UsageError(
            f"{path}: found run file schema {schema}, expected {SCHEMA_NUMBER}: it comes from a newer weir",
            hint="pip install --upgrade weirbench",
        )
    if schema < OLDEST_READ:
        raise UsageError(f"{path}: found run file schema {schema}, expected {OLDEST_READ} to {SCHEMA_NUMBER}", hint=_NEXT_STEP)
    return int(schema)


def _columns_added_since(schema: int) -> dict[str, list[str]]:
    """By table, what a file of this schema lacks."""
    found: dict[str, list[str]] = {}
    for number, tables in ADDED.items():
        for table, columns in tables.items():
            if number > schema:
                found.setdefault(table, []).extend(columns)
    return found


def bring_up_to_date(connection: sqlite3.Connection, schema: int) -> None:
    """Give an older file, which is about to be written to, the columns that it lacks."""
    lacking = [(table, column) for table, columns in _columns_added_since(schema).items() for column in columns]
    # In one transaction: whoever is killed here leaves the file as it was.
    connection.execute("BEGIN IMMEDIATE")
    for table, column in lacking:
        connection.execute(f"ALTER TABLE {table} ADD COLUMN {column} TEXT")
    connection.execute(f"PRAGMA user_version = {SCHEMA_NUMBER}")
    connection.execute("COMMIT")


@dataclass(slots=True)
class ReadOnly:
    """An open connection for reading, and the temporary copy behind it where one was needed."""

    connection: sqlite3.Connection
    copy: "tempfile.TemporaryDirectory[str] | None" = None

    def close(self) -> None:
        """Close the connection and remove the copy."""
        self.connection.close()
        if self.copy is not None:
            self.copy.cleanup()


def _connect(path: Path, *, immutable: bool = False) -> sqlite3.Connection:
    options = "mode=ro&immutable=1" if immutable else "mode=ro"
    # Any thread may read, one at a time: the live page reads from the server's worker threads.
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?{options}", uri=True, check_same_thread=False)
    try:
        schema = check_identity(connection, path)
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        # The file stays as it is: views of this connection alone, in memory, stand in front of tables that lack columns.
        connection.execute("PRAGMA temp_store = MEMORY")
        for table, columns in _columns_added_since(schema).items():
            nulls = ", ".join(f"NULL AS {column}" for column in columns)
            connection.execute(f"CREATE TEMP VIEW {table} AS SELECT *, {nulls} FROM main.{table}")
    except BaseException:
        connection.close()
        raise
    return connection


def open_read_only(path: Path) -> ReadOnly:
    """Open the run file at `path` for reading.

    Raises:
        WeirError: it cannot be opened, is of another kind, truncated, or from a newer weir.
    """
    with explained(path):
        try:
            return ReadOnly(_connect(path))
        except sqlite3.OperationalError:
            # A file left in WAL mode wants a shared-memory file beside it, which a read-only medium cannot have.
            log = path.with_name(path.name + "-wal")
            if not log.exists() or log.stat().st_size == 0:
                return ReadOnly(_connect(path, immutable=True))
            copy = tempfile.TemporaryDirectory(prefix="weir-read-")
            try:
                for source in (path, log):
                    shutil.copyfile(source, Path(copy.name) / source.name)
                return ReadOnly(_connect(Path(copy.name) / path.name), copy)
            except BaseException:
                copy.cleanup()
                raise
