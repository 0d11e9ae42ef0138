"""What travels to a node in one piece: how it is packed, and how large it may be."""

import gzip
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

from weir.model.errors import UsageError

SENT_WITHIN_S = 300.0
"""How long it may take to get there, or back."""
MOST_BYTES = 256 * 2**20
"""Of one piece."""


def packed(folder: Path, what: str) -> bytes:
    """A folder's files in an archive: the same bytes for the same files, whoever packs them when.

    Args:
        folder: it.
        what: what it is called in an error.

    Raises:
        UsageError: they are too many.
    """
    archive = io.BytesIO()
    with gzip.GzipFile(fileobj=archive, mode="wb", compresslevel=1, mtime=0) as file, tarfile.open(fileobj=file, mode="w") as tar:
        for path in sorted(folder.rglob("*")):
            tar.add(path, path.relative_to(folder), recursive=False, filter=_plain)
    require_room(what, archive.tell())
    return archive.getvalue()


def packed_files(files: Mapping[str, Path], what: str) -> bytes:
    """Some files in an archive, each for its owner alone: the same bytes for the same files.

    Args:
        files: them, by their paths in the archive.
        what: what they are called in an error.

    Raises:
        UsageError: one cannot be read, or they are too many.
    """
    archive = io.BytesIO()
    with gzip.GzipFile(fileobj=archive, mode="wb", compresslevel=1, mtime=0) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
        for path, file in sorted(files.items()):
            try:
                content = file.read_bytes()
            except OSError as error:
                raise UsageError(f"{file}: cannot be read: {error.strerror}") from None
            info = tarfile.TarInfo(path)
            info.size, info.mode = len(content), 0o600
            tar.addfile(info, io.BytesIO(content))
    require_room(what, archive.tell())
    return archive.getvalue()


def require_room(what: str, size_bytes: int) -> None:
    """Holds the size of something against what may travel.

    Raises:
        UsageError: it is too large.
    """
    if size_bytes > MOST_BYTES:
        found, most = (size / 2**20 for size in (size_bytes, MOST_BYTES))
        raise UsageError(f"{what}: found {found:.0f} MiB, expected at most {most:.0f} that travel to a node")


def _plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.mtime, info.uid, info.gid, info.uname, info.gname = 0, 0, 0, "", ""
    return info
