"""Installs programs in locked versions into weir's cache. A recipe is a folder of `weir/generators/data`. weir copies
the recipe to `CACHE/generators/NAME/HASH/`, and runs `install.sh` there. The script writes the program's version to the
file `version`. After success, weir writes a marker file. Without the marker file, weir repeats the installation."""

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
from weir.paths import find_cache_folder
from weir.stacks.toolchain import build_base_environment, find_unmet_needs

DATA = Path(__file__).parent / "data"
"""Folder with recipes, and with templates of the tools' scripts and test plans."""
_MARKER = ".weir-installed"
_INSTALL_S = 900.0


@dataclass(frozen=True, slots=True)
class Installation:
    """A program that weir can install."""

    name: str
    program: str
    """Path of the program inside the installation folder."""
    needs: tuple[str, ...]
    """Tools that the installation and the program need."""

    def find(self) -> Path | None:
        """Returns the path of the installed program. None if the program is not installed."""
        folder = self._folder()
        return folder / self.program if (folder / _MARKER).is_file() else None

    def version(self) -> str:
        return (self._folder() / "version").read_text().strip()

    def install(self, on_install: Callable[[str], None] = lambda _: None) -> Path:
        """Installs the program if it is missing, and returns the program's path. Before an installation, calls
        `on_install` with the program's name and the log's path. Raises UsageError if a required tool is missing, and
        TargetError if the installation fails."""
        folder = self._folder()
        folder.parent.mkdir(parents=True, exist_ok=True)
        with (folder.parent / f"{folder.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (folder / _MARKER).is_file():
                self._install_anew(folder, on_install)
        return folder / self.program

    def _install_anew(self, folder: Path, on_install: Callable[[str], None]) -> None:
        if unmet := "; ".join(f"installing needs {need}" for need in find_unmet_needs(self.needs)):
            raise UsageError(f"{self.name}: {unmet}", hint="weir doctor")
        log = folder.parent / f"{folder.name}.log"
        on_install(f"{self.name}; log: {log}")
        with suppress(FileNotFoundError):
            shutil.rmtree(folder)
        shutil.copytree(DATA / self.name, folder)
        environment = {**build_base_environment(self.needs), "PYTHON": sys.executable}
        with log.open("wb") as output:
            try:
                status = subprocess.run(
                    ["/bin/sh", "install.sh"],
                    cwd=folder,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    timeout=_INSTALL_S,
                ).returncode
            except subprocess.TimeoutExpired:
                raise TargetError(f"{self.name}: installing took longer than {_INSTALL_S:g} s; log: {log}") from None
        if status != 0:
            problem = f"{self.name}: installing ended with exit status {status}; log: {log}"
            raise TargetError("\n  ".join([problem, *log.read_text(errors="replace").strip().splitlines()[-3:]]))
        (folder / _MARKER).touch()

    def _folder(self) -> Path:
        digest = hashlib.sha256(f"{sys.executable} {sys.version}".encode())
        for path in sorted((DATA / self.name).iterdir()):
            digest.update(f"{path.name}\0".encode() + path.read_bytes())
        return find_cache_folder() / "generators" / self.name / digest.hexdigest()[:16]
