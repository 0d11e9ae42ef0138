"""Builds a stack in the cache, once per content of what it is made from.

The stack's folder is copied to `CACHE/stacks/ID/HASH/` and built there, since a build may leave absolute paths in what it makes (a Python
environment does). What it is built with from beside its folder is copied beside the copy, so that the copies lie to each other as their
sources do. They count as built when a marker lies beside them, which is written last; without it they are started over.
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
from weir.places import cache_folder, node_tools
from weir.stacks.manifest import Stack, filled
from weir.stacks.tools import base_environment, jdk_version

MARKER = ".weir-built"
"""The file that lies in the folder of a build that was finished."""
LEFT_OUT = frozenset({"__pycache__", ".venv", "venv", "target", "node_modules", ".git"})
"""What lies in a stack's folder and is no source of it."""

RunCommand = Callable[[list[str], Path, dict[str, str], Path], int]
"""Runs a command (argv, working directory, environment, log) to its end and gives its exit status."""


@dataclass(frozen=True, slots=True)
class BuiltStack:
    """A stack that can be started."""

    stack: Stack
    folder: Path
    """The built copy."""
    artifact_bytes: int | None


def build(stack: Stack, run: RunCommand, *, on_build: Callable[[Path], None] = lambda _: None) -> BuiltStack:
    """Builds a stack unless that was done before.

    Args:
        stack: the stack.
        run: runs the build command.
        on_build: called with the log's path when something has to be built.

    Raises:
        UsageError: something that building or running it needs is missing.
        TargetError: the build failed; the message names its log.
    """
    unmet = stack.unmet()
    if unmet:
        raise UsageError(f"{stack.label}: " + "; ".join(f"needs {need}" for need in unmet), hint="weir doctor")
    root = _root(stack)
    folder = root / stack.folder.name
    root.parent.mkdir(parents=True, exist_ok=True)
    with (root.parent / f"{root.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (root / MARKER).is_file():
            _build_anew(stack, root, folder, run, on_build)
    return BuiltStack(stack, folder, _size_bytes(folder, stack))


def built_before(stack: Stack) -> Path | None:
    """The folder in the cache that the build of a stack has filled; None if it was not built here as it is now.

    Raises:
        UsageError: what it is built with is not there.
    """
    root = _root(stack)
    return root if (root / MARKER).is_file() else None


def _root(stack: Stack) -> Path:
    return cache_folder() / "stacks" / stack.id / content_hash(stack)


def content_hash(stack: Stack) -> str:
    """Names what a build depends on: every file of the stack's folder and of what it is built with, the command, the Python it may use, and
    the JDK that it is built for.

    Raises:
        UsageError: what it is built with is not there.
    """
    command = stack.build.command if stack.build else ""
    made_with = [sys.executable, sys.version, command, *filter(None, [jdk_version(stack.needs)])]
    digest = hashlib.sha256(" ".join(made_with).encode())
    for path in _files(stack):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(stack.folder.parent)}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:16]


def _build_anew(stack: Stack, root: Path, folder: Path, run: RunCommand, on_build: Callable[[Path], None]) -> None:
    with suppress(FileNotFoundError):
        shutil.rmtree(root)
    for path in _files(stack):
        copy = root / path.relative_to(stack.folder.parent)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy)
    recipe = stack.build
    if recipe is not None:
        log = root.parent / f"{root.name}.log"
        log.write_bytes(b"")
        on_build(log)
        command = ["/bin/sh", "-c", filled(recipe.command, _build_fields())]
        status = run(command, folder, base_environment(stack.needs), log)
        if status != 0:
            tail = log.read_text(errors="replace").strip().splitlines()[-3:]
            raise TargetError(
                "\n  ".join([f"{stack.label}: its build ended with exit status {status}; log: {log}", *tail]),
                hint=f"weir stacks check {stack.label}",
            )
        if recipe.artifact is not None and not (folder / recipe.artifact).exists():
            raise TargetError(f"{stack.folder / 'stack.toml'}: build.artifact: the build left no {recipe.artifact!r}; log: {log}")
    (root / MARKER).touch()


def _build_fields() -> dict[str, str]:
    tools = node_tools()
    return {"python": sys.executable, "npm": shlex.join(tools.npm) if tools else "npm"}


def _files(stack: Stack) -> list[Path]:
    """The files that it is built from: its own, and those beside its folder that it is built with."""
    files = set(_files_below(stack.folder))
    above = stack.folder.parent
    for pattern in stack.build.beside if stack.build else ():
        found = {file for path in above.glob(pattern) for file in (_files_below(path) if path.is_dir() else [path])}
        if not found:
            raise UsageError(f"{stack.folder / 'stack.toml'}: build.beside: found {pattern!r}, expected what matches a file in {above}")
        files |= found
    return sorted(files)


def _files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and not LEFT_OUT.intersection(path.relative_to(folder).parts)]


def _size_bytes(folder: Path, stack: Stack) -> int | None:
    recipe = stack.build
    if recipe is None or recipe.artifact is None:
        return None
    artifact = folder / recipe.artifact
    if artifact.is_file():
        return artifact.stat().st_size
    return sum(path.lstat().st_size for path in artifact.rglob("*") if not path.is_dir())
