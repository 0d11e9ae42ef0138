"""`weir study`: lists and checks studies, and predicts the duration and the statistical power of a study."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from weir.cli import options
from weir.cli.output import make_table, print_json, stdout
from weir.cli.report import open_study_run
from weir.generators.registry import get_tool
from weir.lab.blocks import find_time_shortages
from weir.lab.placement import describe_placement
from weir.lab.study_run import plan_placement
from weir.model.errors import UsageError
from weir.model.run_types import WEIR
from weir.parsing import format_duration
from weir.study.machine_needs import find_missing_generators, find_shortages, read_machine
from weir.study.schema import build_json_schema
from weir.study.study import PlannedCell, Study, read_study
from weir.study.time_estimate import Overhead, TimeEstimate, describe_plan, estimate_time
from weir.toml_file import list_data_files

app = typer.Typer(help="List and check studies, and print the JSON Schema of study files.", no_args_is_help=True)
_ASSUMED_CV = 0.05
_AIM = 1.05
"""`check` prints the number of blocks that detect this throughput ratio."""
_HUGE = 100
"""The highest factor that `check` prints. Even a short trial shows a larger difference."""
_MOST_CELLS = 60
_MOST_BLOCKS = 10


@app.command(name="list")
def list_(json_: options.Json = False) -> None:
    """List the studies that are part of weir."""
    known = [read_study(name) for name in list_data_files("studies")]
    if json_:
        print_json([{"name": study.name, "question": study.file.question, "path": str(study.path)} for study in known])
        return
    table = make_table("study", "question")
    for study in known:
        table.add_row(study.name, study.file.question)
    stdout.print(table)


@app.command()
def schema() -> None:
    """Print the JSON Schema of study files, for editors.

    Example: weir study schema > study.schema.json

    Then write this line at the top of the study's file: #:schema ./study.schema.json
    """
    print_json(build_json_schema())


@app.command()
def check(
    study: Annotated[str, options.STUDY],
    scale: options.Scale = None,
    assume_cv: Annotated[
        str | None,
        Option("--assume-cv", metavar="PERCENT", help="Assumed spread (standard deviation) of trials. Default: 5%."),
    ] = None,
    pilot: Annotated[
        Path | None,
        Option("--pilot", metavar="RUN", help="Take the spread and the overhead of trials from this earlier run."),
    ] = None,
    json_: options.Json = False,
) -> None:
    """Print the trials of a study, their order and duration, and the smallest difference that the study can detect.

    The command starts no server. The exit code is 2 if this machine cannot run the study.

    Example: weir study check sync-vs-async --scale quick --assume-cv 5%
    """
    if pilot is not None and assume_cv is not None:
        raise UsageError("--assume-cv: found together with --pilot, expected only one of the two")
    chosen = read_study(study, scale=scale)
    placement = plan_placement(chosen)
    cells = chosen.cells(len(placement.stack))
    overhead, memory, spread, basis = _estimate_spread(assume_cv, pilot)
    coming = estimate_time(chosen, cells, overhead)
    detection = _estimate_detection(chosen, cells, spread)
    lacking = [
        *find_missing_generators(chosen),
        *find_shortages(cells, read_machine(), placement, memory_bytes=memory),
        *find_time_shortages(chosen, cells),
    ]
    if json_:
        known: dict[str, Any] = {"schema": 1, "study": chosen.name, "scale": chosen.scale}
        known |= {"blocks": chosen.file.method.blocks, "indicative": chosen.indicative}
        known |= {"cells": [_to_json(one) for one in cells], "placement": asdict(placement)}
        known |= {"forecast": {**asdict(coming), "total_s": coming.total_s}}
        print_json({**known, "detection": {**detection, "basis": basis}, "lacking": lacking})
    else:
        stdout.print(chosen.file.question, style="italic")
        stdout.print(f"{chosen.path}, scale {chosen.scale}\n")
        _print_cells(cells)
        _print_generators(chosen)
        _print_order(coming.order)
        headline, *lines = describe_plan(chosen, coming, len(cells))
        stdout.print(headline, style="bold")
        lines = [f"  {line}" for line in [*lines, *_describe_time(coming, is_measured=pilot is not None)]]
        lines += ["", *_describe_detection(detection, chosen.file.method.blocks, basis), ""]
        stdout.print("\n".join([*lines, *describe_placement(placement)]))
    if lacking:
        raise UsageError("\n".join(lacking))


def _estimate_spread(assume_cv: str | None, pilot: Path | None) -> tuple[Overhead, dict[str, int], float, str]:
    """Returns the trials' overhead, the stacks' memory, the spread of log ratios, and the source of that spread."""
    if pilot is None:
        cv = _ASSUMED_CV if assume_cv is None else options.read_flag("--assume-cv", options.parse_percent, assume_cv)
        how = "(--assume-cv changes this number, --pilot RUN measures the spread)"
        basis = f"assuming that trials of one cell differ by {cv * 100:.3g} % of their mean {how}"
        # Two trials of a block vary independently: the variances of their logarithms add up.
        return Overhead(), {}, cv * math.sqrt(2), basis
    from weir.findings.pilot import measure_pilot

    with open_study_run(pilot, "--pilot: ") as reader:
        found = measure_pilot(reader)
    spread = f"{found.spread * 100:.3g} % ({found.pairs} degrees of freedom)"
    basis = f"from {reader.path}: two trials of a block differ by {spread}"
    mean_s = sum(found.overhead_s.values()) / len(found.overhead_s) if found.overhead_s else Overhead().otherwise_s
    return Overhead(found.overhead_s, mean_s), found.memory_bytes, found.spread, basis


def _estimate_detection(study: Study, cells: Sequence[PlannedCell], spread: float) -> dict[str, Any]:
    from weir.findings.generator_comparison import count_planned_generator_comparisons
    from weir.findings.points import count_planned_comparisons
    from weir.stats import blocks_to_detect, minimum_detectable_ratio

    planned, method = [one.cell for one in cells], study.file.method
    comparisons = count_planned_generator_comparisons(planned) or count_planned_comparisons(planned, method.baseline)
    ratio = minimum_detectable_ratio(spread, method.blocks, comparisons) if comparisons else None
    return {
        "comparisons": comparisons,
        "power": 0.8,
        "spread": spread,
        "detectable_ratio": ratio if ratio is None or math.isfinite(ratio) else None,
        "blocks_for_5_percent": blocks_to_detect(_AIM, spread, comparisons) if comparisons else None,
    }


def _to_json(planned: PlannedCell) -> dict[str, Any]:
    cell, method = planned.cell, planned.method
    labels = {"load": cell.load.to_plan(), "label": cell.stack_label, "point": cell.point_label}
    times = {"duration_s": planned.duration_s, "warmup_s": method.warmup_s, "pause_s": method.pause_s}
    return {**asdict(cell), **labels, **times}


def _print_cells(cells: Sequence[PlannedCell]) -> None:
    from weir.findings.points import PointNames

    names = PointNames([one.cell for one in cells])
    columns = ("cell", "stack", "point", "settings", "warm-up s", "load s")
    table = make_table(*columns, right=("cell", "warm-up s", "load s"))
    for planned in cells[:_MOST_CELLS]:
        cell = planned.cell
        settings = ", ".join(f"{name} {value}" for name, value in cell.settings.items() if name not in cell.coordinates)
        times = (f"{planned.method.warmup_s:g}", f"{planned.duration_s:g}")
        table.add_row(str(cell.id), cell.stack_label, names.of(cell), settings or "–", *times)
    stdout.print(table)
    if len(cells) > _MOST_CELLS:
        stdout.print(f"and {len(cells) - _MOST_CELLS} more: --json lists all cells")
    stdout.print()


def _print_generators(study: Study) -> None:
    """Prints each generator other than weir's engine, with its path or the reason why it is missing."""
    others = [name for name in study.file.matrix.generators if name != WEIR]
    missing = study.missing_generators()
    for name in others:
        stdout.print(f"generator {missing.get(name) or f'{name}: {get_tool(name).find()}'}")
    if others:
        stdout.print()


