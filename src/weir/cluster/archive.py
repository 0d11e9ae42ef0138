"""Packs files for a node, with a limit on their size."""

import gzip
import io
import tarfile
from collections.abc import Collection, Mapping
from pathlib import Path

from weir.model.errors import UsageError

SENT_WITHIN_S = 300.0
"""Time limit for sending an archive in either direction."""
MOST_BYTES = 256 * 2**20
"""Largest archive."""


def pack_folder(folder: Path, what: str, *, leave_out: Collection[str] = (), keep_times: bool = False) -> bytes:
    """Packs a folder without the names in `leave_out`. The same files give the same bytes. See `pack_files` for errors.

    Compiled Python and a JVM's archive of classes need `keep_times`: they are valid only for files with the same time.
    """
    places = [path.relative_to(folder) for path in sorted(folder.rglob("*"))]
    files = {str(place): folder / place for place in places if not set(leave_out).intersection(place.parts)}
    return _pack(files, what, follow_links=False, **({} if keep_times else {"mtime": 0}))


def pack_files(files: Mapping[str, Path], what: str) -> bytes:
    """Packs files by their paths in the archive, with access for their owner only. The same files give the same bytes.
    Raises UsageError, with the name `what`, if a file cannot be read or they are too large."""
    return _pack(dict(sorted(files.items())), what, follow_links=True, mtime=0, mode=0o600)


def _pack(files: Mapping[str, Path], what: str, *, follow_links: bool, **attributes: int) -> bytes:
    def adjust(info: tarfile.TarInfo) -> tarfile.TarInfo:
        # A deep copy would copy the archive, to which `info` refers.
        return info.replace(uid=0, gid=0, uname="", gname="", deep=False, **attributes)  # type: ignore[arg-type]

    archive = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=archive, mode="wb", compresslevel=1, mtime=0) as packing,
        tarfile.open(fileobj=packing, mode="w", dereference=follow_links) as tar,
    ):
        for name, path in files.items():
            try:
                tar.add(path, name, recursive=False, filter=adjust)
            except OSError as error:
                raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
            # Checked early, before the rest is in memory.
            require_room(what, archive.tell())
    require_room(what, archive.tell())
    return archive.getvalue()


def require_room(what: str, size_bytes: int) -> None:
    """Raises a UsageError if the size exceeds the limit."""
    if size_bytes > MOST_BYTES:
        found, most = (size / 2**20 for size in (size_bytes, MOST_BYTES))
        raise UsageError(f"{what}: found {found:.0f} MiB or more, expected at most {most:.0f} MiB to send to a node")
