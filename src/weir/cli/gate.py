"""`weir gate`: checks for a pull request whether a run is worse than an earlier run."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from weir.cli import options
from weir.cli.output import print_json, print_lines
from weir.model.errors import ExitCode
from weir.store import RunReader, find_run


def gate(
    base: Annotated[Path, Argument(metavar="BASE", help="Baseline run (folder or file).")],
    head: Annotated[Path, Argument(metavar="HEAD", help="New run to judge (folder or file).")],
    metrics: options.Metrics = None,
    threshold: Annotated[str, Option("--threshold", help="Smallest relative change that counts as worse.")] = "5%",
    strict: Annotated[bool, Option("--strict", help="Exit with 4 if a comparison is inconclusive.")] = False,
    any_environment: Annotated[
        bool, Option("--any-environment", help="Allow runs from different machines or different versions of weir.")
    ] = False,
    json_: options.Json = False,
) -> None:
    """Compare a run with an earlier run, print the changes as Markdown, and exit with 1 if a metric is worse.

    Example: weir gate runs/main runs/branch --threshold 5%
    """
    from weir.findings.regression import METRICS, compare_runs, format_markdown

    chosen = options.choose_metrics(metrics, METRICS, "gate")
    share = options.read_flag("--threshold", options.parse_percent, threshold)
    with RunReader(find_run(base)) as old, RunReader(find_run(head)) as new:
        found = compare_runs(old, new, chosen, share, any_environment=any_environment)
    if json_:
        print_json(asdict(found))
    else:
        print_lines(format_markdown(found), wraps=False)
    if found.worse:
        raise typer.Exit(ExitCode.MISSED)
    if strict and found.unsettled:
        raise typer.Exit(ExitCode.NOT_VALID)
