"""Lists the commands of `weir`, and runs the command from the command line."""

import os
import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from weir.cli.completion import VARIABLE
from weir.compat.front_end import TOOLS

# In the order of the help.
COMMANDS = (
    "compare", "load", *TOOLS, "jmeter", "k6", "locust", "run", "ui", "report", "findings", "breakeven", "capacity", "plan", "confirm",
    "gate", "import", "convert", "audit", "doctor", "demo", "stacks", "study", "cluster", "completion",
)  # fmt: skip
# `import` is a keyword of Python, and cannot be a module's name.
_MODULES = {"import": "import_csv"}
_WELCOME = """\
weir: a laboratory for HTTP servers

  weir demo                               run a first study on this machine in about a minute:
                                          does an async server beat a sync server on a JSON echo?
  weir stacks start sanic --port 8000     start a stack and keep it running (Ctrl-C ends it)
  weir load http://127.0.0.1:8000/        put a load on a running server: 10 s, 64 connections
  weir load http://127.0.0.1:8000/ -R 1000 -d 30s --json result.json
                                          a fixed rate, response time from the intended start
  weir run sync-vs-async --scale quick    run a study: blocks in random order, fresh processes, intervals
  weir report runs/sync-vs-async-1        print the run's result again, and write the HTML report
  weir capacity http://127.0.0.1:8000/ --objective 'p99<=50ms'
                                          the highest rate that meets the objective, with an interval
  weir gate runs/main runs/branch         is the new run worse than the old run?
  weir ui                                 past runs in a browser, and a form that starts a load
  weir stacks list                        the stacks that weir can start
  weir audit hey.txt --users 20           check another tool's report for impossible numbers
  weir doctor                             what is present, what is missing, and how to install it

weir COMMAND --help describes a command."""


def command(name: str) -> typer.Typer | Callable[..., None]:
    """Returns the `app` of a command's module, or the module's function of the same name."""
    if name in TOOLS:
        return _front_end(name)
    module_name = _MODULES.get(name, name)
    module = import_module(f"weir.cli.{module_name}")
    found: typer.Typer | Callable[..., None] = getattr(module, "app", None) or getattr(module, module_name)
    return found


def _front_end(tool: str) -> Callable[..., None]:
    """Returns a typer command for the help and the reference. `weir.cli.main` runs the tool's command line itself."""

    def front_end(
        arguments: Annotated[
            list[str] | None, Argument(metavar="ARGUMENT...", help=f"Arguments of {tool}. weir {tool} -h lists them.")
        ] = None,
    ) -> None:
        from weir.cli.front_ends import run_front_end

        raise typer.Exit(run_front_end(tool, arguments or []))

    front_end.__doc__ = f"""Take the command line of {tool}, and print a report in {tool}'s format.

    Standard output has {tool}'s report. Standard error has weir's verdict and the differences from {tool}.

    Example: {TOOLS[tool]}
    """
    return front_end


class Commands(TyperGroup):
    """The group of all commands. weir imports a command's module only for a call of that command."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {name: TyperCommand(name) for name in COMMANDS}

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        # A module has a class `Command` if typer's class cannot parse the words or report the errors.
        if cmd_name not in COMMANDS:
            return None
        found = command(cmd_name)
        holder = typer.Typer(rich_markup_mode=None, add_completion=False)
        # With a callback, typer makes a group even from a single command.
        holder.callback()(lambda: None)
        if isinstance(found, typer.Typer):
            holder.add_typer(found, name=cmd_name)
        else:
            holder.command(name=cmd_name, cls=getattr(sys.modules[found.__module__], "Command", None))(found)
        return get_group(holder).commands[cmd_name]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, read_summary(name)) for name in COMMANDS])


def read_summary(name: str) -> str:
    """Returns the first line of a command's help. Reads the module as text, because importing all modules is slow."""
    if name in TOOLS:
        return f"Take the command line of {name}, and print a report in {name}'s format."
    module = _MODULES.get(name, name)
    text = Path(__file__).with_name(f"{module}.py").read_text()
    found = re.search(
        rf'^def {module}\(.*?^    """(.*?)(?:"""|$)|^app = typer.Typer\(help="(.*?)"', text, re.DOTALL | re.MULTILINE
    )
    assert found is not None, name
    return found[1] or found[2]


app = typer.Typer(
    name="weir",
    cls=Commands,
    no_args_is_help=False,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="A laboratory for HTTP servers: puts a controlled load on real stacks, and reports results with intervals.",
)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context, version: bool = Option(False, "--version", "-V", help="Print weir's version.")
) -> None:
    if version:
        from weir import __version__

        print(f"weir {__version__}")
    elif context.invoked_subcommand is None:
        print(_WELCOME)


def run() -> None:
    """Runs the command line. Typer ends the process with the exit code."""
    if VARIABLE in os.environ:
        # Only a shell's completion needs this slow import.
        from typer.completion import completion_init  # type: ignore[attr-defined]

        completion_init()
    app()
