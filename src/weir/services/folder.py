"""Folders for copies of databases, which database servers can read. weir removes the folders of killed weir processes.
This module imports only the standard library, because weir sends `ServiceFolder` by value to nodes of a cluster."""

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

_UNPRIVILEGED = "nobody"
_FOLDER_PREFIX = "weir-services-"
_BEING_MADE_S = 60.0


class ServiceFolder:
    """A folder below `parent`, or below the system's temporary folder if a server's user cannot enter `parent`. A lock
    on the folder shows that its weir process is alive. A later weir process removes folders without a lock."""

    def __init__(self, parent: Path) -> None:
        self.owner: tuple[int, int] | None = None
        """Ids of the servers' user and group; None: weir's user."""
        if os.geteuid() == 0:
            # Databases refuse to run as root, and `initdb` needs a user with a name.
            nobody = pwd.getpwnam(_UNPRIVILEGED)
            self.owner = nobody.pw_uid, nobody.pw_gid
        parent.mkdir(parents=True, exist_ok=True)
        if self.owner is not None and not _is_enterable(parent):
            parent = Path(tempfile.gettempdir())
        remove_leftovers(parent)
        self.path = Path(tempfile.mkdtemp(dir=parent, prefix=_FOLDER_PREFIX))
        self.path.chmod(0o711)
        self._lock = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def programs(self, name: str, fetched_to: Path) -> Path:
        """Returns a folder with programs that the server can read: `fetched_to` or a copy of it."""
        if self.owner is None or _is_enterable(fetched_to):
            return fetched_to
        copy = self.path / f"{name}-programs"
        if not copy.exists():
            shutil.copytree(fetched_to, copy, symlinks=True, copy_function=_link_or_copy)
        return copy

    def data(self, name: str) -> Path:
        """Creates a data folder that belongs to the server's user. Returns its path."""
        path = self.path / name
        path.mkdir(mode=0o700)
        if self.owner is not None:
            os.chown(path, *self.owner)
        return path

    def copy(self, data: Path, name: str) -> Path:
        """Copies a data folder. Raises OSError if the copy fails, for example on a full disk."""
        # `cp` keeps owners and holes, and shares blocks if the file system can.
        path = self.path / name
        done = subprocess.run(["cp", "-a", "--reflink=auto", data, path], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise OSError(f"{data}: cannot be copied: {done.stderr.strip()[-300:]}")
        return path

    def write(self, name: str, text: str) -> Path:
        """Writes a file that the server may read."""
        path = self.path / name
        path.parent.mkdir(mode=0o755, exist_ok=True)
        path.write_text(text)
        path.chmod(0o644)
        return path

    def read(self, name: str) -> str:
        """Returns the content of a file, or an empty text if the file does not exist."""
        with suppress(OSError):
            return (self.path / name).read_text(errors="replace")
        return ""

    def drop(self, name: str) -> None:
        """Removes a folder that `data` or `copy` created."""
        shutil.rmtree(self.path / name, ignore_errors=True)

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def remove_leftovers(parent: Path) -> None:
    """Removes folders of killed weir processes: folders without a lock that are older than a minute."""
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
    """Creates a hard link to save space (MariaDB's program has 300 MB), or a copy if a link is not possible."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _is_enterable(path: Path) -> bool:
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in (path, *path.parents))
