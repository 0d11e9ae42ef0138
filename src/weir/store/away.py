"""A run file that another machine goes on with: what it holds travels there, and what became of it takes its place in one transaction.

Until then nothing changes here, whatever becomes of the other machine, and no other weir writes it meanwhile.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from weir.model.errors import TargetError
from weir.store.connection import explained, open_read_only
from weir.store.writer import explained_write, lock_folder


@dataclass(frozen=True, slots=True)
class AwayRun:
    """A run that goes on elsewhere."""

    path: Path
    content: bytes
    """The run file, in one piece also where its writer was killed."""

    def take_back(self, returned: Path) -> None:
        """Has the file that came back take the place of the one here, wholly or not at all, also for those who read it just now.

        Raises:
            TargetError: it is not this run, or lacks a trial that was finished here.
            WeirError: it cannot be read, or not be written here.
        """
        with closing(open_read_only(returned)) as there, closing(open_read_only(self.path)) as here:
            missing = _finished(here.connection, self.path) - _finished(there.connection, returned)
        if missing:
            raise TargetError(
                f"{self.path}: what came back lacks {len(missing)} of its finished trials, expected them all; it stays as it was"
            )
        with (
            closing(open_read_only(returned)) as source,
            explained_write(self.path),
            closing(sqlite3.connect(self.path)) as target,
        ):
            source.connection.backup(target)


@contextmanager
def away(path: Path) -> Iterator[AwayRun]:
    """A run while it goes on elsewhere.

    Raises:
        UsageError: not a run file, or another weir is writing it.
    """
    folder_lock = lock_folder(path)
    try:
        yield AwayRun(path, _content(path))
    finally:
        os.close(folder_lock)


def _content(path: Path) -> bytes:
    with closing(open_read_only(path)) as source, explained(path), closing(sqlite3.connect(":memory:")) as copy:
        source.connection.backup(copy)
        return copy.serialize()


def _finished(connection: sqlite3.Connection, path: Path) -> set[tuple[int, int]]:
    """Which run it is, and which trials of it are finished: by when each began."""
    with explained(path):
        return {
            (0, connection.execute("SELECT started_unix_ns FROM run").fetchone()[0]),
            *connection.execute("SELECT id, started_unix_ns FROM trial WHERE finished = 1"),
        }
