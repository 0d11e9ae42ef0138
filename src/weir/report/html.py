"""The HTML report: one file, opened offline, the same bytes from the same run file on any machine."""

from pathlib import Path
from typing import Any

from markupsafe import Markup

from weir.findings import BY_KEY, GeneratorFindings, RunFindings, StackFindings
from weir.findings.gate import Gate
from weir.findings.metrics import GENERATOR_CPU, GENERATOR_MEMORY, THROUGHPUT
from weir.findings.points import PointNames
from weir.findings.words import significant
from weir.model.run import Trial
from weir.report import exports, sentences
from weir.report.charts import Charts, begin_charts
from weir.report.curve_series import curve_series
from weir.report.generator_table import GENERATORS_NOTE, generator_cells
from weir.report.numbers import display, found_text, interval_text, size_ratio_text, size_text
from weir.report.overview import overview_of
from weir.report.page import flat, island, plain, render_page, template_of, write_page
from weir.report.planes import planes_of
from weir.report.point import TABLE_METRICS, TEMPLATE, point_part
from weir.report.readings import readings_of
from weir.report.strips import colours_of, ratio_strip, variation_strip
from weir.store import RunReader
from weir.workers import for_each, uncollected


def write_html(reader: RunReader, findings: RunFindings, path: Path, against: Gate | None = None, *, charts: Charts | None = None) -> None:
    """Write the report of a run to `path`, whole or not at all.

    Args:
        reader: the run.
        findings: of it.
        path: where the page goes.
        against: what comparing it with another run came to.
        charts: of the run, where they were begun before its findings.

    Raises:
        WeirError: the web bundle is missing, or the file cannot be written.
    """
    write_page(render_html(reader, findings, against, charts=charts), path)


@uncollected
def render_html(reader: RunReader, findings: RunFindings, against: Gate | None = None, *, charts: Charts | None = None) -> str:
    """The report of a run, as a page.

    Args:
        reader: the run.
        findings: of it.
        against: what comparing it with another run came to.
        charts: of the run, where they were begun before its findings.
    """
    begun = charts or begin_charts(reader)
    # Compiled here, and not by each worker.
    template_of(TEMPLATE)
    curves = curve_series(findings, reader.trials())
    values: dict[str, Any] = {
        "info": reader.info,
        "findings": findings,
        "several": len(findings.points) > 1,
        "curves": curves,
        "planes": planes_of(findings),
        "variation": None if findings.variation is None else variation_strip(findings.variation, findings.identical_copies),
        "readings": readings_of(reader, findings, exports.of_run(reader, findings)),
        "against": against,
        "answer_text": _split_basis(findings.answer.sentence),
        "answer_strip": _answer_strip(findings),
        "sentences": sentences,
        "table_metrics": [(BY_KEY[metric], display(metric)) for metric in TABLE_METRICS],
        "display": display,
        "trials": _trial_rows(reader, findings),
        "overview": overview_of(findings),
        "generator_cells": generator_cells,
        "generators_note": GENERATORS_NOTE,
        "generator_intervals": _generator_intervals,
        "objectives": findings.objectives(),
        "found_text": found_text,
        "size_text": size_text,
        "size_ratio_text": size_ratio_text,
        "significant": significant,
        "environment": flat(reader.info.environment),
        "settings": _settings(findings),
        "placement": _placement(reader),
    }
    of_points = begun()
    done = for_each(reader, range(len(findings.points)), lambda _, number: point_part(findings, of_points[number], number))()
    data = f'{{"curves":{island([plain(curve) for curve in curves])},"points":[{",".join(part.data for part in done)}]}}'
    return render_page("report.html.j2", data, parts=[Markup(part.markup) for part in done], **values)


def _generator_intervals(one: GeneratorFindings) -> dict[int, str]:
    """Small figures below those of `generator_cells`, by column."""
    columns = {"p50": 3, "p99": 6}
    ratios = {columns[found.quantile]: (found.low, found.high) for found in one.against_kernel}
    return {
        0: interval_text(one.measure(THROUGHPUT)),
        7: interval_text(one.measure(GENERATOR_CPU)),
        8: interval_text(one.measure(GENERATOR_MEMORY)),
        **{column: f"{significant(low, 2)}–{significant(high, 2)}" for column, (low, high) in ratios.items() if low and high},
    }


def _answer_strip(findings: RunFindings) -> Any:
    """The ratios that the answer's sentence says, drawn."""
    colours = {label: colour for point in findings.points for label, colour in colours_of(point).items()}
    return ratio_strip(findings.answer.comparisons, colours)


def _split_basis(sentence: str) -> tuple[str, str]:
    """The sentence, and from its last '(95 %' on what it rests on: printed smaller, because it is long."""
    head, mark, tail = sentence.rpartition("(95 % interval")
    return (head.rstrip(), mark + tail) if mark else (sentence, "")


def _trial_rows(reader: RunReader, findings: RunFindings) -> list[dict[str, Any]]:
    labels = PointNames(reader.cells())
    names = {stack.cell: stack.name for point in findings.points for stack in point.stacks}
    rows = []
    for trial in reader.trials():
        summary = trial.result.summary
        values = [(metric, BY_KEY[metric].of(trial)) for metric in TABLE_METRICS]
        rows.append(
            {
                "id": trial.id,
                "block": trial.block,
                "position": trial.position + 1,
                "attempt": trial.attempt,
                "name": names[trial.cell.id],
                "point": labels.of_cell(trial.cell),
                "validity": trial.result.verdict.validity,
                "reasons": [*_window_text(trial), *trial.result.verdict.texts],
                "values": ["–" if value is None else display(metric).text(value) for metric, value in values],
                "failed": summary.requests.failed if summary else None,
                "logs": sorted(trial.result.logs.values()),
            }
        )
    return rows


def _window_text(trial: Trial) -> list[str]:
    window = trial.result.window
    if window is None or window.is_whole:
        return []
    extended = ", extended" if window.extended else ""
    return [f"steady from {window.start_s:.1f} s of {window.end_s:.1f} s{extended}; what came before is warm-up"]


def _settings(findings: RunFindings) -> list[tuple[str, str, str, str]]:
    """(name, title, how it serves, settings) of each stack, once; a setting that the study varies with all its values."""
    stacks: dict[str, StackFindings] = {}
    values: dict[str, dict[str, dict[str, None]]] = {}
    for point in findings.points:
        for stack in point.stacks:
            if stack.arm == "main":
                stacks.setdefault(stack.label, stack)
                for key, value in stack.settings.items():
                    values.setdefault(stack.label, {}).setdefault(key, {})[value] = None
    return [
        (
            label,
            stack.title,
            stack.model,
            ", ".join(f"{key} = {' or '.join(found)}" for key, found in values.get(label, {}).items()) or "defaults",
        )
        for label, stack in stacks.items()
    ]


def _placement(reader: RunReader) -> list[tuple[str, str]]:
    placement = reader.info.placement
    roles = {"load": placement.load, "stack": placement.stack, "services": placement.services, "control": placement.control}
    rows = [(role, ", ".join(map(str, cpus)) or "none") for role, cpus in roles.items()]
    if placement.agent_threads:
        rows.append(("load threads of each agent", ", ".join(map(str, placement.agent_threads))))
    if placement.services_on is not None:
        rows.append(("services on", placement.services_on))
    rows += [(f"limits of {tier}", limits.words) for tier, limits in placement.limits.items()]
    return rows if placement.network is None else [*rows, ("network", placement.network.words)]
