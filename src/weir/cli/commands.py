"""The commands of `weir`, by name, and the parser that calls them."""

import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from weir.cli.completion import VARIABLE
from weir.cli.welcome import WELCOME
from weir.compat.front_end import TOOLS

# In the order in which they are listed.
COMMANDS = (
    "load",
    *TOOLS,
    "alias",
    "jmeter",
    "locust",
    "run",
    "ui",
    "report",
    "findings",
    "breakeven",
    "capacity",
    "plan",
    "prove",
    "gate",
    "import",
    "convert",
    "audit",
    "doctor",
    "demo",
    "stacks",
    "study",
    "cluster",
    "completion",
)
# Commands whose arguments are another tool's: they read them themselves, `--help` too.
_FOREIGN = frozenset({"locust"})
_AS_THEY_ARE = {"ignore_unknown_options": True, "allow_interspersed_args": False, "help_option_names": []}
# A keyword of Python's is the name of no module and of no function.
_MODULES = {"import": "import_csv"}


def command(name: str) -> typer.Typer | Callable[..., None]:
    """The several commands of a module's `app`, or the function that is named as its module.

    Args:
        name: one of `COMMANDS`.
    """
    if name in TOOLS:
        return _front_end(name)
    module_name = _MODULES.get(name, name)
    module = import_module(f"weir.cli.{module_name}")
    found: typer.Typer | Callable[..., None] = getattr(module, "app", None) or getattr(module, module_name)
    return found


def _front_end(tool: str) -> Callable[..., None]:
    """A front end as a command among the others, for help and the reference; `weir.cli.main` gives it its arguments without typer."""

    def front_end(
        arguments: Annotated[list[str] | None, typer.Argument(metavar="ARGUMENT...", help=f"As {tool} takes them; weir {tool} -h.")] = None,
    ) -> None:
        from weir.cli import front_ends

        raise typer.Exit(front_ends.front_end(tool, arguments or []))

    front_end.__doc__ = f"""Do what {tool} does, and report it as {tool} does.

    Standard output has what {tool} would print; the verdict, and what differs, go to standard error.

    Example: {TOOLS[tool]}
    """
    return front_end


class Commands(TyperGroup):
    """The commands, each imported when it is called: most of what one needs, no other does."""

    def __init__(self, **attributes: Any) -> None:
        """Knows their names."""
        super().__init__(**attributes)
        self.commands = {name: TyperCommand(name) for name in COMMANDS}

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The several commands of a module's `app`, or the one that is named as its module; None if there is none.

        A module whose command has errors of its own has a class `Command` for it.
        """
        if cmd_name not in COMMANDS:
            return None
        found = command(cmd_name)
        holder = typer.Typer(rich_markup_mode=None, add_completion=False)
        # With a callback it is a group even of one.
        holder.callback()(lambda: None)
        if isinstance(found, typer.Typer):
            holder.add_typer(found, name=cmd_name)
        else:
            settings = _AS_THEY_ARE if cmd_name in _FOREIGN else None
            holder.command(name=cmd_name, cls=getattr(sys.modules[found.__module__], "Command", None), context_settings=settings)(found)
        return get_group(holder).commands[cmd_name]


app = typer.Typer(
    name="weir",
    cls=Commands,
    no_args_is_help=False,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="A laboratory for HTTP servers: puts a controlled load on real stacks and answers with an interval.",
)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", "-V", help="Print weir's version."),
) -> None:
    if version:
        from weir import __version__

        print(f"weir {__version__}")
    elif context.invoked_subcommand is None:
        print(WELCOME)


def run() -> None:
    """Does what the command line asks for; typer ends the process with its exit code."""
    if VARIABLE in os.environ:
        # A shell asks what could stand next: here and not above, since typer's part of it takes a while to import.
        from typer.completion import completion_init  # type: ignore[attr-defined]

        completion_init()
    app()
