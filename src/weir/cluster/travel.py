"""What travels to a node in one piece: how it is packed, and how large it may be."""

import gzip
import io
import tarfile
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from weir.model.errors import UsageError

SENT_WITHIN_S = 300.0
"""How long it may take to get there, or back."""
MOST_BYTES = 256 * 2**20
"""Of one piece."""


def packed(folder: Path, what: str, *, leave_out: Collection[str] = (), dated: bool = False) -> bytes:
    """A folder's files in an archive: the same bytes for the same files, whoever packs them when.

    Args:
        folder: it.
        what: what it is called in an error.
        leave_out: names of files and folders that stay here.
        dated: whether files keep their times. Compiled Python and a JVM's archive of classes hold for a file of that time alone.

    Raises:
        UsageError: one cannot be read, or they are too large.
    """
    places = [path.relative_to(folder) for path in sorted(folder.rglob("*"))]
    kept = {str(place): folder / place for place in places if not set(leave_out).intersection(place.parts)}
    return _archive(kept, what, _of_nobody if dated else _plain, follow_links=False)


def packed_files(files: Mapping[str, Path], what: str) -> bytes:
    """Some files in an archive, each for its owner alone: the same bytes for the same files.

    Args:
        files: them, by their paths in the archive.
        what: what they are called in an error.

    Raises:
        UsageError: one cannot be read, or they are too large.
    """
    return _archive(dict(sorted(files.items())), what, _private, follow_links=True)


def _archive(files: Mapping[str, Path], what: str, told: Callable[[tarfile.TarInfo], tarfile.TarInfo], *, follow_links: bool) -> bytes:
    archive = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=archive, mode="wb", compresslevel=1, mtime=0) as packing,
        tarfile.open(fileobj=packing, mode="w", dereference=follow_links) as tar,
    ):
        for name, path in files.items():
            try:
                tar.add(path, name, recursive=False, filter=told)
            except OSError as error:
                raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
            # Before the rest of it is in memory.
            require_room(what, archive.tell())
    require_room(what, archive.tell())
    return archive.getvalue()


def require_room(what: str, size_bytes: int) -> None:
    """Holds the size of something against what may travel.

    Raises:
        UsageError: it is too large.
    """
    if size_bytes > MOST_BYTES:
        found, most = (size / 2**20 for size in (size_bytes, MOST_BYTES))
        raise UsageError(f"{what}: found {found:.0f} MiB or more, expected at most {most:.0f} that travel to a node")


def _of_nobody(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid, info.gid, info.uname, info.gname = 0, 0, "", ""
    return info


def _plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.mtime = 0
    return _of_nobody(info)


def _private(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.mode = 0o600
    return _plain(info)
