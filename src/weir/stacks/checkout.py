"""Copies the files of a commit into the cache and builds the copy once, for `weir compare --git`.

Each commit has its own clone, which shares the objects of the user's repository. weir changes only the clone. So weir
leaves no files in the user's repository, even if a signal kills weir.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from weir.model.errors import TargetError, UsageError
from weir.paths import find_cache_folder
from weir.stacks.build import MARKER

_KEPT = 10
"""Maximum number of clones in the cache. weir removes the clone with the oldest use first."""
WORKING_TREE = "."


def check_out(repository: Path, reference: str, build: str | None, run: Callable[[str, Path, Path], int]) -> Path:
    """Builds the files of a commit and returns their folder.

    `repository` is a folder in the user's repository; the returned folder is the same folder in the clone. `reference`:
    a branch, a tag, a hash, or `.` for the working tree. `build`: a shell command; None: no build. `run` runs a shell
    command and returns the exit status; its arguments are command, working directory and log file. Raises UsageError
    if `repository` or `reference` is not valid, TargetError if the build fails.
    """
    top = Path(_git(repository, "rev-parse", "--show-toplevel"))
    below = repository.resolve().relative_to(top.resolve())
    if reference == WORKING_TREE:
        if build is not None:
            _build(repository, build, run, find_cache_folder() / "commits" / "working-tree.log")
        return repository
    commit = _find_commit(top, reference)
    _require_clean_submodules(top)
    key = hashlib.sha256(f"{top}\0{build or ''}\0{below}".encode()).hexdigest()[:8]
    clones = find_cache_folder() / "commits"
    clone = clones / f"{commit[:12]}-{key}"
    clones.mkdir(parents=True, exist_ok=True)
    # weir holds this lock until weir ends. Otherwise another weir process could remove the clone of a running server.
    lock = os.open(_lock_file(clone), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
    fcntl.flock(lock, fcntl.LOCK_SH)
    if not (clone / ".git" / MARKER).is_file():
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Another weir process may have built the clone while this process waited for the lock.
        if not (clone / ".git" / MARKER).is_file():
            _clone(top, clone, commit)
            if build is not None:
                _build(clone / below, build, run, clones / f"{clone.name}.log")
            (clone / ".git" / MARKER).touch()
        fcntl.flock(lock, fcntl.LOCK_SH)
    os.utime(clone)
    _remove_old_clones(clones)
    return clone / below


def _lock_file(clone: Path) -> Path:
    return clone.with_name(f"{clone.name}.lock")


def _clone(top: Path, clone: Path, commit: str) -> None:
    shutil.rmtree(clone, ignore_errors=True)
    _git(top, "clone", "--quiet", "--shared", "--no-checkout", str(top), str(clone))
    _git(clone, "checkout", "--quiet", "--detach", commit)
    if (clone / ".gitmodules").is_file():
        _git(clone, "submodule", "--quiet", "update", "--init", "--recursive")


def _git(folder: Path, *words: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=True)
    except FileNotFoundError:
        raise UsageError("--git: found no git, expected it on the PATH", hint="install git") from None
    except subprocess.CalledProcessError as error:
        why = error.stderr.strip().splitlines()[-1:] or ["no message"]
        raise UsageError(f"--git: 'git {' '.join(words[:2])}' failed: {why[0]}", hint="git status") from None
    return done.stdout.strip()


def _find_commit(top: Path, reference: str) -> str:
    try:
        return _git(top, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{reference}^{{commit}}")
    except UsageError:
        found = f"--git: found {reference!r}, expected a branch, a tag or a commit of {top}"
        raise UsageError(found, hint=f"git -C {top} branch --all") from None


def _require_clean_submodules(top: Path) -> None:
    """Raises UsageError if a submodule has changes. A clone would not contain these changes."""
    for line in _git(top, "submodule", "status", "--recursive").splitlines() if (top / ".gitmodules").is_file() else ():
        name = line.split()[1] if len(line.split()) > 1 else line
        if (top / name / ".git").exists() and _git(top / name, "status", "--porcelain"):
            found = f"--git: found changes in the submodule {name}, expected none: a commit does not contain them"
            raise UsageError(found, hint=f"git -C {top / name} stash, or commit the changes")


def _build(folder: Path, build: str, run: Callable[[str, Path, Path], int], log: Path) -> None:
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_bytes(b"")
    if (status := run(build, folder, log)) != 0:
        last = log.read_text(errors="replace").strip().splitlines()[-3:]
        failed = f"--build: {build!r} ended with exit status {status} in {folder}; log: {log}"
        raise TargetError("\n  ".join([failed, *last]), hint=f"cd {folder} && {build}")


def _remove_old_clones(clones: Path) -> None:
    by_age = sorted((path for path in clones.iterdir() if path.is_dir()), key=lambda path: -path.stat().st_mtime)
    for old in by_age[_KEPT:]:
        with _lock_file(old).open("w") as lock, suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(old)
