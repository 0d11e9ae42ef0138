"""`weir gate`: whether a run is worse than an earlier one, for a pull request."""

import re
from pathlib import Path
from typing import Annotated

import typer

from weir.cli.output import print_json
from weir.cli.values import metrics as named_metrics
from weir.model.errors import ExitCode, UsageError
from weir.model.text import printable
from weir.store import RunReader, find_run


def gate(
    base: Annotated[Path, typer.Argument(metavar="BASE", help="The run that is the measure: a folder or a file.", show_default=False)],
    head: Annotated[Path, typer.Argument(metavar="HEAD", help="The run that is judged.", show_default=False)],
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            help="What must not become worse; more than once for several. Default: throughput, p99 and CPU per request.",
            show_default=False,
        ),
    ] = None,
    threshold: Annotated[str, typer.Option("--threshold", help="How much worse is too much.")] = "5%",
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 4 where something is shown neither way.")] = False,
    any_environment: Annotated[
        bool, typer.Option("--any-environment", help="Compare runs of different machines, or of different versions of weir.")
    ] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON in place of Markdown.")] = False,
) -> None:
    """Hold a run against an earlier one, print what changed as Markdown, and exit with 1 where something is worse.

    Example: weir gate runs/main runs/branch --threshold 5%
    """
    # Here and not above: findings take as long to import as all else, and a wrong flag does not need it.
    from weir.findings.gate import METRICS, markdown
    from weir.findings.gate import gate as held_against

    wanted = named_metrics(metrics, METRICS, "gate")
    share = _share(threshold)
    with RunReader(find_run(base)) as old, RunReader(find_run(head)) as new:
        found = held_against(old, new, wanted, share, any_environment=any_environment)
    if json_:
        print_json(found.to_json())
    else:
        print("\n".join(printable(line) for line in markdown(found).split("\n")))
    if found.worse:
        raise typer.Exit(ExitCode.MISSED)
    if strict and found.unsettled:
        raise typer.Exit(ExitCode.NOT_VALID)


def _share(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", text.strip())
    if match is None or not 0 < float(match.group(1)) < 100:
        raise UsageError(f"--threshold: found {text!r}, expected a share above 0 and below 100 %, such as 5%")
    return float(match.group(1)) / 100