def _print_order(order: Sequence[Sequence[int]]) -> None:
    stdout.print("order", style="bold")
    for number, block in enumerate(order[:_MOST_BLOCKS], start=1):
        stdout.print(f"  block {number}: {' '.join(map(str, block))}")
    if len(order) > _MOST_BLOCKS:
        stdout.print(f"  and {len(order) - _MOST_BLOCKS} more blocks: --json lists all blocks")
    stdout.print()


def _describe_time(coming: TimeEstimate, *, is_measured: bool) -> list[str]:
    how = "as in the pilot" if is_measured else "assumed; --pilot RUN measures the starts and stops"
    load, warmup, pauses = map(format_duration, (coming.load_s, coming.warmup_s, coming.pauses_s))
    starts_and_stops, checks = format_duration(coming.starts_and_stops_s), format_duration(coming.checks_s)
    lines = [
        f"load {load}, warm-up {warmup}, pauses {pauses}, starts and stops {starts_and_stops} ({how})",
        f"before the first trial: stack checks and generator limits {checks}; in addition: builds and repeated trials",
    ]
    if coming.extensions_s:
        most = format_duration(coming.extensions_s)
        lines.append(f"trials without a steady state take longer: at most {most} in total")
    return lines


def _describe_detection(detection: dict[str, Any], blocks: int, basis: str) -> list[str]:
    comparisons, ratio = detection["comparisons"], detection["detectable_ratio"]
    if not comparisons:
        return ["The study compares nothing: each point has only one stack."]
    if blocks < 2:
        return ["One block gives no confidence interval, so weir cannot detect a difference."]
    if ratio is None or ratio > _HUGE:
        difference = f"no difference below a factor of {_HUGE}"
    elif ratio < 2:
        difference = f"a difference in throughput of {(ratio - 1) * 100:.2g} % or more"
    else:
        difference = f"a factor in throughput of {ratio:.2g} or more"
    family = f"{comparisons} comparisons (Holm)" if comparisons > 1 else "1 comparison"
    return [
        f"Detects {difference} with a probability of 80 %: {blocks} blocks, {family};",
        f"  {basis}.",
        f"  A difference of 5 % needs {detection['blocks_for_5_percent']:,} blocks.",
    ]
