"""Hands a run file to another machine that continues the run. weir sends the file's content, and later replaces the
file with the returned content in one transaction. Until then, the local file does not change."""

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
    """Content of the run file, complete even after the writer was killed."""

    def take_back(self, returned: Path) -> None:
        """Replaces the local run file with the returned file, completely or not at all. Readers that have the file open
        see the new content. Raises TargetError if the returned file is another run, or lacks a trial that the local
        file has. Raises WeirError if the returned file cannot be read, or if the local file cannot be written."""
        with closing(open_read_only(returned)) as source:
            with closing(open_read_only(self.path)) as here:
                missing = _finished(here.connection, self.path) - _finished(source.connection, returned)
            if missing:
                lost = f"found a returned file without {len(missing)} of the finished trials, expected all"
                raise TargetError(f"{self.path}: {lost}; the local file is unchanged")
            with explained_write(self.path), closing(sqlite3.connect(self.path)) as target:
                source.connection.backup(target)


@contextmanager
def away(path: Path) -> Iterator[AwayRun]:
    """Yields the run for another machine. Raises UsageError if `path` is not a run file, or has another writer."""
    with locked_folder(path):
        with closing(open_read_only(path)) as source, explained(path), closing(sqlite3.connect(":memory:")) as copy:
            source.connection.backup(copy)
            content = copy.serialize()
        yield AwayRun(path, content)


def _finished(connection: sqlite3.Connection, path: Path) -> set[tuple[int, int]]:
    """Returns id and start time of each finished trial, and of the run as the id 0."""
    with explained(path):
        return {
            (0, connection.execute("SELECT started_unix_ns FROM run").fetchone()[0]),
            *connection.execute("SELECT id, started_unix_ns FROM trial WHERE finished = 1"),
        }
