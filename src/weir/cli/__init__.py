"""The command `weir`: one module a command. The only room that prints."""

import os
import signal
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from weir.cli.completion import VARIABLE
from weir.cli.output import give_up_output, interrupted, nobody_listens, say_error
from weir.cli.welcome import WELCOME
from weir.model.errors import ExitCode, WeirError
from weir.model.variables import Variable

# In the order in which they are listed.
COMMANDS = (
    "load",
    "run",
    "ui",
    "report",
    "findings",
    "breakeven",
    "capacity",
    "prove",
    "gate",
    "import",
    "audit",
    "doctor",
    "demo",
    "stacks",
    "study",
    "completion",
)
# A keyword of Python's is the name of no module and of no function.
_MODULES = {"import": "import_csv"}


def command(name: str) -> typer.Typer | Callable[..., None]:
    """The several commands of a module's `app`, or the function that is named as its module.

    Args:
        name: one of `COMMANDS`.
    """
    module_name = _MODULES.get(name, name)
    module = import_module(f"weir.cli.{module_name}")
    found: typer.Typer | Callable[..., None] = getattr(module, "app", None) or getattr(module, module_name)
    return found


class Commands(TyperGroup):
    """The commands, each imported when it is called: most of what one needs, no other does."""

    def __init__(self, **attributes: Any) -> None:
        """Knows their names."""
        super().__init__(**attributes)
        self.commands = {name: TyperCommand(name) for name in COMMANDS}

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The several commands of a module's `app`, or the one that is named as its module; None if there is none."""
        if cmd_name not in COMMANDS:
            return None
        found = command(cmd_name)
        holder = typer.Typer(rich_markup_mode=None, add_completion=False)
        # With a callback it is a group even of one.
        holder.callback()(lambda: None)
        if isinstance(found, typer.Typer):
            holder.add_typer(found, name=cmd_name)
        else:
            holder.command(name=cmd_name)(found)
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


def main() -> None:
    """The entry point: turns every problem into one message and an exit status."""
    # A polite end from outside and a closed terminal are interruptions: what was finished is kept, as with Ctrl-C. Under nohup a closed
    # terminal is to be ignored, and stays so.
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    if VARIABLE in os.environ:
        # A shell asks what could stand next: here and not above, since typer's part of it takes a while to import.
        from typer.completion import completion_init  # type: ignore[attr-defined]

        completion_init()
    try:
        app()
        sys.stdout.flush()
    except WeirError as error:
        say_error(error.message, error.hint)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        say_error("interrupted", "")
        sys.exit(ExitCode.INTERRUPTED)
    except Exception as error:
        if isinstance(error, OSError) and nobody_listens(error):
            # The reader of our output (head, a pager) has seen enough, or the terminal was closed.
            give_up_output()
            sys.exit(ExitCode.INTERRUPTED if interrupted(error) else ExitCode.DONE)
        if os.environ.get(Variable.DEBUG):
            traceback.print_exc()
        say_error(f"a defect of weir's own: {type(error).__name__}: {error}", "WEIR_DEBUG=1 shows where; please report it")
        sys.exit(ExitCode.DEFECT)
