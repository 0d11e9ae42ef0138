"""Converts command lines, test plans, recordings, API descriptions and collections into weir loads."""

from collections.abc import Callable, Sequence
from importlib import import_module

from weir.compat.convert.conversion import Conversion

RECORDS = ("har", "openapi", "postman")
"""File formats that describe requests, but no load."""
_MODULES = dict.fromkeys(("wrk", "wrk2", "hey", "ab"), "command_line") | {"jmx": "jmx"}
_MODULES |= {form: form for form in RECORDS}
TOOLS = tuple(_MODULES)
"""The tools and file formats that weir can convert."""


def convert(tool: str, words: Sequence[str]) -> Conversion:
    """Returns the load that `tool`, one of `TOOLS`, makes with the flags and arguments `words`. Raises UsageError if
    `words` are invalid or name an unreadable file. Raises ToolExit if `words` ask for the tool's help or version."""
    converter: Callable[[str, Sequence[str]], Conversion] = import_module(f"{__name__}.{_MODULES[tool]}").convert
    return converter(tool, words)
