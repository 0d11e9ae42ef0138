"""`weir audit`: what in somebody's figures cannot be."""

from dataclasses import asdict
from typing import Annotated

import typer
from rich.text import Text

from weir.audit.audit import Audited, audit_file
from weir.cli.output import stdout, write_json
from weir.load_values import duration_s
from weir.model.errors import ExitCode
from weir.model.text import printable

_MARKS = {"impossible": ("IMPOSSIBLE", "bold red"), "capped": ("AT ITS CAP", "yellow")}


def audit(
    file: Annotated[
        str,
        typer.Argument(help="A report of wrk, wrk2, hey, ab, oha, k6, JMeter or Locust, a file of claims, or a published table's name."),
    ],
    users: Annotated[int | None, typer.Option("--users", "-c", min=1, help="Connections or users, where the report does not say.")] = None,
    ramp: Annotated[str | None, typer.Option("--ramp", help="Over which the users came: 50s.")] = None,
    loops: Annotated[int | None, typer.Option("--loops", min=1, help="Requests of each user.")] = None,
    think: Annotated[str | None, typer.Option("--think", help="Mean pause of a user between an answer and the next request.")] = None,
    json: Annotated[str | None, typer.Option("--json", help="Write what was found as JSON to this file, - for standard output.")] = None,
) -> None:
    """Hold figures that others printed against physics.

    Exits with 1 when something in them is impossible.

    Example: weir audit hey.txt --users 20
    """
    title, loads = audit_file(
        file,
        users=users,
        ramp_s=None if ramp is None else duration_s(ramp, "--ramp"),
        loops=loops,
        think_s=None if think is None else duration_s(think, "--think"),
    )
    if json is not None:
        write_json({"schema": 1, "title": title, "loads": [_as_json(load) for load in loads]}, json)
    if json != "-":
        _print(printable(title), loads)
    if any(not load.is_possible for load in loads):
        raise typer.Exit(ExitCode.MISSED)


def _print(title: str, loads: list[Audited]) -> None:
    stdout.print(title, style="bold", markup=False)
    for load in loads:
        if not load.breaches:
            continue
        stdout.print()
        stdout.print(printable(load.claim.name), style="bold", markup=False)
        for breach in load.breaches:
            word, style = _MARKS[breach.kind]
            stdout.print(Text.assemble((f"  {word}  ", style), breach.law))
            stdout.print(f"    {breach.found} {breach.cause}", markup=False)
    stdout.print()
    broken = sum(not load.is_possible for load in loads)
    at_cap = sum(any(breach.kind == "capped" for breach in load.breaches) for load in loads)
    loads_text = f"{len(loads)} load{'s' if len(loads) != 1 else ''}"
    cap_text = f", {at_cap} at the cap of its own load" if at_cap else ""
    stdout.print(f"{loads_text}: {broken} with impossible figures{cap_text}", markup=False)
    if not broken and all(load.claim.users is None for load in loads):
        stdout.print("how many users there were is not known, which most of the laws need: give --users", markup=False)


def _as_json(load: Audited) -> dict[str, object]:
    return {"name": load.claim.name, "possible": load.is_possible, "breaches": [asdict(breach) for breach in load.breaches]}
