"""The folder of runs: which there are, what each found, and the report of each. Nothing outside of it is ever read.

A run is a folder that holds `run.weir`, or a kept load `NAME.weir`; its name is the path below the folder. What it found takes seconds of
CPU to compute: that is done for one run at a time, when it is asked for, and kept until the file changes.
"""

import os
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from weir.model.errors import WeirError
from weir.model.records import Validity
from weir.store import RUN_FILE_NAME, RunReader

SUFFIX = ".weir"
MOST_RUNS = 500
"""The latest of them; a page is no archive."""
_DEEPEST = 3


class UnknownRunError(Exception):
    """There is no run of that name in the folder."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A run in the list, as far as that is known without computing anything."""

    name: str
    title: str
    question: str
    kind: str
    """`run`, `load`, or empty of a file that cannot be read."""
    scale: str
    ended: str
    """`complete`, `interrupted`, or empty while it goes on or where its weir was killed."""
    started_unix_s: float
    problem: str = ""
    """Why it cannot be read."""

    def to_json(self) -> dict[str, Any]:
        """Its fields."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Found:
    """What a run came to."""

    sentence: str
    validity: Validity
    indicative: bool = False

    def to_json(self) -> dict[str, Any]:
        """Its fields."""
        return asdict(self)


class RunFolder:
    """A folder of runs. Its methods may be called from several threads.

    Args:
        path: the folder; it need not be there yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._computing = threading.Lock()
        self._known: dict[Path, tuple[tuple[int, int], Found]] = {}
        """With the file's time and size at that moment."""

    def entries(self) -> list[Entry]:
        """The runs, the latest first."""
        files = sorted(self._files(), key=_modified_ns, reverse=True)[:MOST_RUNS]
        return sorted((self._entry(path) for path in files), key=lambda entry: -entry.started_unix_s)

    def find(self, name: str) -> Path:
        """The file of a run.

        Raises:
            UnknownRunError: there is no such run in this folder, wherever the name or a link in it may lead.
        """
        try:
            root = self.path.resolve()
            path = (root / name).resolve()
            if path.is_dir():
                path = (path / RUN_FILE_NAME).resolve()
            if not (path.is_relative_to(root) and path.suffix == SUFFIX and path.is_file()):
                raise UnknownRunError(name)
        except (OSError, ValueError, RuntimeError):
            # A name that is too long, holds a null byte or leads in circles.
            raise UnknownRunError(name) from None
        return path

    def found(self, name: str) -> Found:
        """What a run came to.

        Raises:
            UnknownRunError: there is no such run.
            WeirError: its file is damaged, or a load has nothing in it yet.
        """
        path = self.find(name)
        with self._computing:
            state = path.stat()
            stamp = (state.st_mtime_ns, state.st_size)
            is_written = path.with_name(f"{path.name}-wal").exists()
            if is_written or path not in self._known or self._known[path][0] != stamp:
                self._known[path] = (stamp, _computed(path))
            return self._known[path][1]

    def report(self, name: str) -> str:
        """The report of a run, as a page.

        Raises:
            UnknownRunError: there is no such run.
            WeirError: its file is damaged, or the web bundle is missing.
        """
        # Here and not above: findings take as long to import as all else, and a page that nobody looks at needs none of it.
        from weir.findings import of_load, of_run
        from weir.report import render_html, render_load_html

        path = self.find(name)
        with self._computing, RunReader(path) as reader:
            return render_load_html(reader, of_load(reader)) if reader.info.is_load else render_html(reader, of_run(reader))

    def wait(self) -> None:
        """Waits until nothing is computed."""
        with self._computing:
            pass

    def _files(self) -> Iterator[Path]:
        """Run files in the folder, none of them through a link."""
        root = self.path
        for folder, below, names in os.walk(root):
            here = Path(folder)
            if len(here.relative_to(root).parts) >= _DEEPEST or RUN_FILE_NAME in names:
                below.clear()
            for name in names:
                path = here / name
                if path.suffix == SUFFIX and not name.startswith(".") and not path.is_symlink() and _is_text(path):
                    yield path

    def _entry(self, path: Path) -> Entry:
        relative = path.relative_to(self.path)
        has_folder = path.name == RUN_FILE_NAME and len(relative.parts) > 1
        name = (relative.parent if has_folder else relative).as_posix()
        try:
            with RunReader(path) as reader:
                info, ended = reader.info, reader.ended
            # A file that somebody else wrote may hold anything anywhere, and must not keep the others from being listed.
            return Entry(
                name=name,
                title=str(info.title),
                question=str(info.question),
                kind="load" if info.is_load else "run",
                scale=str(info.scale),
                ended=str(ended or ""),
                started_unix_s=int(info.started_unix_ns) / 1e9,
            )
        except (WeirError, ValueError, TypeError, OverflowError) as error:
            problem = error.message if isinstance(error, WeirError) else f"{path}: found values that weir does not write"
            return Entry(name, name, "", "", "", "", _modified_ns(path) / 1e9, problem=problem)


def _computed(path: Path) -> Found:
    # Here and not above, as in `report`.
    from weir.findings import of_load, of_run
    from weir.report.load import headline

    with RunReader(path) as reader:
        if reader.info.is_load:
            summary = of_load(reader).summary
            return Found(headline(summary), summary.verdict.validity)
        answer = of_run(reader).answer
        return Found(answer.sentence, answer.validity, answer.indicative)


def _modified_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _is_text(path: Path) -> bool:
    """Whether a path can stand in an address: bytes that are no UTF-8 cannot."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True
