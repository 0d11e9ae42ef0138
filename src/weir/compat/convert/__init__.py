"""Converts command lines, test plans and locustfiles of other tools into weir loads."""

from collections.abc import Callable, Sequence
from importlib import import_module

from weir.compat.convert.conversion import Conversion

_MODULES = dict.fromkeys(("wrk", "wrk2", "hey", "ab"), "command_line") | {"jmx": "jmx", "locust": "locustfile"}
TOOLS = tuple(_MODULES)
"""The tools whose loads weir can convert."""


def convert(tool: str, words: Sequence[str]) -> Conversion:
    """Converts the load that `tool`, one of `TOOLS`, would run with the flags and arguments `words`.

    Raises:
        UsageError: `words` are invalid, or weir cannot read a file that `words` name.
        ToolExit: `words` ask for the tool's help or version.
    """
    converter: Callable[[str, Sequence[str]], Conversion] = import_module(f"{__name__}.{_MODULES[tool]}").convert
    return converter(tool, words)
