"""Where the copies of databases lie, so that their servers can reach them and a killed weir's can be told from a living one's.

`ServiceFolder` imports nothing but the standard library: it travels by value to nodes of a cluster.
"""

import fcntl
import os
import pwd
import shutil
import stat
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Protocol

_UNPRIVILEGED = "nobody"
_FOLDER_PREFIX = "weir-services-"
_BEING_MADE_S = 60.0

Owner = tuple[int, int]
"""Numbers of a user and of its group."""


class Folder(Protocol):
    """A folder for services, on this machine or on another, whose paths are then meant."""

    path: Path
    owner: Owner | None
    """Whom its servers run as; None: whoever weir is."""

    def programs(self, name: str, fetched_to: Path) -> Path:
        """Programs that lie on this machine, where the server may read them."""

    def data(self, name: str) -> Path:
        """A new folder that the server owns."""

    def copy(self, data: Path, name: str) -> Path:
        """A copy of a data folder.

        Raises:
            OSError: there is no space for it, for one.
        """

    def write(self, name: str, text: str) -> Path:
        """Writes a file, by its path in this folder, that the server may read."""

    def read(self, name: str) -> str:
        """What is in such a file; nothing where there is none."""

    def drop(self, name: str) -> None:
        """Removes what `data` or `copy` made."""

    def remove(self) -> None:
        """Removes it with all that is in it."""


class ServiceFolder:
    """A `Folder` in another one, or, where an unprivileged server could not get there, beside other temporary files.

    Held by a lock, so that a later weir can tell it from what a killed one left, which it removes.

    Args:
        parent: the other folder.
    """

    def __init__(self, parent: Path) -> None:
        self.owner = _unprivileged() if os.geteuid() == 0 else None
        parent.mkdir(parents=True, exist_ok=True)
        if self.owner is not None and not _others_may_enter(parent):
            parent = Path(tempfile.gettempdir())
        remove_left_over(parent)
        self.path = Path(tempfile.mkdtemp(dir=parent, prefix=_FOLDER_PREFIX))
        self.path.chmod(0o711)
        self._lock = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def programs(self, name: str, fetched_to: Path) -> Path:
        """As `Folder`."""
        if self.owner is None or _others_may_enter(fetched_to):
            return fetched_to
        copy = self.path / f"{name}-programs"
        if not copy.exists():
            shutil.copytree(fetched_to, copy, symlinks=True, copy_function=_link_or_copy)
        return copy

    def data(self, name: str) -> Path:
        """As `Folder`."""
        path = self.path / name
        path.mkdir(mode=0o700)
        if self.owner is not None:
            os.chown(path, *self.owner)
        return path

    def copy(self, data: Path, name: str) -> Path:
        """As `Folder`: with owners and holes, and sharing the blocks where the file system can."""
        path = self.path / name
        done = subprocess.run(["cp", "-a", "--reflink=auto", data, path], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise OSError(f"{data}: cannot be copied: {done.stderr.strip().splitlines()[-1:]}")
        return path

    def write(self, name: str, text: str) -> Path:
        """As `Folder`."""
        path = self.path / name
        path.parent.mkdir(mode=0o755, exist_ok=True)
        path.write_text(text)
        path.chmod(0o644)
        return path

    def read(self, name: str) -> str:
        """As `Folder`."""
        with suppress(OSError):
            return (self.path / name).read_text(errors="replace")
        return ""

    def drop(self, name: str) -> None:
        """As `Folder`."""
        shutil.rmtree(self.path / name, ignore_errors=True)

    def remove(self) -> None:
        """As `Folder`."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def _unprivileged() -> Owner:
    """Whom a database runs as where weir is root, as which databases refuse to run. `initdb` wants a user with a name."""
    nobody = pwd.getpwnam(_UNPRIVILEGED)
    return nobody.pw_uid, nobody.pw_gid


def remove_left_over(parent: Path) -> None:
    """Removes the folders of weirs that were killed: those whose lock nobody holds, and that are not just being made."""
    for path in parent.glob(f"{_FOLDER_PREFIX}*"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime < _BEING_MADE_S:
                continue
            lock = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path)
            finally:
                os.close(lock)


def _link_or_copy(source: str, target: str) -> None:
    """A second name for a file where the file system is the same: MariaDB's program alone has 300 MB."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _others_may_enter(path: Path) -> bool:
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in (path, *path.parents))
