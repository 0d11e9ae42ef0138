"""Finds and opens run files, and turns SQLite's errors into messages with a next step. weir can read a run file while a
writer writes the file (WAL), on a read-only medium, and after the writer was killed."""

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from weir.model.errors import UsageError, WeirError
from weir.store.schema import APPLICATION_ID, SCHEMA_NUMBER

RUN_FILE_NAME = "run.weir"
_NEXT_STEP = "name a run folder that `weir run` created, or run the study again"


def find_run(path: Path) -> Path:
    """Returns the run file `path`, or `run.weir` in the folder `path`. Raises UsageError if neither exists."""
    hint = "to create a run folder: weir run STUDY"
    if path.is_dir():
        inside = path / RUN_FILE_NAME
        if inside.is_file():
            return inside
        raise UsageError(f"{path}: found a folder without {RUN_FILE_NAME}, expected the folder of a run", hint=hint)
    if path.is_file():
        return path
    found = "something that is not a file" if path.exists() else "no such file"
    raise UsageError(f"{path}: found {found}, expected a run folder or a {RUN_FILE_NAME} file", hint=hint)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Runs a `with` block that reads the file at `path`. Turns errors into a WeirError that names the file."""

    def of_kind(found: str, expected: str = "a weir run file") -> UsageError:
        return UsageError(f"{path}: found {found}, expected {expected}", hint=_NEXT_STEP)

    try:
        yield
    except sqlite3.DatabaseError as error:
        text = str(error)
        if "not a database" in text:
            raise of_kind("a file of another kind") from error
        if any(sign in text for sign in ("malformed", "disk image", "no such table", "no such column")):
            raise of_kind(f"a damaged or truncated file ({text})", "a complete weir run file") from error
        hint = "check the permissions of the file and of its folder, and the space left on the disk"
        raise WeirError(f"{path}: cannot read the run file: {text}", hint=hint) from error
    except (ValueError, KeyError, TypeError) as error:
        # Values that weir does not write: invalid JSON, an unknown arm, a summary that lacks keys.
        detail = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise of_kind(f"a row that weir did not write ({detail})") from error


def check_identity(connection: sqlite3.Connection, path: Path) -> None:
    """Raises UsageError if the open file is not a run file, or has a schema that this weir cannot read."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (schema,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION_ID:
        raise UsageError(f"{path}: found a file of another kind, expected a weir run file", hint=_NEXT_STEP)
    if schema != SCHEMA_NUMBER:
        is_newer = schema > SCHEMA_NUMBER
        found = f"{path}: found run file schema {schema}, expected {SCHEMA_NUMBER}: the file comes from"
        hint = "pip install --upgrade weirbench" if is_newer else _NEXT_STEP
        raise UsageError(f"{found} {'a newer' if is_newer else 'an older'} weir", hint=hint)


@dataclass(slots=True)
class ReadOnly:
    """A read-only connection. `copy`: folder with a temporary copy of the file, if SQLite cannot read the original."""

    connection: sqlite3.Connection
    copy: "tempfile.TemporaryDirectory[str] | None" = None

    def close(self) -> None:
        self.connection.close()
        if self.copy is not None:
            self.copy.cleanup()


def _connect(path: Path, *, immutable: bool = False) -> sqlite3.Connection:
    options = "mode=ro&immutable=1" if immutable else "mode=ro"
    # The live page reads from several worker threads, but only from one at a time.
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?{options}", uri=True, check_same_thread=False)
    try:
        check_identity(connection, path)
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def open_read_only(path: Path) -> ReadOnly:
    """Opens a run file for reading. Raises WeirError for an unreadable, truncated or other file, or another schema."""
    with explained(path):
        try:
            return ReadOnly(_connect(path))
        except sqlite3.OperationalError:
            # A file in WAL mode needs a shared-memory file in the same folder. A read-only medium cannot have one.
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
