"""Renders a run or a load as one offline HTML file. The same run file gives the same bytes on every machine."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from markupsafe import Markup

from weir.findings import LoadFindings, RunFindings
from weir.findings.formatting import significant
from weir.findings.metrics import BY_KEY, GENERATOR_CPU, GENERATOR_MEMORY, THROUGHPUT
from weir.findings.point_types import StackFindings
from weir.findings.points import PointNames
from weir.findings.regression import Gate
from weir.findings.types import GeneratorFindings
from weir.model.run_types import Trial
from weir.parallel import start_parallel, without_gc
from weir.report import exports
from weir.report.charts import Charts, begin_charts
from weir.report.curve_series import build_curves
from weir.report.interval_plot import assign_colours, ratio_strip, variation_strip
from weir.report.number_format import GENERATOR_METRICS, TABLE_METRICS, display, interval_text, value_text
from weir.report.overview import build_overview
from weir.report.page import embed_json, get_template, render_page, write_page
from weir.report.point import RUN_TEMPLATES, TEMPLATE, render_point
from weir.report.process_series import cpus_by_role
from weir.report.scatter import build_planes
from weir.report.tool_summaries import build_summaries
from weir.store import RunReader

_TRIALS = "trials.html.j2"


def write_html(
    reader: RunReader, findings: RunFindings, path: Path, against: Gate | None = None, *, charts: Charts | None = None
) -> None:
    """Writes the report to `path`, completely or not at all. Raises WeirError if the file cannot be written."""
    write_page(render_html(reader, findings, against, charts=charts), path)


@without_gc
def render_html(
    reader: RunReader, findings: RunFindings, against: Gate | None = None, *, charts: Charts | None = None
) -> str:
    """Returns the HTML report of a run or a load. `against`: the comparison with another run. `charts`: the result of
    `begin_charts`; None: this function starts the charts."""
    begun = charts or begin_charts(reader)
    load = findings if isinstance(findings, LoadFindings) else None
    # Compiles the templates before the workers start. Otherwise each worker would compile them.
    for name in (TEMPLATE,) if load else (TEMPLATE, *RUN_TEMPLATES, _TRIALS):
        get_template(name)
    curves = build_curves(findings, reader.trials())
    values: dict[str, Any] = {
        "info": reader.info,
        "findings": findings,
        "curves": curves,
        "planes": build_planes(findings),
        "variation": findings.variation and variation_strip(findings.variation, findings.identical_copies),
        "summaries": build_summaries(reader, findings, exports.collect_samples(reader, findings)),
        "against": against,
        "load": load is not None,
        "answer_text": (load.answer.sentence, load.basis) if load else _split_basis(findings.answer.sentence),
        "answer_strip": ratio_strip(findings.answer.comparisons, assign_colours(*findings.points)),
        "trials": list(_trial_rows(reader, findings)),
        "overview": build_overview(findings),
        "generator_cells": _generator_cells,
        "generator_intervals": _generator_intervals,
        "settings": _settings(findings),
        "placement": _placement(reader),
    }
    of_points = begun()

    def render_part(_: RunReader, number: int | None) -> tuple[str, str]:
        if number is None:
            return get_template(_TRIALS).render(**values), ""
        return render_point(findings, of_points[number], number)

    # The tables of trials are the largest part of the page. The page of a single load has no such tables.
    numbers = [*([] if load else [None]), *range(len(findings.points))]
    done = start_parallel(reader, numbers, render_part)()
    trial_tables = "" if load else done.pop(0)[0]
    points = ",".join(part for _, part in done)
    data = f'{{"curves":{embed_json(curves)},"points":[{points}]}}'
    values["trial_tables"] = Markup(trial_tables)
    return render_page("report.html.j2", data, parts=[Markup(markup) for markup, _ in done], **values)


def _generator_cells(one: GeneratorFindings) -> list[str]:
    """Returns a generator's cells: throughput, p50 and p99 (reported, kernel, ratio), CPU time and memory."""
    ratios = {found.quantile: significant(found.ratio, 2) for found in one.against_kernel if found.ratio is not None}
    values = [value_text(one.measure(metric)) for metric in GENERATOR_METRICS]
    return [*values[:3], ratios.get("p50", "–"), *values[3:5], ratios.get("p99", "–"), *values[5:]]


def _generator_intervals(one: GeneratorFindings) -> dict[int, str]:
    """Returns the interval as text for each column of `_generator_cells` with an interval."""
    intervals = {
        {"p50": 3, "p99": 6}[found.quantile]: f"{significant(found.low, 2)}–{significant(found.high, 2)}"
        for found in one.against_kernel
        if found.low and found.high
    }
    measured = ((0, THROUGHPUT), (7, GENERATOR_CPU), (8, GENERATOR_MEMORY))
    return intervals | {column: interval_text(one.measure(metric)) for column, metric in measured}


def _split_basis(sentence: str) -> tuple[str, str]:
    """Splits an answer at the last '(95 % interval'. The page prints the second part in smaller type."""
    head, mark, tail = sentence.rpartition("(95 % interval")
    return (head.rstrip(), mark + tail) if mark else (sentence, "")


def _trial_rows(reader: RunReader, findings: RunFindings) -> Iterator[tuple[Trial, str, str, list[str], list[str]]]:
    """Yields (trial, name of the stack, name of the point, metrics, reasons of the verdict) for each trial."""
    labels = PointNames(reader.cells())
    names = {stack.cell: stack.name for point in findings.points for stack in point.stacks}
    for trial in reader.trials():
        known = [(metric, BY_KEY[metric].of(trial)) for metric in TABLE_METRICS]
        figures = ["–" if value is None else display(metric).text(value) for metric, value in known]
        reasons = [*_window_text(trial), *trial.result.verdict.texts]
        yield trial, names[trial.cell.id], labels.of(trial.cell), figures, reasons


def _window_text(trial: Trial) -> list[str]:
    window = trial.result.window
    if window is None or window.is_whole:
        return []
    extended = " (extended load)" if window.extended else ""
    return [f"steady from {window.start_s:.1f} s to {window.end_s:.1f} s{extended}; the time before is warm-up"]


def _settings(findings: RunFindings) -> list[tuple[str, str, str, str]]:
    """Returns (label, title, model, settings) of each stack. The text of a setting lists all its values in the run."""
    found: dict[str, list[StackFindings]] = {}
    for point in findings.points:
        for stack in point.stacks:
            if stack.arm == "main":
                found.setdefault(stack.label, []).append(stack)
    rows = []
    for label, same in found.items():
        values = dict.fromkeys(item for stack in same for item in stack.settings.items())
        keys = dict.fromkeys(key for key, _ in values)
        settings = [f"{key} = {' or '.join(value for name, value in values if name == key)}" for key in keys]
        rows.append((label, same[0].title, same[0].model, ", ".join(settings) or "defaults"))
    return rows


def _placement(reader: RunReader) -> list[tuple[str, str]]:
    placement = reader.info.placement
    rows = [(role, ", ".join(map(str, cpus)) or "none") for role, cpus in cpus_by_role(placement).items()]
    if placement.agent_threads:
        rows.append(("load threads of each agent", ", ".join(map(str, placement.agent_threads))))
    if placement.services_on is not None:
        rows.append(("services on", placement.services_on))
    rows += [(f"limits of {tier}", limits.words) for tier, limits in placement.limits.items()]
    return rows if placement.network is None else [*rows, ("network", placement.network.words)]
