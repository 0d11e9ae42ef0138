"""Builds a stack in the cache, once per content of its folder.

The stack's folder is copied to `CACHE/stacks/ID/HASH/` and built there, since a build may leave absolute paths in what it makes (a Python
environment does). The copy counts as built when it holds the marker, which is written last; a copy without it is started over.
"""

import fcntl
import hashlib
import os
import shlex
import shutil
import sys
import sysconfig
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from weir.model.errors import TargetError, UsageError
from weir.places import cache_folder, node_tools
from weir.stacks.manifest import Stack, filled

_MARKER = ".weir-built"
_LEFT_OUT = {"__pycache__", ".venv", "venv", "target", "node_modules", ".git"}

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
        UsageError: a tool that the build needs is missing.
        TargetError: the build failed; the message names its log.
    """
    missing = missing_needs(stack)
    if missing:
        raise UsageError(f"{stack.label}: needs {', '.join(missing)}, not found on the PATH", hint="weir doctor")
    folder = cache_folder() / "stacks" / stack.manifest.id / content_hash(stack)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / _MARKER).is_file():
            _build_anew(stack, folder, run, on_build)
    return BuiltStack(stack, folder, _size_bytes(folder, stack))


def content_hash(stack: Stack) -> str:
    """Names what a build depends on: every file of the stack's folder, and the Python it may use."""
    digest = hashlib.sha256(f"{sys.executable} {sys.version}".encode())
    for path in _files(stack.folder):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(stack.folder)}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:16]


def missing_needs(stack: Stack) -> list[str]:
    """The tools among the stack's needs that are not on its PATH."""
    return [need for need in stack.needs if shutil.which(need.split(">=")[0], path=search_path()) is None]


def base_environment() -> dict[str, str]:
    """What a build and a stack get of weir's own environment: enough to run and to reach a package index, nothing that tunes a server."""
    kept = ("HOME", "LANG", "LC_ALL", "TMPDIR", "USER", "JAVA_HOME")
    prefixes = ("UV_", "PIP_", "SSL_", "NPM_", "npm_", "MAVEN_", "CARGO_")
    names = [name for name in os.environ if name in kept or name.startswith(prefixes) or name.lower().endswith("_proxy")]
    return {**{name: os.environ[name] for name in names}, "PATH": search_path()}


def search_path() -> str:
    """The PATH of builds and stacks: the user's, then what was installed beside weir (uv, and Node where the machine has none)."""
    tools = node_tools()
    beside = [sysconfig.get_path("scripts"), *([str(tools.folder)] if tools else [])]
    return os.pathsep.join([os.environ.get("PATH", os.defpath), *beside])


def _build_anew(stack: Stack, folder: Path, run: RunCommand, on_build: Callable[[Path], None]) -> None:
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)
    shutil.copytree(stack.folder, folder, ignore=shutil.ignore_patterns(*_LEFT_OUT))
    recipe = stack.manifest.build
    if recipe is not None:
        log = folder.parent / f"{folder.name}.log"
        log.write_bytes(b"")
        on_build(log)
        status = run(["/bin/sh", "-c", filled(recipe.command, _build_fields())], folder, base_environment(), log)
        if status != 0:
            tail = log.read_text(errors="replace").strip().splitlines()[-3:]
            raise TargetError(
                "\n  ".join([f"{stack.label}: its build ended with exit status {status}; log: {log}", *tail]),
                hint=f"weir stacks check {stack.manifest.id}",
            )
        if recipe.artifact is not None and not (folder / recipe.artifact).exists():
            raise TargetError(f"{stack.folder / 'stack.toml'}: build.artifact: the build left no {recipe.artifact!r}; log: {log}")
    (folder / _MARKER).touch()


def _build_fields() -> dict[str, str]:
    tools = node_tools()
    return {"python": sys.executable, "npm": shlex.join(tools.npm) if tools else "npm"}


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and not _LEFT_OUT.intersection(path.relative_to(folder).parts))


def _size_bytes(folder: Path, stack: Stack) -> int | None:
    recipe = stack.manifest.build
    if recipe is None or recipe.artifact is None:
        return None
    artifact = folder / recipe.artifact
    if artifact.is_file():
        return artifact.stat().st_size
    return sum(path.lstat().st_size for path in artifact.rglob("*") if not path.is_dir())
