"""`weir study`: what a study would do, before it does it."""

import math
import re
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from weir.cli.completion import studies
from weir.cli.output import print_json, stdout
from weir.generators.tools import tool
from weir.lab.blocks import time_shortages
from weir.lab.placement import placement_lines
from weir.lab.run import placement_of
from weir.model.errors import UsageError
from weir.model.run import WEIR
from weir.store import RunReader, find_run
from weir.study.forecast import Forecast, Overhead, forecast, plan_lines, span_text
from weir.study.needs import generator_shortages, machine, shortages
from weir.study.schema import json_schema
from weir.study.study import PlannedCell, Study, read_study, study_files

app = typer.Typer(help="Check and list studies, and print the schema of their files.", no_args_is_help=True)
_JSON = typer.Option("--json", help="Print JSON.")
_ASSUMED_CV = 0.05
_AIM = 1.05
"""The difference whose blocks are told beside the smallest one that can be found."""
_HUGE = 100
"""Differences above that factor need no study."""
_MOST_CELLS = 60
_MOST_BLOCKS = 10


@app.command(name="list")
def list_(json_: Annotated[bool, _JSON] = False) -> None:
    """List the studies that travel with weir."""
    known = [read_study(name) for name in study_files()]
    if json_:
        print_json([{"name": study.name, "question": study.file.question, "path": str(study.path)} for study in known])
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("study", "question"):
        table.add_column(column)
    for study in known:
        table.add_row(study.name, study.file.question)
    stdout.print(table)


@app.command()
def schema() -> None:
    """Print the JSON Schema of study files, for editors.

    Example: weir study schema > study.schema.json

    Then begin the study's file with the line #:schema ./study.schema.json
    """
    print_json(json_schema())


@app.command()
def check(
    study: Annotated[str, typer.Argument(metavar="STUDY", help="A study's name, or a file NAME.toml.", autocompletion=studies)],
    scale: Annotated[str | None, typer.Option("--scale", help="quick, evidence, article or whatever the study names.")] = None,
    assume_cv: Annotated[
        str | None, typer.Option("--assume-cv", metavar="PERCENT", help="How far trials of one cell differ (standard deviation), as 5%.")
    ] = None,
    pilot: Annotated[
        Path | None, typer.Option("--pilot", metavar="RUN", help="An earlier run that says how far trials differ and what they cost.")
    ] = None,
    json_: Annotated[bool, _JSON] = False,
) -> None:
    """Say what a study will run, in which order and for how long, and the smallest difference that it can detect. Starts nothing.

    Exits with 2 when the machine does not suffice.

    Example: weir study check sync-vs-async --scale quick --assume-cv 5%
    """
    if pilot is not None and assume_cv is not None:
        raise UsageError("--assume-cv: found beside --pilot, expected one of them")
    chosen = read_study(study, scale=scale)
    placement = placement_of(chosen)
    cells = chosen.cells(len(placement.stack))
    overhead, memory, spread, basis = _basis(assume_cv, pilot)
    coming = forecast(chosen, cells, overhead)
    detection = _detection(chosen, cells, spread)
    lacking = [*generator_shortages(chosen), *shortages(cells, machine(), placement, memory_bytes=memory), *time_shortages(chosen, cells)]
    if json_:
        print_json(
            {
                "schema": 1,
                "study": chosen.name,
                "scale": chosen.scale,
                "blocks": chosen.file.method.blocks,
                "indicative": chosen.indicative,
                "cells": [_as_json(one) for one in cells],
                "placement": asdict(placement),
                "forecast": {**asdict(coming), "total_s": coming.total_s},
                "detection": {**detection, "basis": basis},
                "lacking": lacking,
            }
        )
    else:
        _print(chosen, cells, coming, detection, basis, measured=pilot is not None)
        stdout.print()
        for line in placement_lines(placement):
            stdout.print(line, markup=False)
    if lacking:
        raise UsageError("\n".join(lacking))


def _basis(assume_cv: str | None, pilot: Path | None) -> tuple[Overhead, dict[str, int], float, str]:
    """Overheads, memory, the spread of log ratios, and where that comes from."""
    if pilot is None:
        cv = _ASSUMED_CV if assume_cv is None else _percent(assume_cv)
        # Two trials of a block vary independently: the variances of their logarithms add up.
        return (
            Overhead(),
            {},
            cv * math.sqrt(2),
            f"assuming that trials of one cell differ by {cv * 100:.3g} % of their mean (--assume-cv says otherwise, --pilot measures it)",
        )
    # Here and not above: findings take as long to import as all else.
    from weir.findings.pilot import pilot_of

    with RunReader(find_run(pilot)) as reader:
        if reader.info.is_load:
            raise UsageError(f"--pilot: {reader.path}: found a single load, expected a run of a study", hint="weir run STUDY makes one")
        found = pilot_of(reader)
    basis = f"from {reader.path}: two trials of a block differ by {found.spread * 100:.3g} % ({found.pairs} degrees of freedom)"
    mean_s = sum(found.overhead_s.values()) / len(found.overhead_s) if found.overhead_s else Overhead().otherwise_s
    return Overhead(found.overhead_s, mean_s), found.memory_bytes, found.spread, basis


