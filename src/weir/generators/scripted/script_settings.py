"""Finds the settings of a user's script that decide how weir runs and judges its load: pauses, and k6's load length."""

import json
import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

_PAUSES = {
    "jmeter": re.compile(r"<\w*Timer\b[^>]*\benabled=\"true\""),
    "k6": re.compile(r"\bsleep\s*\("),
    "locust": re.compile(r"\bwait_time\s*=(?!\s*(?:\w+\.)?constant\(\s*0\s*\))|\bsleep\s*\("),
}
_COMMENTS = {
    "jmeter": re.compile(r"<!--.*?-->", re.S),
    # The slashes of a URL begin no comment.
    "k6": re.compile(r"(?<!:)//[^\n]*|/\*.*?\*/", re.S),
    "locust": re.compile(r"#[^\n]*"),
}
_LENGTH_OPTIONS = {"duration": ("-d", "--duration"), "iterations": ("-i", "--iterations"), "stages": ("-s", "--stage")}
"""k6's options that set the length of a load, with their spellings on the command line."""
_INSPECTION_S = 30.0


def has_pauses(tool: str, script: Path) -> bool:
    """Returns whether the text of a script contains a pause of the users between requests. False for other tools, which
    take no script."""
    if tool not in _PAUSES:
        return False
    text = _COMMENTS[tool].sub("", script.read_text(errors="replace"))
    return _PAUSES[tool].search(text) is not None


def choose_k6_length(
    program: str, script: str, arguments: Sequence[str], *, users: str, duration_s: float
) -> list[str]:
    """Returns k6's options for users and duration if neither the script nor its arguments set the length of the load.
    Otherwise returns no options. By default, k6 runs a script only once."""
    names = [name for spelling in _LENGTH_OPTIONS.values() for name in spelling]
    if any(_is_option(word, names) for word in arguments) or any(
        f"K6_{name.upper()}" in os.environ for name in _LENGTH_OPTIONS
    ):
        return []
    options = _inspect(program, script, tuple(_find_variables(arguments)))
    if options is None or any(options.get(name) for name in (*_LENGTH_OPTIONS, "scenarios")):
        return []
    has_users = (
        options.get("vus") or "K6_VUS" in os.environ or any(_is_option(word, ["-u", "--vus"]) for word in arguments)
    )
    return [*([] if has_users else ["--vus", users]), "--duration", f"{duration_s:g}s"]


def _is_option(word: str, names: Sequence[str]) -> bool:
    return any(word == name or word.startswith(f"{name}=") for name in names)


def _find_variables(arguments: Sequence[str]) -> Iterator[str]:
    for word, following in pairwise([*arguments, ""]):
        if word in ("-e", "--env"):
            yield from (word, following)
        elif word.startswith("--env="):
            yield word


@cache
def _inspect(program: str, script: str, variables: tuple[str, ...]) -> dict[str, object] | None:
    """Returns the options that a script exports. None: k6 cannot read the script, and a run will report the reason."""
    command = [program, "inspect", *variables, script]
    try:
        found = subprocess.run(command, capture_output=True, timeout=_INSPECTION_S, check=True).stdout
        options = json.loads(found)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return options if isinstance(options, dict) else None
