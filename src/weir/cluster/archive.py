"""Packs files for a node into archives of limited size."""

import gzip
import io
import tarfile
from collections.abc import Collection, Mapping
from pathlib import Path

from weir.model.errors import UsageError

SENT_WITHIN_S = 300.0
"""Time limit for sending an archive to a node or from a node."""
MOST_BYTES = 256 * 2**20
"""Maximum size of an archive."""


def pack_folder(folder: Path, what: str, *, leave_out: Collection[str] = (), keep_times: bool = False) -> bytes:
    """Returns an archive of a folder without the files and folders in `leave_out`. See `pack_files` for errors.
    `keep_times` keeps the files' modification times: compiled Python and a JVM's class archive need them."""
    places = [path.relative_to(folder) for path in sorted(folder.rglob("*"))]
    files = {str(place): folder / place for place in places if not set(leave_out).intersection(place.parts)}
    return _pack(files, what, follow_links=False, **({} if keep_times else {"mtime": 0}))


def pack_files(files: Mapping[str, Path], what: str) -> bytes:
    """Returns an archive of files. The keys are paths in the archive. Only the owner may use the unpacked files. Equal
    files give equal bytes. Raises UsageError (with `what`) if a file is unreadable or the archive is too large."""
    return _pack(dict(sorted(files.items())), what, follow_links=True, mtime=0, mode=0o600)


def _pack(files: Mapping[str, Path], what: str, *, follow_links: bool, **attributes: int) -> bytes:
    def adjust(info: tarfile.TarInfo) -> tarfile.TarInfo:
        # `info` refers to the archive, so a deep copy would copy the archive.
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
            # Checks the size early, before all files are in memory.
            require_room(what, archive.tell())
    require_room(what, archive.tell())
    return archive.getvalue()


def require_room(what: str, size_bytes: int) -> None:
    """Raises UsageError with the name `what` if an archive of this size is too large."""
    if size_bytes > MOST_BYTES:
        found, most = (size / 2**20 for size in (size_bytes, MOST_BYTES))
        raise UsageError(f"{what}: found {found:.0f} MiB or more, expected at most {most:.0f} MiB to send to a node")