def _percent(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", text.strip())
    if match is None or not 0 < float(match.group(1)) <= 100:
        raise UsageError(f"--assume-cv: found {text!r}, expected a percentage such as 5%")
    return float(match.group(1)) / 100


def _detection(study: Study, cells: list[PlannedCell], spread: float) -> dict[str, Any]:
    from weir.findings.generators import planned_generator_comparisons
    from weir.findings.points import planned_comparisons
    from weir.stats import blocks_to_detect, detectable_ratio

    planned = [one.cell for one in cells]
    comparisons = planned_generator_comparisons(planned) or planned_comparisons(planned, study.file.method.baseline)
    ratio = detectable_ratio(spread, study.file.method.blocks, comparisons) if comparisons else None
    return {
        "comparisons": comparisons,
        "power": 0.8,
        "spread": spread,
        "detectable_ratio": ratio if ratio is None or math.isfinite(ratio) else None,
        "blocks_for_5_percent": blocks_to_detect(_AIM, spread, comparisons) if comparisons else None,
    }


def _as_json(planned: PlannedCell) -> dict[str, Any]:
    cell = planned.cell
    return {
        **asdict(cell),
        "load": cell.load.to_plan(),
        "label": cell.stack_label,
        "point": cell.point_label,
        "duration_s": planned.load.duration_s,
        "prime_s": planned.method.prime_s,
        "pause_s": planned.method.pause_s,
    }


def _print(study: Study, cells: list[PlannedCell], coming: Forecast, detection: dict[str, Any], basis: str, *, measured: bool) -> None:
    method = study.file.method
    stdout.print(study.file.question, style="italic", markup=False)
    stdout.print(f"{study.path}, scale {study.scale}", markup=False)
    stdout.print()
    table = Table(box=None, pad_edge=False, header_style="bold")
    from weir.findings.points import PointNames

    names = PointNames([one.cell for one in cells])
    for heading in ("cell", "stack", "point", "settings", "prime s", "load s"):
        table.add_column(heading, justify="right" if heading in ("cell", "prime s", "load s") else "left", overflow="fold")
    for planned in cells[:_MOST_CELLS]:
        cell = planned.cell
        settings = ", ".join(f"{name} {value}" for name, value in cell.settings.items() if name not in cell.coordinates)
        times = (f"{planned.method.prime_s:g}", f"{planned.load.duration_s:g}")
        table.add_row(str(cell.id), Text(cell.stack_label), Text(names.of_cell(cell)), Text(settings or "–"), *times)
    stdout.print(table)
    if len(cells) > _MOST_CELLS:
        stdout.print(f"and {len(cells) - _MOST_CELLS} more: --json has them all")
    stdout.print()
    _print_generators(study)
    stdout.print("order", style="bold")
    for number, block in enumerate(coming.order[:_MOST_BLOCKS], start=1):
        stdout.print(f"  block {number}: {' '.join(map(str, block))}", markup=False)
    if len(coming.order) > _MOST_BLOCKS:
        stdout.print(f"  and {len(coming.order) - _MOST_BLOCKS} more blocks: --json has them all")
    stdout.print()
    headline, *more = plan_lines(study, coming, len(cells))
    stdout.print(headline, style="bold", markup=False)
    for line in more:
        stdout.print(f"  {line}", markup=False)
    how = "as in the pilot" if measured else "assumed, --pilot RUN knows"
    parts = f"load {span_text(coming.load_s)}, priming {span_text(coming.priming_s)}, pauses {span_text(coming.pauses_s)}"
    stdout.print(f"  {parts}, starts and stops {span_text(coming.starts_and_stops_s)} ({how})", markup=False)
    stdout.print(f"  before it: checks and ceilings {span_text(coming.checks_s)}; builds and repeated trials come on top", markup=False)
    if coming.extensions_s:
        stdout.print(f"  trials without a steady state go on for longer: at most {span_text(coming.extensions_s)} altogether", markup=False)
    stdout.print()
    for line in _detection_lines(detection, method.blocks, basis):
        stdout.print(line, markup=False)


def _print_generators(study: Study) -> None:
    """What else than weir's own engine makes the load, and where it is."""
    others = [name for name in study.file.matrix.generators if name != WEIR]
    missing = study.missing_generators()
    for name in others:
        stdout.print(f"generator {missing.get(name) or f'{name}: {tool(name).where()}'}", markup=False)
    if others:
        stdout.print()


def _detection_lines(detection: dict[str, Any], blocks: int, basis: str) -> list[str]:
    comparisons, ratio = detection["comparisons"], detection["detectable_ratio"]
    if not comparisons:
        return ["There is nothing to compare: one stack at every point."]
    family = f"{comparisons} comparison{'s' if comparisons > 1 else ''}{' (Holm)' if comparisons > 1 else ''}"
    if blocks < 2:
        return ["One block gives no interval: no difference can be detected."]
    return [
        f"Detects {_difference(ratio)} with a probability of 80 %: {blocks} blocks, {family};",
        f"  {basis}.",
        f"  A difference of 5 % needs {detection['blocks_for_5_percent']:,} blocks.",
    ]


def _difference(ratio: float | None) -> str:
    """The smallest difference that is found, as people say it."""
    if ratio is None or ratio > _HUGE:
        return f"no difference below a factor of {_HUGE}"
    return (
        f"a difference in throughput of {(ratio - 1) * 100:.2g} % or more"
        if ratio < 2
        else f"a factor in throughput of {ratio:.2g} or more"
    )
