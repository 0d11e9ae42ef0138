"""`weir convert`: the command line, script or test plan of another tool, said natively."""

import shlex
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperCommand

from weir.cli.output import say
from weir.compat.command_line import read
from weir.compat.conversion import Conversion, Reader
from weir.compat.front_end import TOOLS, ToolExit
from weir.compat.native import command_of
from weir.compat.native_study import scenario_of, study_notes, study_of
from weir.model.errors import ExitCode, UsageError
from weir.model.text import printable

_FILES = {"k6": "weir.compat.k6", "jmx": "weir.compat.jmx_file", "locust": "weir.compat.locustfile"}
"""What is no command line, and the module that reads it."""
_ALIASES = {"jmeter": "jmx"}
_OURS = ("--study", "--command", "--ignore-unsupported")
"""Flags that may stand behind k6, jmx and locust as well: these have none that are called so."""
_SCENARIO_FILE = "scenario.toml"


class Command(TyperCommand):
    """Leaves what follows the tool's name to the tool."""

    allow_interspersed_args = False


def convert(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="TOOL...",
            help="wrk, wrk2, hey, ab, k6, jmx or locust, and behind it what it takes itself; or all of it quoted.",
        ),
    ],
    study: Annotated[bool, typer.Option("--study", help="Print a study; of wrk, wrk2, hey and ab it is what is printed anyway.")] = False,
    command: Annotated[bool, typer.Option("--command", help="Print the weir load command line alone.")] = False,
    ignore_unsupported: Annotated[
        bool, typer.Option("--ignore-unsupported", help="Leave out what weir cannot say; the comment on top names it.")
    ] = False,
    out: Annotated[
        str | None, typer.Option("-o", "--out", metavar="FILE", help="Write it to this new file instead of on standard output.")
    ] = None,
) -> None:
    """Print the native study, scenario or command line for a command line, script or test plan of another tool.

    Flags of this command stand before the tool's name, the tool's own behind it. What weir cannot say is listed, and ends with 2.

    Example: weir convert wrk -t12 -c400 -d30s --latency http://127.0.0.1:8000/
    """
    tool, arguments = _told(words)
    asked = {flag for flag, given in zip(_OURS, (study, command, ignore_unsupported), strict=True) if given}
    if tool in _FILES:
        asked |= set(_OURS) & set(arguments)
        arguments = [argument for argument in arguments if argument not in _OURS]
    if {"--study", "--command"} <= asked:
        raise UsageError("--command: found beside --study, expected one of them")
    found = _found(tool, arguments)
    if found.gaps and "--ignore-unsupported" not in asked:
        listed = "\n".join(f"  {gap}" for gap in found.gaps)
        raise UsageError(f"{tool}: weir cannot say {len(found.gaps)} of it:\n{listed}", hint="--ignore-unsupported leaves it out")
    made_from = shlex.join([tool, *arguments])
    if "--command" in asked:
        text = _command(found, made_from)
    elif "--study" in asked or found.scenario is None:
        text = _study(found, made_from)
    else:
        text = _scenario(found, made_from, out or _SCENARIO_FILE)
    if out is not None:
        _write({out: text} | {str(Path(out).parent / name): content for name, content in found.files.items()})
    elif found.files:
        files = ", ".join(found.files)
        raise UsageError(f"{tool}: found data for the files {files}, expected a folder to put them in", hint=f"-o {_SCENARIO_FILE}")
    else:
        print(text, end="")


def _told(words: Sequence[str]) -> tuple[str, list[str]]:
    """The tool's name and what follows it; a whole command line may be one word, as it stands in a script."""
    if len(words) == 1 and len(words[0].split()) > 1:
        try:
            # As a shell does, which shlex does not: a line goes on behind a backslash.
            words = shlex.split(words[0].replace("\\\n", " "))
        except ValueError as error:
            raise UsageError(f"found {words[0]!r}, expected a command line: {error}") from None
    name = Path(words[0]).name
    tool = _ALIASES.get(name, name)
    if tool not in (*TOOLS, *_FILES):
        raise UsageError(f"found {words[0]!r}, expected one of {', '.join([*TOOLS, *_FILES])}", hint="weir convert --help")
    return tool, list(words[1:])


def _found(tool: str, arguments: list[str]) -> Conversion:
    """What the tool would be asked for. Each reader is imported when it is called: what one reads with, no other does."""
    if tool not in TOOLS:
        reader: Reader = import_module(_FILES[tool]).read
        return reader(arguments)
    try:
        return read(tool, arguments)
    except ToolExit as answer:
        print(answer.out, end="")
        if answer.err:
            say(answer.err.rstrip("\n"))
        raise typer.Exit(ExitCode.USAGE if answer.code else ExitCode.DONE) from None


def _command(found: Conversion, made_from: str) -> str:
    if found.scenario is not None:
        raise UsageError("--command: found users who do several things, expected a file for their scenario", hint="leave out --command")
    return _comment(found, made_from, found.notes) + f"{_command_line(found)}\n"


def _study(found: Conversion, made_from: str) -> str:
    notes = [*found.notes, *study_notes(found.plan, has_scenario=found.scenario is not None)]
    text = study_of(found.plan, title=f"As {printable(made_from)}", scenario=found.scenario, objectives=found.objectives)
    return _comment(found, made_from, notes) + "# weir study check FILE says what it takes, weir run FILE runs it.\n" + text


def _scenario(found: Conversion, made_from: str, file: str) -> str:
    assert found.scenario is not None
    return _comment(found, made_from, found.notes) + f"# {_command_line(found, file)}\n" + scenario_of(found.scenario)


def _command_line(found: Conversion, scenario_file: str | None = None) -> str:
    line = found.command or command_of(found.plan, scenario_file=scenario_file)
    return " ".join([line, *(f"--objective {shlex.quote(text)}" for text in found.objectives)])


def _comment(found: Conversion, made_from: str, notes: Sequence[str]) -> str:
    lines = [f"Made by weir convert of: {made_from}", *(f"- {note}" for note in notes), *(f"- left out: {gap}" for gap in found.gaps)]
    return "".join(f"# {printable(line)}\n" for line in lines)


def _write(files: dict[str, str]) -> None:
    for path in files:
        if Path(path).exists():
            raise UsageError(f"-o/--out: {path}: found a file already, expected none: it is never written over")
    for path, text in files.items():
        try:
            Path(path).write_text(text)
        except OSError as error:
            raise UsageError(f"-o/--out: {path}: cannot be written: {error.strerror}") from None
        say(f"wrote {path}")
