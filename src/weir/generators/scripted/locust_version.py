"""Finds the Python that runs Locust, and checks whether weir's plugin supports the version of Locust."""

import re
import subprocess
import sys
from importlib import metadata

from weir.model.errors import UsageError
from weir.model.requirements import install_command

LOWEST = (2, 32)
BELOW = (3,)
RANGE = f">={'.'.join(map(str, LOWEST))},<{'.'.join(map(str, BELOW))}"
"""The versions of Locust that `weir locust` supports, as in pyproject.toml. weir's tests run the lowest and highest."""
_ASK = """
from importlib import metadata
try:
    print("locust", metadata.version("locust"))
except metadata.PackageNotFoundError:
    print("locust missing")
"""
_ANSWER_S = 60


def find_python(python: str | None) -> str:
    """Returns the Python that runs Locust: `python` (from `--python`), or weir's own. Raises UsageError if
    `python` is not Python, Locust is missing, or the version of Locust is outside `RANGE`."""
    version = _own_version() if python is None else _version_in(python)
    place = "weir's environment" if python is None else f"--python: {python}"
    hint = install_command("locust") if python is None else f"{python} -m pip install 'locust{RANGE}'"
    if version is None:
        raise UsageError(f"{place}: found no Locust, expected locust{RANGE}", hint=hint)
    numbers = tuple(map(int, re.findall(r"\d+", version)[:3]))
    if not LOWEST <= numbers < BELOW:
        raise UsageError(f"{place}: found Locust {version}, expected locust{RANGE}", hint=hint)
    return python or sys.executable


def _own_version() -> str | None:
    try:
        return metadata.version("locust")
    except metadata.PackageNotFoundError:
        return None


def _version_in(python: str) -> str | None:
    expected = "expected the path of Python, such as .venv/bin/python"
    try:
        done = subprocess.run([python, "-c", _ASK], capture_output=True, text=True, timeout=_ANSWER_S, check=False)
    except OSError as error:
        raise UsageError(f"--python: {python}: cannot be run: {error.strerror}; {expected}") from None
    except subprocess.TimeoutExpired:
        raise UsageError(f"--python: {python}: did not report its version within {_ANSWER_S} s; {expected}") from None
    found = re.search(r"^locust (\S+)$", done.stdout, re.MULTILINE)
    if done.returncode != 0 or found is None:
        raise UsageError(f"--python: {python}: found a program that is not Python, {expected}")
    return None if found[1] == "missing" else found[1]
