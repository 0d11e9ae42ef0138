"""`weir audit`: checks another tool's report for impossible numbers."""

from dataclasses import asdict
from typing import Annotated

import typer
from rich.text import Text
from typer import Argument, Option

from weir.audit.audit import AuditedLoad, audit_file
from weir.cli import options
from weir.cli.output import print_text, stdout, write_json
from weir.model.errors import ExitCode
from weir.parsing import parse_duration

_MARKS = {"impossible": ("IMPOSSIBLE", "bold red"), "capped": ("AT ITS CAP", "yellow")}


def audit(
    file: Annotated[
        str,
        Argument(
            help="A tool's report (wrk, wrk2, hey, ab, oha, k6, JMeter, Locust), or a TOML file with published figures."
        ),
    ],
    users: Annotated[
        int | None,
        Option("--users", "-c", min=1, help="Number of connections or users. Default: from FILE."),
    ] = None,
    ramp: Annotated[str | None, Option("--ramp", help="Time in which all users started. Example: 50s.")] = None,
    loops: Annotated[int | None, Option("--loops", min=1, help="Number of requests that each user sent.")] = None,
    think: Annotated[
        str | None, Option("--think", help="Mean pause of a user between a response and the next request.")
    ] = None,
    json: options.JsonFile = None,
) -> None:
    """Check another tool's report for impossible numbers.

    The exit code is 1 if a number is impossible.

    Example: weir audit hey.txt --users 20
    """
    ramp_s = None if ramp is None else options.read_flag("--ramp", parse_duration, ramp)
    think_s = None if think is None else options.read_flag("--think", parse_duration, think)
    title, loads = audit_file(file, users=users, ramp_s=ramp_s, loops=loops, think_s=think_s)
    if json is not None:
        known = [(load, [asdict(violation) for violation in load.violations]) for load in loads]
        listed = [
            {"name": one.result.name, "possible": one.is_possible, "breaches": breaches} for one, breaches in known
        ]
        write_json({"schema": 1, "title": title, "loads": listed}, json)
    if json != "-":
        _print(title, loads)
    if any(not load.is_possible for load in loads):
        raise typer.Exit(ExitCode.MISSED)


def _print(title: str, loads: list[AuditedLoad]) -> None:
    print_text(title, "bold")
    for load in loads:
        if load.violations:
            stdout.print()
            print_text(load.result.name, "bold")
        for violation in load.violations:
            word, style = _MARKS[violation.kind]
            stdout.print(Text.assemble((f"  {word}  ", style), violation.law))
            stdout.print(f"    {violation.found} {violation.cause}")
    stdout.print()
    broken = sum(not load.is_possible for load in loads)
    at_cap = sum(any(violation.kind == "capped" for violation in load.violations) for load in loads)
    loads_text = f"{len(loads)} load{'s' if len(loads) != 1 else ''}"
    cap_text = f", {at_cap} limited by the load and not by the server" if at_cap else ""
    stdout.print(f"{loads_text}: {broken} with impossible figures{cap_text}")
    if not broken and all(load.result.users is None for load in loads):
        stdout.print("the number of users is unknown, but most laws need this number: add --users N")
