"""`weir convert`: converts another tool's command line or file to a study, a scenario or a `weir load` command."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from typer import Argument, Option
from typer.core import TyperCommand

from weir.cli.output import say
from weir.compat import convert as converters
from weir.compat.convert.conversion import Conversion
from weir.compat.convert.draft import hide_in_words
from weir.compat.flags import ToolExit
from weir.compat.study_export import build_study, format_scenario, list_study_notes
from weir.model.errors import UsageError
from weir.model.sanitize import sanitize

_FILES = ("jmx", *converters.RECORDS)
"""File formats. For all other tools, weir reads command lines."""
_ALIASES = {"jmeter": "jmx"}
_OURS = ("--study", "--command")
"""Flags of `weir convert` itself. They may stand before or after a format's name, because no format has such flags."""
_SCENARIO_FILE = "scenario.toml"


class Command(TyperCommand):
    """A parser that leaves all words after the tool's name unparsed: these words are the tool's arguments."""

    allow_interspersed_args = False


def convert(
    words: Annotated[
        list[str],
        Argument(
            metavar="TOOL...",
            help="har, openapi, postman or jmx, and a file. Or wrk, wrk2, hey or ab, and the tool's arguments.",
        ),
    ],
    study: Annotated[
        bool, Option("--study", help="Always print a study. Default: a scenario if users send several requests.")
    ] = False,
    command: Annotated[bool, Option("--command", help="Print only the command line of weir load.")] = False,
    out: Annotated[
        str | None, Option("-o", "--out", metavar="FILE", help="Write to this new file instead of standard output.")
    ] = None,
) -> None:
    """Convert a recording, an API description, a collection, a test plan or a command line to a scenario or a study.

    weir convert har FILE [--host HOST] [--with assets|failures|deletes]

    weir convert openapi FILE|URL [--host URL] [--set NAME=VALUE] [--csv FILE] [--with writes|deletes|deprecated]

    weir convert postman FILE [-e ENVIRONMENT] [--var NAME=VALUE] [--host HOST] [--with deletes]

    Write weir's flags before the name of another tool.

    Example: weir convert har shop.har -o shop.toml
    """
    tool, arguments = _split(words)
    asked = {flag for flag, given in zip(_OURS, (study, command), strict=True) if given}
    if tool in _FILES:
        asked |= set(_OURS) & set(arguments)
        arguments = [argument for argument in arguments if argument not in _OURS]
    shown = arguments
    if tool in converters.RECORDS:
        out, arguments = _take_out(out, arguments)
        shown = hide_in_words(arguments)
    if {"--study", "--command"} <= asked:
        raise UsageError("--command: found together with --study, expected only one of the two")
    try:
        found = converters.convert(tool, arguments)
    except ToolExit as exit_:
        print(exit_.text, end="")
        return
    text = _format(found, shlex.join([tool, *shown]), asked, out or _SCENARIO_FILE)
    if out is not None:
        for note in found.notes[:2] if tool in converters.RECORDS else ():
            say(sanitize(note))
        _write({out: text} | {str(Path(out).parent / name): content for name, content in found.files.items()})
    elif found.files:
        files = ", ".join(found.files)
        problem = f"{tool}: found data for the files {files}, expected -o FILE: weir writes the data next to FILE"
        raise UsageError(problem, hint=f"-o {_SCENARIO_FILE}")
    else:
        print(text, end="")


def _split(words: Sequence[str]) -> tuple[str, list[str]]:
    """Returns the tool's name and arguments. A single word with spaces is a whole command line in quotes."""
    if len(words) == 1 and len(words[0].split()) > 1:
        try:
            # A backslash at the end of a line continues the line in a shell, but not in shlex.
            words = shlex.split(words[0].replace("\\\n", " "))
        except ValueError as error:
            raise UsageError(f"TOOL: cannot read the command line {words[0]!r}: {error}") from None
    name, known = Path(words[0]).name, ", ".join(converters.TOOLS)
    for runner, suffix, run in (("k6", ".js", "k6 run"), ("locust", ".py", "locust -f")):
        if name == runner or name.endswith(suffix):
            script = next((word for word in words if word.endswith(suffix)), f"script{suffix}")
            problem = f"TOOL: found {words[0]!r}, a script, expected one of {known}: {runner} runs its own scripts"
            raise UsageError(problem, hint=f"weir {run} {script}")
    tool = _ALIASES.get(name, name)
    if tool not in converters.TOOLS:
        hint = f"weir convert har {words[0]}" if name.endswith(".har") else "weir convert --help"
        raise UsageError(f"TOOL: found {words[0]!r}, expected one of {known}", hint=hint)
    return tool, list(words[1:])


def _take_out(out: str | None, arguments: Sequence[str]) -> tuple[str | None, list[str]]:
    """Returns the value of -o or --out after the name of a file format, and the other arguments."""
    for flag in ("-o", "--out"):
        if flag in arguments[:-1]:
            at = arguments.index(flag)
            return arguments[at + 1], [*arguments[:at], *arguments[at + 2 :]]
    return out, list(arguments)


def _format(found: Conversion, source: str, asked: set[str], scenario_file: str) -> str:
    """Returns the converted command line, study or scenario, below a comment with the differences from the tool."""
    spec, scenario, notes = found.spec, found.scenario, list(found.notes)
    if "--command" in asked:
        if scenario is not None:
            problem = "--command: found users with several requests, expected users with a single request"
            raise UsageError(problem, hint="omit --command to get a scenario file")
        text = f"{spec.to_command()}\n"
    elif "--study" in asked or scenario is None:
        notes += list_study_notes(spec, has_scenario=scenario is not None)
        text = "# weir study check FILE prints the duration, weir run FILE runs the study.\n"
        text += build_study(spec, title=f"As {sanitize(source)}", scenario=scenario)
    else:
        command = replace(spec, scenario={}, scenario_file=scenario_file).to_command()
        text = f"# {command}\n{format_scenario(scenario)}"
    lines = [f"Made by: weir convert {source}", *(f"- {note}" for note in notes)]
    return "".join(f"# {sanitize(line)}\n" for line in lines) + text


def _write(files: dict[str, str]) -> None:
    for path in files:
        if Path(path).exists():
            raise UsageError(f"-o/--out: {path}: found an existing file, expected a new name: weir never overwrites")
    for path, text in files.items():
        try:
            Path(path).write_text(text)
        except OSError as error:
            raise UsageError(f"-o/--out: {path}: cannot be written: {error.strerror}") from None
        say(f"wrote {path}")
