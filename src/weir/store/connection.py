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
from weir.store.schema import APPLICATION_ID, SCHEMA_NUMBER

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


def check_identity(connection: sqlite3.Connection, path: Path) -> None:
    """Raise unless the open file is a weir run of the schema that this weir reads."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (schema,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION_ID:
        raise UsageError(f"{path}: found a file of another kind, expected a weir run file", hint=_NEXT_STEP)
    if schema > SCHEMA_NUMBER:
        raise UsageError(
            f"{path}: found run file schema {schema}, expected {SCHEMA_NUMBER}: it comes from a newer weir",
            hint="pip install --upgrade weirbench",
        )
    if schema != SCHEMA_NUMBER:
        raise UsageError(f"{path}: found run file schema {schema}, expected {SCHEMA_NUMBER}", hint=_NEXT_STEP)


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
        check_identity(connection, path)
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
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
