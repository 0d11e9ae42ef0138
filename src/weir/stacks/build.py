"""Builds each version of a stack's sources once, in the cache.

weir copies the stack's folder to `CACHE/stacks/ID/HASH/` and builds the copy. weir never moves the copy, because a
build may contain absolute paths, as Python environments do. Sources outside the stack's folder (`build.beside`) keep
their position relative to this folder. At the end of a build, weir writes a marker file. Without it, weir builds again.
"""

import fcntl
import hashlib
import shlex
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from weir.model.errors import TargetError, UsageError
from weir.paths import find_cache_folder, find_node_tools
from weir.stacks.manifest import Stack, fill_fields
from weir.stacks.toolchain import build_base_environment, find_jdk_version

MARKER = ".weir-built"
"""Name of the file that marks a complete build."""
IGNORED = frozenset({"__pycache__", ".venv", "venv", "target", "node_modules", ".git"})
"""Names of files and folders in a stack's folder that are not sources."""

RunCommand = Callable[[list[str], Path, dict[str, str], Path], int]
"""Function that runs a command (argv, working directory, environment, log file) and returns the exit status."""


@dataclass(frozen=True, slots=True)
class BuiltStack:
    """A stack that is ready to start."""

    stack: Stack
    folder: Path
    """The built copy. For a stack that starts in place: the stack's own folder."""
    artifact_bytes: int | None

    def log_path(self, name: str) -> Path:
        """Returns the path of the log file `name`, for starts of the stack outside trials."""
        if self.stack.in_place:
            return find_cache_folder() / "commands" / f"{self.stack.id}-{name}.log"
        return self.folder.with_name(f"{self.folder.name}-{name}.log")


def build(stack: Stack, run: RunCommand, *, on_build: Callable[[Path], None] = lambda _: None) -> BuiltStack:
    """Builds a stack if the cache does not contain the build. Before a build, calls `on_build` with the path of the
    build's log. Raises UsageError if a needed tool is missing, and TargetError if the build fails."""
    unmet = stack.unmet()
    if unmet:
        raise UsageError(f"{stack.label}: " + "; ".join(f"needs {need}" for need in unmet), hint="weir doctor")
    if stack.in_place:
        return BuiltStack(stack, stack.folder, None)
    root = _find_root(stack)
    folder = root / stack.folder.name
    root.parent.mkdir(parents=True, exist_ok=True)
    with (root.parent / f"{root.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (root / MARKER).is_file():
            _build_anew(stack, root, folder, run, on_build)
    return BuiltStack(stack, folder, _measure_size_bytes(folder, stack))


def find_build(stack: Stack) -> Path | None:
    """Returns the cache folder with the build of a stack's current sources. None without such a build."""
    root = _find_root(stack)
    return root if (root / MARKER).is_file() else None


def _find_root(stack: Stack) -> Path:
    return find_cache_folder() / "stacks" / stack.id / hash_content(stack)


def hash_content(stack: Stack) -> str:
    """Returns a digest of all inputs of a build: the sources, the command, weir's Python, and the JDK. Raises
    UsageError if a source is missing. For a stack that starts in place, returns a digest of the manifest."""
    if stack.in_place:
        return hashlib.sha256(stack.manifest.model_dump_json().encode()).hexdigest()[:16]
    command = stack.build.command if stack.build else ""
    made_with = [sys.executable, sys.version, command, *filter(None, [find_jdk_version(stack.needs)])]
    digest = hashlib.sha256(" ".join(made_with).encode())
    for path in _list_files(stack):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(stack.folder.parent)}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:16]


def _build_anew(stack: Stack, root: Path, folder: Path, run: RunCommand, on_build: Callable[[Path], None]) -> None:
    with suppress(FileNotFoundError):
        shutil.rmtree(root)
    for path in _list_files(stack):
        copy = root / path.relative_to(stack.folder.parent)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy)
    recipe = stack.build
    if recipe is not None:
        log = root.parent / f"{root.name}.log"
        log.write_bytes(b"")
        on_build(log)
        tools = find_node_tools()
        fields = {"python": sys.executable, "npm": shlex.join(tools.npm) if tools else "npm"}
        command = ["/bin/sh", "-c", fill_fields(recipe.command, fields)]
        status = run(command, folder, build_base_environment(stack.needs), log)
        if status != 0:
            failed = f"{stack.label}: the build ended with exit status {status}; log: {log}"
            lines = [failed, *log.read_text(errors="replace").strip().splitlines()[-3:]]
            raise TargetError("\n  ".join(lines), hint=f"weir stacks check {stack.label}")
        if recipe.artifact is not None and not (folder / recipe.artifact).exists():
            key = f"{stack.folder / 'stack.toml'}: build.artifact"
            raise TargetError(f"{key}: found no {recipe.artifact!r}, expected the build to create it; log: {log}")
    (root / MARKER).touch()


def _list_files(stack: Stack) -> list[Path]:
    """Returns the stack's sources: the files in the stack's folder, and the files that match `build.beside`."""
    files = set(_list_files_below(stack.folder))
    above = stack.folder.parent
    for pattern in stack.build.beside if stack.build else ():
        beside = list(above.glob(pattern))
        found = {file for path in beside for file in (_list_files_below(path) if path.is_dir() else [path])}
        if not found:
            key = f"{stack.folder / 'stack.toml'}: build.beside"
            raise UsageError(f"{key}: found {pattern!r}, expected a pattern that matches files in {above}")
        files |= found
    return sorted(files)


def _list_files_below(folder: Path) -> list[Path]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return [path for path in files if not IGNORED.intersection(path.relative_to(folder).parts)]


def _measure_size_bytes(folder: Path, stack: Stack) -> int | None:
    if stack.build is None or stack.build.artifact is None:
        return None
    artifact = folder / stack.build.artifact
    if artifact.is_file():
        return artifact.stat().st_size
    return sum(path.lstat().st_size for path in artifact.rglob("*") if not path.is_dir())
