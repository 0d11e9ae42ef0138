"""`weir audit`: checks another tool's report for impossible numbers."""

from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.text import Text
from typer import Argument, Option

from weir.audit.audit import AuditedLoad, audit_file
from weir.audit.laws import format_time
from weir.cli import options
from weir.cli.output import print_text, stdout, write_json
from weir.compat.reports import TOOLS
from weir.model.errors import ExitCode
from weir.model.reported_result import Figure, ReportedResult
from weir.parsing import parse_duration

_MARKS = {
    "impossible": ("IMPOSSIBLE", "bold red"),
    "pipelined": ("ONLY WITH A PIPELINE", "yellow"),
    "capped": ("AT ITS CAP", "yellow"),
}

_FEW = 20
"""Maximum number of loads that weir prints in full. With more loads, weir prints only loads with violations."""


def audit(
    file: Annotated[
        str,
        Argument(help=f"A file with one or more reports ({', '.join(TOOLS)}), or a TOML file with published figures."),
    ],
    users: Annotated[
        int | None,
        Option("--users", "-c", min=1, help="Number of connections or users. Default: from FILE."),
    ] = None,
    pipeline: Annotated[
        int | None,
        Option("--pipeline", min=1, help="Number of requests that each user has in flight. Default: from FILE, or 1."),
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
    title, loads = audit_file(
        file, users=users, requests_in_flight=pipeline, ramp_s=ramp_s, loops=loops, think_s=think_s
    )
    if json is not None:
        listed = [
            {
                "name": load.result.name,
                "tool": load.result.tool,
                "read": _list_figures(load.result),
                "possible": load.is_possible,
                "breaches": [asdict(violation) for violation in load.violations],
            }
            for load in loads
        ]
        write_json({"schema": 1, "title": title, "loads": listed}, json)
    if json != "-":
        _print(title, loads)
    if any(not load.is_possible for load in loads):
        raise typer.Exit(ExitCode.MISSED)


def _print(title: str, loads: list[AuditedLoad]) -> None:
    if [title] != [load.result.name for load in loads]:
        print_text(title, "bold")
    for load in loads:
        if load.violations or len(loads) <= _FEW:
            stdout.print()
            print_text(load.result.name, "bold")
            print_text(f"  {_describe(load.result)}", "dim")
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
    if any(violation.kind == "pipelined" for load in loads for violation in load.violations):
        stdout.print("the number of requests in flight is unknown: add --pipeline N (1 without pipelining)")
    if not broken and all(load.result.users is None for load in loads):
        stdout.print("the number of users is unknown, but most laws need this number: add --users N")


def _describe(result: ReportedResult) -> str:
    """Returns the figures that weir has read. Users compare these figures with the report."""
    figures = _list_figures(result)
    times = {"mean": "mean_s", "min": "min_s", "max": "max_s"}
    parts = [result.tool or ""]
    parts += [f"{figures['users']:,} users"] if "users" in figures else []
    parts += [f"{figures['requests']:,} requests"] if "requests" in figures else []
    parts += [f"{figures['failed']:,} failed"] if figures.get("failed") else []
    parts += [f"in {format_time(figures['duration_s'])}"] if "duration_s" in figures else []
    parts += [f"{figures['throughput_rps']:,.6g} requests/s"] if "throughput_rps" in figures else []
    parts += [f"{name} {format_time(figures[key])}" for name, key in times.items() if key in figures]
    parts += [f"{name} {format_time(at)}" for name, at in figures.get("quantiles_s", {}).items()]
    return ", ".join(filter(None, parts))


def _list_figures(result: ReportedResult) -> dict[str, Any]:
    names = ("users", "requests", "failed", "duration_s", "throughput_rps", "mean_s", "stdev_s", "min_s", "max_s")
    values = {name: getattr(result, name) for name in names}
    read = {name: value.value if isinstance(value, Figure) else value for name, value in values.items()}
    quantiles = {f"p{at * 100:g}": figure.value for at, figure in sorted(result.quantiles_s.items())}
    return {name: value for name, value in read.items() if value is not None} | {"quantiles_s": quantiles}
