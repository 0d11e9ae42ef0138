"""`weir breakeven`: where one stack of a run stops being the better one."""

from pathlib import Path
from typing import Annotated

import typer

from weir.cli.output import print_json, stdout
from weir.cli.values import metrics as named_metrics
from weir.model.errors import UsageError
from weir.model.text import printable
from weir.store import RunReader, find_run


def breakeven(
    one: Annotated[str, typer.Argument(metavar="A", help="A stack of the run, as ID or ID[VARIANT].", show_default=False)],
    other: Annotated[str, typer.Argument(metavar="B", help="Another one.", show_default=False)],
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder or a run file.", show_default=False)],
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            help="What to compare them on; more than once for several. Default: throughput, p99 and CPU per request.",
            show_default=False,
        ),
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Print every place where two stacks of a run change sides: over connections, rates and whatever else it varies.

    Example: weir breakeven spring-webflux-r2dbc-pg spring-mvc-jdbc runs/blocking-vs-nonblocking-1
    """
    from weir.findings import BREAK_EVEN_METRICS, break_evens_in

    wanted = named_metrics(metrics, BREAK_EVEN_METRICS, "breakeven")
    path = find_run(run)
    with RunReader(path) as reader:
        labels = {cell.stack_label for cell in reader.cells() if cell.arm == "main"}
        for asked in (one, other):
            if asked not in labels:
                raise UsageError(f"{path}: found no stack {asked}, expected one of {', '.join(sorted(labels))}", hint=f"weir report {run}")
        if one == other:
            raise UsageError(f"weir breakeven: found {one} twice, expected two stacks", hint=f"weir report {run}")
        found = break_evens_in(reader, one, other, wanted)
    if json_:
        print_json([one.to_json() for one in found])
        return
    if not found:
        stdout.print("Cannot say, because the two were not both measured at two places at least that differ in one number alone.")
    for one_found in found:
        stdout.print(printable(one_found.sentence), highlight=False, markup=False)
        stdout.print(printable(f"  {one_found.would_change}"), highlight=False, markup=False, style="dim")
