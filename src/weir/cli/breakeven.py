"""`weir breakeven`: finds the connections, rates and settings at which another of two stacks becomes better."""

from dataclasses import asdict
from typing import Annotated

from typer import Argument

from weir.cli import options
from weir.cli.output import print_json, print_text
from weir.model.errors import UsageError
from weir.store import RunReader, find_run


def breakeven(
    one: Annotated[str, Argument(metavar="A", help="First stack of the run to compare, as ID or ID[VARIANT].")],
    other: Annotated[str, Argument(metavar="B", help="Second stack of the run to compare.")],
    run: options.Run,
    metrics: options.Metrics = None,
    json_: options.Json = False,
) -> None:
    """Print the break-evens of two stacks: each connection count, rate or setting where the better stack changes.

    Example: weir breakeven spring-webflux-r2dbc-pg spring-mvc-jdbc runs/blocking-vs-nonblocking-1
    """
    from weir.findings.break_even import METRICS as BREAK_EVEN_METRICS
    from weir.findings.run_findings import break_evens_in

    chosen = options.choose_metrics(metrics, BREAK_EVEN_METRICS, "breakeven")
    path = find_run(run)
    with RunReader(path) as reader:
        labels = {cell.stack_label for cell in reader.cells() if cell.arm == "main"}
        for asked in (one, other):
            if asked not in labels:
                expected = f"expected one of {', '.join(sorted(labels))}"
                raise UsageError(f"{path}: found no stack {asked}, {expected}", hint=f"weir report {run}")
        if one == other:
            raise UsageError(f"weir breakeven: found {one} twice, expected two stacks", hint=f"weir report {run}")
        found = break_evens_in(reader, one, other, chosen)
    if json_:
        print_json([asdict(crossover) for crossover in found])
        return
    if not found:
        print("No break-even: weir needs results of both stacks at two or more points that differ in only one number.")
    for crossover in found:
        print_text(crossover.sentence)
        print_text(f"  {crossover.would_change}", "dim")
