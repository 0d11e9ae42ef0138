"""`weir alias`: what a shell needs to call weir by the names of the tools that it stands in for."""

import shlex
from typing import Annotated

import typer

from weir.compat.front_end import TOOLS
from weir.model.errors import UsageError


def alias(
    tools: Annotated[list[str] | None, typer.Argument(metavar="[TOOL]...", help="Some of wrk, wrk2, hey and ab. Default: all.")] = None,
) -> None:
    """Print aliases for bash, zsh and fish, with which a shell starts weir where another tool was meant.

    Scripts do not know of a shell's aliases: they call weir wrk, or a tool of the same name that does, earlier on the PATH.

    Example: weir alias >> ~/.bashrc
    """
    for tool in tools or TOOLS:
        if tool not in TOOLS:
            raise UsageError(f"TOOL: found {tool!r}, expected one of {', '.join(TOOLS)}", hint="weir alias")
        print(f"alias {tool}={shlex.quote(f'weir {tool}')}")
