"""How weir speaks: data on standard output, everything else on standard error, colour only at a terminal that wants it."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from weir.model.errors import UsageError

stdout = Console(soft_wrap=True, highlight=False)
stderr = Console(stderr=True, soft_wrap=True, highlight=False)


def say_error(message: str, hint: str) -> None:
    """One problem, and what to try next."""
    stderr.print(f"weir: {message}", markup=False)
    if hint:
        stderr.print(f"  try: {hint}", markup=False)


def say(message: str) -> None:
    """Progress, a warning: a line on standard error."""
    stderr.print(message, markup=False)


def print_json(value: Any) -> None:
    """A value as JSON on standard output."""
    print(json.dumps(value, indent=2))


def write_json(value: Any, target: str) -> None:
    """A value as JSON into the file `target`, or on standard output for `-`.

    Raises:
        UsageError: the file cannot be written.
    """
    if target == "-":
        print_json(value)
        return
    try:
        Path(target).write_text(json.dumps(value, indent=2) + "\n")
    except OSError as error:
        raise UsageError(f"--json: {target}: cannot be written: {error.strerror}") from None


def at_terminal() -> bool:
    """True where lines can be drawn and drawn over."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
