"""`weir plan`: predicts from a run how many machines a rate of requests needs."""

import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from weir.cli import options
from weir.cli.output import make_table, print_json, print_text, say, stdout
from weir.model.errors import ExitCode, UsageError
from weir.store import RunReader, find_run

if TYPE_CHECKING:
    from weir.findings.capacity_planning import MachinePlan, ReplicaPrediction

_THOUSANDS = {"": 1.0, "k": 1e3, "M": 1e6}


def plan(
    run: Annotated[Path, Option("--from", metavar="RUN", help="Run folder or run file to predict from.")],
    target_rate: Annotated[
        str | None, Option("--target-rate", metavar="RATE", help="Planned requests per second. Examples: 5000, 100k.")
    ] = None,
    objective_: options.Objective = None,
    stack: Annotated[
        str | None,
        Option("--stack", help="Stack as ID or ID[VARIANT]. Necessary if the run has several stacks."),
    ] = None,
    cpus: Annotated[
        list[str] | None,
        Option("--cpus", metavar="TIER=CPUS", help="CPUs of each machine of a tier. Default: as in the run."),
    ] = None,
    replicas: Annotated[
        str | None,
        Option(
            "--replicas",
            metavar="N,...",
            help="Predict the throughput on one machine with these numbers of stack processes.",
        ),
    ] = None,
    json_: options.Json = False,
) -> None:
    """Predict from a run how many machines and load agents a rate needs. Exit with 1 if the objective cannot be met.

    Example: weir plan --from runs/api-capacity-1 --stack nest-typeorm-nginx --target-rate 100k --objective 'p99<=50ms'
    """
    from weir.findings.capacity_planning import plan_machines, predict_replicas
    from weir.objective import parse_objective

    if target_rate is None:
        if replicas is None:
            problem = "missing, expected requests per second, such as 100k, or the flag --replicas"
            raise UsageError(f"--target-rate: {problem}", hint="weir plan --help")
        if flags := [name for name, given in (("--objective", objective_), ("--cpus", cpus)) if given]:
            problem = "found without --target-rate, expected both: --replicas predicts only throughput on this machine"
            raise UsageError(f"{', '.join(flags)}: {problem}", hint="add --target-rate RATE")
    rate_rps = None if target_rate is None else _read_rate(target_rate)
    condition = None if objective_ is None else parse_objective(objective_)
    machines = _read_machines(cpus or [])
    counts = [] if replicas is None else list(options.read_flag("--replicas", options.parse_counts, replicas))
    found = None
    with RunReader(find_run(run)) as reader:
        if rate_rps is not None:
            found = plan_machines(reader, rate_rps=rate_rps, objective=condition, stack=stack, cpus=machines)
        predictions = predict_replicas(reader, stack=stack, replicas=counts)
    if json_:
        predicted = [{**asdict(one), "error": one.error} for one in predictions]
        print_json({"plan": None if found is None else asdict(found), "replicas": predicted})
    else:
        if found is not None:
            _print(found)
        if predictions and (counts or any(one.measured_rps for one in predictions)):
            _print_predictions(predictions)
    if found is not None and not found.met:
        say(f"weir: the objective {'is not met' if found.alone is None else 'cannot be met by more machines'}")
        raise typer.Exit(ExitCode.MISSED)


def _read_rate(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kM]?)", text.strip())
    if match is None or float(match[1]) <= 0:
        raise UsageError(f"--target-rate: found {text!r}, expected requests per second, such as 5000, 100k or 1.5M")
    return float(match[1]) * _THOUSANDS[match[2]]


def _read_machines(texts: Sequence[str]) -> dict[str, float]:
    found = {}
    for text in texts:
        tier, _, count = text.partition("=")
        if not tier or not re.fullmatch(r"\d+(\.\d+)?", count) or float(count) <= 0:
            raise UsageError(f"--cpus: found {text!r}, expected a tier and its number of CPUs, such as app=8")
        found[tier] = float(count)
    return found


def _print(found: "MachinePlan") -> None:
    print_text(found.sentence)
    columns = ("machines", "interval", "CPUs each", "busy", "demand per request")
    table = make_table("", *columns, right=columns, no_wrap=("", *columns))
    for one in (*found.tiers, *([] if found.agents is None else [found.agents])):
        demand = f"{one.demand_us:,.0f} us{_interval(one.demand_low_us, one.demand_high_us, ' ({})')}"
        row = (f"{one.machines:,}", f"{one.low:,}–{one.high:,}", f"{one.servers:g}", f"{one.busy:.0%}", demand)
        table.add_row(one.tier, *row)
    stdout.print()
    stdout.print(table)
    stdout.print()
    mean, simulated = f"{found.mean_us / 1e3:,.2f} ms", f"{found.simulated_mean_us / 1e3:,.2f} ms"
    stdout.print(f"response time: {mean} on average by mean value analysis, {simulated} by simulation")
    if found.found is not None:
        interval = _interval(found.found_low, found.found_high, " ({})", divisor=1e3, digits=2)
        stdout.print(f"{found.objective}: {found.found / 1e3:,.2f} ms{interval} by simulation")
    stdout.print()
    for assumption in found.assumptions:
        print_text(f"assumes: {assumption}", "dim")


def _print_predictions(predictions: "Sequence[ReplicaPrediction]") -> None:
    columns = ("processes", "predicted req/s", "interval", "measured", "difference in a block")
    table = make_table(*columns, right=columns)
    for one in predictions:
        measured = "–" if one.measured_rps is None else f"{one.measured_rps:,.0f}"
        difference = "–"
        if one.error is not None:
            difference = f"{one.error:+.1%} ({one.differences[0]:+.0%} to {one.differences[-1]:+.0%})"
        interval = _interval(one.low_rps, one.high_rps) or "–"
        table.add_row(str(one.replicas), f"{one.predicted_rps:,.0f}", interval, measured, difference)
    stdout.print()
    stdout.print(table)
    for one in predictions:
        if one.caution is not None:
            print_text(f"{one.replicas} processes: {one.caution}", "dim")


def _interval(low: float | None, high: float | None, form: str = "{}", *, divisor: float = 1.0, digits: int = 0) -> str:
    """Returns `form` with the interval, or an empty text without an interval."""
    if low is None or high is None:
        return ""
    return form.format(f"{low / divisor:,.{digits}f}–{high / divisor:,.{digits}f}")
