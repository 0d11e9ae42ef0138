"""A run file that another machine continues. weir sends the content there; the result replaces the file in one
transaction. Until then the file here does not change, whatever happens there, and no other weir writes the file."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from weir.model.errors import TargetError
from weir.store.connection import explained, open_read_only
from weir.store.writer import explained_write, locked_folder


@dataclass(frozen=True, slots=True)
class AwayRun:
    """A run that another machine continues."""

    path: Path
    content: bytes
    """Content of the run file, complete even if its writer was killed."""

    def take_back(self, returned: Path) -> None:
        """Replaces the file here with the returned one, completely or not at all; readers that have the file open see
        the new content. Raises TargetError (the returned file is another run, or lacks a trial that was finished here),
        WeirError (the returned file cannot be read, or the file here cannot be written)."""
        with closing(open_read_only(returned)) as source:
            with closing(open_read_only(self.path)) as here:
                missing = _finished(here.connection, self.path) - _finished(source.connection, returned)
            if missing:
                lost = f"found a returned file without {len(missing)} of the finished trials, expected all"
                raise TargetError(f"{self.path}: {lost}; the file here is unchanged")
            with explained_write(self.path), closing(sqlite3.connect(self.path)) as target:
                source.connection.backup(target)


@contextmanager
def away(path: Path) -> Iterator[AwayRun]:
    """Yields a run that another machine continues. Raises UsageError: not a run file, or another weir writes it."""
    with locked_folder(path):
        with closing(open_read_only(path)) as source, explained(path), closing(sqlite3.connect(":memory:")) as copy:
            source.connection.backup(copy)
            content = copy.serialize()
        yield AwayRun(path, content)


def _finished(connection: sqlite3.Connection, path: Path) -> set[tuple[int, int]]:
    """Returns the run's identity and its finished trials, sorted by start time."""
    with explained(path):
        return {
            (0, connection.execute("SELECT started_unix_ns FROM run").fetchone()[0]),
            *connection.execute("SELECT id, started_unix_ns FROM trial WHERE finished = 1"),
        }
