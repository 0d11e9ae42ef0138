"""The folder of runs: lists the runs and computes their answers and reports. weir reads no file outside the folder. A
run is a folder with `run.weir`, or a saved load `NAME.weir`. The run's name is its path in the folder of runs. An
answer takes seconds of CPU time, so `RunFolder` computes one at a time and keeps it until the file changes."""

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from weir.model.errors import WeirError
from weir.store import RUN_FILE_NAME, RunReader

if TYPE_CHECKING:
    from weir.findings.types import Answer

SUFFIX = ".weir"
MOST_RUNS = 500
"""Maximum number of runs in the list. The list shows the runs whose files changed last."""
_DEEPEST = 3


class UnknownRunError(Exception):
    """Raised if the folder has no run with the requested name."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A run in the list. It has only facts that weir reads without a long computation."""

    name: str
    title: str
    question: str
    kind: str
    """`run` or `load`; empty if the file cannot be read."""
    scale: str
    ended: str
    """`complete` or `interrupted`. Empty while the run continues, or after a kill of weir."""
    started_unix_s: float
    problem: str = ""


class RunFolder:
    """A folder of runs. The folder need not exist yet. Several threads may call the methods at the same time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._computing = threading.Lock()
        self._known: dict[Path, tuple[tuple[int, int], Answer]] = {}
        """A dict from path of a run file to: modification time, size, and answer from the file."""

    def entries(self) -> list[Entry]:
        files = sorted(self._files(), key=_modified_ns, reverse=True)[:MOST_RUNS]
        return sorted((self._entry(path) for path in files), key=lambda entry: -entry.started_unix_s)

    def find(self, name: str) -> Path:
        """Returns the file of a run. Raises UnknownRunError without such a run, or if the path leads out of the folder."""
        try:
            root = self.path.resolve()
            path = (root / name).resolve()
            if path.is_dir():
                path = (path / RUN_FILE_NAME).resolve()
            if not (path.is_relative_to(root) and path.suffix == SUFFIX and path.is_file()):
                raise UnknownRunError(name)
        except (OSError, ValueError, RuntimeError):
            # The name is too long, contains a null byte, or is a link that leads to itself.
            raise UnknownRunError(name) from None
        return path

    def found(self, name: str) -> "Answer":
        """Returns the answer of a run. Raises UnknownRunError if the folder has no such run. Raises WeirError if the
        run file is damaged, or has no results yet."""
        # Imported late: the import is slow, and a page without viewers does not need findings.
        from weir.findings import of_run

        path = self.find(name)
        with self._computing:
            state = path.stat()
            stamp = (state.st_mtime_ns, state.st_size)
            is_written = path.with_name(f"{path.name}-wal").exists()
            if is_written or path not in self._known or self._known[path][0] != stamp:
                with RunReader(path) as reader:
                    self._known[path] = (stamp, of_run(reader).answer)
            return self._known[path][1]

    def report(self, name: str) -> str:
        """Returns the report of a run in HTML. Raises UnknownRunError if the folder has no such run. Raises WeirError
        if the run file is damaged, or the web bundle is missing."""
        from weir.findings import of_run
        from weir.report import render_html

        path = self.find(name)
        with self._computing, RunReader(path) as reader:
            return render_html(reader, of_run(reader))

    def wait(self) -> None:
        with self._computing:
            pass

    def _files(self) -> Iterator[Path]:
        """Yields the run files in the folder. Does not follow links."""
        for folder, below, names in os.walk(self.path):
            here = Path(folder)
            if len(here.relative_to(self.path).parts) >= _DEEPEST or RUN_FILE_NAME in names:
                below.clear()
            for path in (here / name for name in names):
                # A URL cannot contain a path that is not UTF-8.
                is_text = str(path).encode(errors="ignore").decode() == str(path)
                if path.suffix == SUFFIX and not path.name.startswith(".") and not path.is_symlink() and is_text:
                    yield path

    def _entry(self, path: Path) -> Entry:
        relative = path.relative_to(self.path)
        has_folder = path.name == RUN_FILE_NAME and len(relative.parts) > 1
        name = (relative.parent if has_folder else relative).as_posix()
        try:
            with RunReader(path) as reader:
                info, ended = reader.info, reader.ended
            # A foreign file may contain any values. Errors in it must not hide the other runs.
            title, question, scale = map(str, (info.title, info.question, info.scale))
            kind, started_s = "load" if info.is_load else "run", int(info.started_unix_ns) / 1e9
            return Entry(name, title, question, kind, scale, str(ended or ""), started_s)
        except (WeirError, ValueError, TypeError, OverflowError) as error:
            foreign = f"{path}: found values that weir does not write, expected a run file of weir"
            problem = error.message if isinstance(error, WeirError) else foreign
            return Entry(name, name, "", "", "", "", _modified_ns(path) / 1e9, problem)


def _modified_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
