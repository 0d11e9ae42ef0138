"""Where the copies of databases lie, so that their servers can reach them and a killed weir's can be told from a living one's."""

import fcntl
import os
import pwd
import shutil
import stat
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from weir.lab.host import User
from weir.places import cache_folder

_UNPRIVILEGED = "nobody"
_FOLDER_PREFIX = "weir-services-"
_BEING_MADE_S = 60.0


class ServiceFolder:
    """Where the copies lie: in the cache folder, or, where an unprivileged server could not get there, beside other temporary files.

    Held by a lock, so that a later weir can tell it from what a killed one left, which it removes.
    """

    def __init__(self) -> None:
        self.user = _unprivileged() if os.geteuid() == 0 else None
        parent = cache_folder() / "services"
        parent.mkdir(parents=True, exist_ok=True)
        if self.user is not None and not _others_may_enter(parent):
            parent = Path(tempfile.gettempdir())
        remove_left_over(parent)
        self.path = Path(tempfile.mkdtemp(dir=parent, prefix=_FOLDER_PREFIX))
        self.path.chmod(0o711)
        self._lock = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def programs(self, name: str, fetched_to: Path) -> Path:
        """The programs, where the server may read them."""
        if self.user is None or _others_may_enter(fetched_to):
            return fetched_to
        copy = self.path / f"{name}-programs"
        if not copy.exists():
            shutil.copytree(fetched_to, copy, symlinks=True, copy_function=_link_or_copy)
        return copy

    def data(self, name: str) -> Path:
        """A new folder that the server owns."""
        path = self.path / name
        path.mkdir(mode=0o700)
        if self.user is not None:
            os.chown(path, self.user.uid, self.user.gid)
        return path

    def remove(self) -> None:
        """Removes it with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def _unprivileged() -> User:
    """Whom a database runs as where weir is root, as which databases refuse to run. `initdb` wants a user with a name."""
    nobody = pwd.getpwnam(_UNPRIVILEGED)
    return User(nobody.pw_uid, nobody.pw_gid)


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
