"""Hands a run file to another machine, which continues the run. weir sends the content of the local file. After the run
file returns, weir replaces the local file in one transaction. Until then, the local file does not change."""

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
    """Content of the run file. The content is complete, even after a kill of the writer."""

    def take_back(self, returned: Path) -> None:
        """Replaces the local run file with the returned file, completely or not at all. Open readers of the local file
        see the new content. Raises TargetError if the returned file belongs to a different run, or lacks a trial of the
        local file. Raises WeirError if weir cannot read the returned file, or cannot write the local file."""
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
    """Locks the run and yields it for another machine. Raises UsageError if `path` is no run file or already locked."""
    with locked_folder(path):
        with closing(open_read_only(path)) as source, explained(path), closing(sqlite3.connect(":memory:")) as copy:
            source.connection.backup(copy)
            content = copy.serialize()
        yield AwayRun(path, content)


def _finished(connection: sqlite3.Connection, path: Path) -> set[tuple[int, int]]:
    """Returns pairs of id and start time: one for each finished trial, and one with the id 0 for the run."""
    with explained(path):
        return {
            (0, connection.execute("SELECT started_unix_ns FROM run").fetchone()[0]),
            *connection.execute("SELECT id, started_unix_ns FROM trial WHERE finished = 1"),
        }
