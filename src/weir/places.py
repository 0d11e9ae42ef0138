"""Where weir finds what travels with it, and where it keeps what it makes.

Stacks, workloads and studies lie at the root of a checkout, and in `weir/_data` of an installed wheel. Everything that a build or a run
leaves behind lies in the cache folder or in the run folder; nothing is written into the source tree.
"""

import os
import sysconfig
from pathlib import Path
from shutil import which

from weir.model.errors import UsageError

_PACKAGE = Path(__file__).resolve().parent


def data_folder(name: str) -> Path:
    """The folder `stacks`, `workloads` or `studies` that travels with this weir."""
    installed = _PACKAGE / "_data" / name
    return installed if installed.is_dir() else _PACKAGE.parent.parent / name


def cache_folder() -> Path:
    """`WEIR_CACHE`, else `weir` in the user's cache directory. It is made when something is put into it."""
    override = os.environ.get("WEIR_CACHE")
    if override:
        return Path(override).expanduser().resolve()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "weir"


def engine_binary() -> Path:
    """`weir-engine`: `WEIR_ENGINE`, else beside this Python, else on the PATH.

    Raises:
        UsageError: there is none.
    """
    override = os.environ.get("WEIR_ENGINE")
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
