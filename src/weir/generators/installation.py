"""Programs that weir installs into its cache, in locked versions: once per content of the recipe that says how.

A recipe is a folder of `weir/generators/data`. It is copied to `CACHE/generators/NAME/HASH/`, where its `install.sh` runs, which leaves
the version in the file `version`. The program counts as installed when a marker lies there, which is written last; without it the folder is
started over.
"""

import fcntl
import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from weir.model.errors import TargetError, UsageError
from weir.places import cache_folder
from weir.stacks.tools import base_environment, unmet_needs

DATA = Path(__file__).parent / "data"
"""Scripts and plans of tools, and recipes."""
_MARKER = ".weir-installed"
_INSTALL_S = 900.0


@dataclass(frozen=True, slots=True)
class Installation:
    """One such program."""

    name: str
    """Of the recipe."""
    program: str
    """Its path, from the folder that it is installed in."""
    needs: tuple[str, ...]
    """Tools that installing and running it takes."""

    def found(self) -> Path | None:
        """The program; None where it is not installed."""
        folder = self._folder()
        return folder / self.program if (folder / _MARKER).is_file() else None

    def version(self) -> str:
        """The version that is installed, as its recipe wrote it down."""
        return (self._folder() / "version").read_text().strip()

    def install(self, on_install: Callable[[str], None] = lambda _: None) -> Path:
        """The program, installed unless that was done before.

        Args:
            on_install: called with what is installed and where its log is, if it has to be.

        Raises:
            UsageError: something that this needs is missing.
            TargetError: it failed; the message names its log.
        """
        folder = self._folder()
        folder.parent.mkdir(parents=True, exist_ok=True)
        with (folder.parent / f"{folder.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (folder / _MARKER).is_file():
                self._install_anew(folder, on_install)
        return folder / self.program

    def _install_anew(self, folder: Path, on_install: Callable[[str], None]) -> None:
        unmet = unmet_needs(self.needs)
        if unmet:
            raise UsageError(f"{self.name}: " + "; ".join(f"installing it needs {need}" for need in unmet), hint="weir doctor")
        log = folder.parent / f"{folder.name}.log"
        on_install(f"{self.name}; log: {log}")
        with suppress(FileNotFoundError):
            shutil.rmtree(folder)
        shutil.copytree(DATA / self.name, folder)
        environment = {**base_environment(self.needs), "PYTHON": sys.executable}
        with log.open("wb") as output:
            try:
                status = subprocess.run(
                    ["/bin/sh", "install.sh"], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                    timeout=_INSTALL_S, check=False,
                ).returncode  # fmt: skip
            except subprocess.TimeoutExpired:
                raise TargetError(f"{self.name}: installing it took longer than {_INSTALL_S:g} s; log: {log}") from None
        if status != 0:
            tail = log.read_text(errors="replace").strip().splitlines()[-3:]
            raise TargetError("\n  ".join([f"{self.name}: installing it ended with exit status {status}; log: {log}", *tail]))
        (folder / _MARKER).touch()

    def _folder(self) -> Path:
        digest = hashlib.sha256(f"{sys.executable} {sys.version}".encode())
        for path in sorted((DATA / self.name).iterdir()):
            digest.update(f"{path.name}\0".encode() + path.read_bytes())
        return cache_folder() / "generators" / self.name / digest.hexdigest()[:16]
