"""`weir plan`: how many machines a rate takes, from a run of this machine."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from weir.cli.output import print_json, say, stdout
from weir.model.errors import ExitCode, UsageError
from weir.model.text import printable
from weir.store import RunReader, find_run

if TYPE_CHECKING:
    from weir.findings.plan import MachinePlan, ReplicaPrediction

_THOUSANDS = {"": 1.0, "k": 1e3, "M": 1e6}


def plan(
    run: Annotated[Path, typer.Option("--from", metavar="RUN", help="A run folder or a run file.", show_default=False)],
    target_rate: Annotated[
        str | None, typer.Option("--target-rate", metavar="RATE", help="Requests a second: 5000, 100k or 1.5M.", show_default=False)
    ] = None,
    objective_: Annotated[
        str | None, typer.Option("--objective", help="What must hold of the response time: 'p99<=50ms'.", show_default=False)
    ] = None,
    stack: Annotated[
        str | None, typer.Option("--stack", help="As ID or ID[VARIANT], where the run has several.", show_default=False)
    ] = None,
    cpus: Annotated[
        list[str] | None,
        typer.Option(
            "--cpus", metavar="TIER=CPUS", help="A machine of this tier has so many; as many as in the run by default.", show_default=False
        ),
    ] = None,
    replicas: Annotated[
        str | None,
        typer.Option(
            "--replicas", metavar="N,...", help="Also predict what this machine would answer with so many processes.", show_default=False
        ),
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say how many load agents and machines of each tier a rate takes, from what a run measured. Exits with 1 where an objective is missed.

    Example: weir plan --from runs/api-capacity-1 --stack nest-typeorm-nginx --target-rate 100k --objective 'p99<=50ms'
    """
    from weir.findings.plan import plan_machines, predict_replicas
    from weir.objective import objective

    if target_rate is None and replicas is None:
        raise UsageError("--target-rate: found none, expected requests a second, as 100k; or --replicas", hint="weir plan --help")
    if target_rate is None and (flags := [name for name, given in (("--objective", objective_), ("--cpus", cpus)) if given]):
        raise UsageError(
            f"{', '.join(flags)}: found without --target-rate, expected with it: --replicas predicts what processes of this machine answer",
            hint="add --target-rate RATE",
        )
    rate_rps = None if target_rate is None else _rate(target_rate)
    condition = None if objective_ is None else objective(objective_)
    machines = _machines(cpus or [])
    counts = [] if replicas is None else _counts(replicas)
    with RunReader(find_run(run)) as reader:
        found = None if rate_rps is None else plan_machines(reader, rate_rps=rate_rps, objective=condition, stack=stack, cpus=machines)
        predictions = predict_replicas(reader, stack=stack, replicas=counts)
    if json_:
        predicted = [
            {
                "replicas": one.replicas,
                "at": one.at,
                "predicted_rps": one.predicted_rps,
                "low_rps": one.low_rps,
                "high_rps": one.high_rps,
                "measured_rps": one.measured_rps,
                "error": one.error,
                "differences": list(one.differences),
                "caution": one.caution,
            }
            for one in predictions
        ]
        print_json({"plan": None if found is None else found.to_json(), "replicas": predicted})
    else:
        if found is not None:
            _print(found)
        if predictions and (counts or any(one.measured_rps for one in predictions)):
            _print_predictions(predictions)
    if found is not None and not found.met:
        say("weir: the objective is not met" if found.alone is None else "weir: the objective cannot be met by more machines")
        raise typer.Exit(ExitCode.MISSED)


def _print(found: "MachinePlan") -> None:
    stdout.print(printable(found.sentence), markup=False, highlight=False)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("", "machines", "interval", "CPUs each", "busy", "needs of each for a request"):
        table.add_column(column, no_wrap=True, justify="left" if not column else "right")
    for one in (*found.tiers, *([] if found.agents is None else [found.agents])):
        interval = (
            "–" if one.demand_low_us is None or one.demand_high_us is None else f" ({one.demand_low_us:,.0f}–{one.demand_high_us:,.0f})"
        )
        table.add_row(
            one.tier,
            f"{one.machines:,}",
            f"{one.low:,}–{one.high:,}",
            f"{one.servers:g}",
            f"{one.busy:.0%}",
            f"{one.demand_us:,.0f} us{interval}",
        )
    stdout.print()
    stdout.print(table)
    stdout.print()
    stdout.print(
        f"response time: {found.mean_us / 1e3:,.2f} ms on average by mean value analysis, "
        f"{found.simulated_mean_us / 1e3:,.2f} ms by simulation",
        highlight=False,
    )
    if found.found is not None:
        interval = (
            "" if found.found_low is None or found.found_high is None else f" ({found.found_low / 1e3:,.2f}–{found.found_high / 1e3:,.2f})"
        )
        stdout.print(f"{found.objective}: {found.found / 1e3:,.2f} ms{interval} by simulation", highlight=False, markup=False)
    stdout.print()
    for assumption in found.assumptions:
        stdout.print(printable(f"assumes: {assumption}"), markup=False, highlight=False, style="dim")


def _print_predictions(predictions: "tuple[ReplicaPrediction, ...]") -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("processes", "predicted req/s", "interval", "measured", "difference in a block"):
        table.add_column(column, justify="right")
    for one in predictions:
        measured = "–" if one.measured_rps is None else f"{one.measured_rps:,.0f}"
        difference = "–" if one.error is None else f"{one.error:+.1%} ({one.differences[0]:+.0%} to {one.differences[-1]:+.0%})"
        interval = "–" if one.low_rps is None or one.high_rps is None else f"{one.low_rps:,.0f}–{one.high_rps:,.0f}"
        table.add_row(str(one.replicas), f"{one.predicted_rps:,.0f}", interval, measured, difference)
    stdout.print()
    stdout.print(table)
    for one in predictions:
        if one.caution is not None:
            stdout.print(printable(f"{one.replicas} processes: {one.caution}"), markup=False, highlight=False, style="dim")


def _rate(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kM]?)", text.strip())
    if match is None or float(match.group(1)) <= 0:
        raise UsageError(f"--target-rate: found {text!r}, expected requests a second, as 5000, 100k or 1.5M")
    return float(match.group(1)) * _THOUSANDS[match.group(2)]


def _machines(texts: list[str]) -> dict[str, float]:
    found = {}
    for text in texts:
        tier, _, count = text.partition("=")
        if not tier or not re.fullmatch(r"\d+(\.\d+)?", count) or float(count) <= 0:
            raise UsageError(f"--cpus: found {text!r}, expected a tier and its CPUs, as app=8")
        found[tier] = float(count)
    return found


def _counts(text: str) -> list[int]:
    parts = text.split(",")
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise UsageError(f"--replicas: found {text!r}, expected whole numbers from 1, as 2,3")
    return [int(part) for part in parts]
