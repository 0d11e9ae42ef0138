"""The HTML report: one file, opened offline, the same bytes from the same run file on any machine.

Everything in a run file is hostile input here: names, error texts and the study's own text come from elsewhere. The template escapes
all of it, the data for the charts is JSON in which no tag can start, and the page's policy lets nothing run but our own script.
"""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from weir.bundle import load_bundle, policy_hash
from weir.findings import BY_KEY, GeneratorFindings, RunFindings, StackFindings
from weir.findings.gate import Gate
from weir.findings.metrics import CPU, GENERATOR_CPU, GENERATOR_MEMORY, MEMORY, METRICS, P50, P99, READY, THROUGHPUT
from weir.findings.points import PointNames
from weir.findings.words import significant
from weir.model.errors import WeirError
from weir.model.run import Trial
from weir.report import exports, sentences
from weir.report.ceiling_series import answer_series
from weir.report.curve_series import curve_series
from weir.report.generator_table import GENERATORS_NOTE, generator_cells
from weir.report.numbers import display, found_text, interval_text, size_ratio_text, size_text, value_text
from weir.report.overview import overview_of
from weir.report.planes import planes_of
from weir.report.readings import readings_of
from weir.report.series import point_series
from weir.report.strips import colours_of, measure_strip, ratio_strip, tile_rows, variation_strip
from weir.store import RunReader
from weir.workers import for_each, uncollected

TABLE_METRICS = (THROUGHPUT, P50, P99, CPU, MEMORY, READY)
RESOURCE_METRICS = (CPU, MEMORY, READY)
TILE_METRICS = (THROUGHPUT, P99, CPU, MEMORY)


def write_html(reader: RunReader, findings: RunFindings, path: Path, against: Gate | None = None) -> None:
    """Write the report of a run to `path`, whole or not at all.

    Args:
        reader: the run.
        findings: of it.
        path: where the page goes.
        against: what comparing it with another run came to.

    Raises:
        WeirError: the web bundle is missing, or the file cannot be written.
    """
    write_page(render_html(reader, findings, against), path)


def write_page(page: str, path: Path) -> None:
    """Write a page to `path`, whole or not at all.

    Raises:
        WeirError: the file cannot be written.
    """
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_text(page, encoding="utf-8", errors="replace", newline="\n")
        unfinished.replace(path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise WeirError(
            f"{path}: cannot write the report: {error.strerror}", hint="check the folder's permissions and its space"
        ) from error


@uncollected
def render_html(reader: RunReader, findings: RunFindings, against: Gate | None = None) -> str:
    """The report of a run, as a page.

    Args:
        reader: the run.
        findings: of it.
        against: what comparing it with another run came to.
    """
    trials = reader.trials()
    together = max(1, sum(len(point.stacks) for point in findings.points))
    drawn = for_each(reader, findings.points, lambda own, point: (point_series(own, point, together), answer_series(own, point)))
    series, answers = [one for one, _ in drawn], [counted for _, counted in drawn]
    curves = curve_series(findings, trials)
    point_names = PointNames(reader.cells())
    data = {
        "curves": [plain(curve) for curve in curves],
        "points": [{**plain(one), "answers": plain(counted)} for one, counted in zip(series, answers, strict=True)],
    }
    points = [
        {
            "point": point,
            "series": one,
            "answers": counted,
            "colours": colours_of(point),
            "ratios": ratio_strip([found for found in point.comparisons if found.metric == THROUGHPUT], colours_of(point)),
            "tiles": [(BY_KEY[metric], display(metric), rows) for metric in TILE_METRICS if (rows := tile_rows(point, metric))],
            "throughput": measure_strip(point, THROUGHPUT),
            "published": {(one.stack, one.metric): one.value for one in point.published if one.metric in BY_KEY},
            "resources": [strip for metric in RESOURCE_METRICS if (strip := measure_strip(point, metric))],
        }
        for point, one, counted in zip(findings.points, series, answers, strict=True)
    ]
    return render_page(
        "report.html.j2",
        data,
        info=reader.info,
        findings=findings,
        points=points,
        several=len(points) > 1,
        curves=curves,
        planes=planes_of(findings),
        variation=None if findings.variation is None else variation_strip(findings.variation, findings.identical_copies),
        readings=readings_of(reader, findings, exports.of_run(reader, findings)),
        against=against,
        answer_text=_split_basis(findings.answer.sentence),
        answer_strip=_answer_strip(findings),
        sentences=sentences,
        table_metrics=[(BY_KEY[metric], display(metric)) for metric in TABLE_METRICS],
        metrics={metric.key: metric for metric in METRICS},
        display=display,
        trials=_trial_rows(trials, findings, point_names),
        overview=overview_of(findings),
        generator_cells=generator_cells,
        generators_note=GENERATORS_NOTE,
        generator_intervals=_generator_intervals,
        objectives=findings.objectives(),
        found_text=found_text,
        size_text=size_text,
        size_ratio_text=size_ratio_text,
        significant=significant,
        environment=flat(reader.info.environment),
        settings=_settings(findings),
        placement=_placement(reader),
    )


def render_page(template: str, data: Any, **values: Any) -> str:
    """A template with the script, the stylesheet and the data of the charts in it.

    Raises:
        WeirError: the web bundle is missing.
    """
    bundle = load_bundle()
    # The policy allows these two texts by their hash, so they must stand in the page byte by byte.
    return (
        _environment()
        .get_template(template)
        .render(
            **values,
            script=Markup(bundle.script),
            style=Markup(bundle.style),
            script_hash=policy_hash(bundle.script),
            style_hash=policy_hash(bundle.style),
            data=Markup(island(data)),
        )
    )


@cache
def _environment() -> Environment:
    """With templates that are compiled once: it takes as long as filling them with a thousand trials."""
    environment = Environment(
        loader=_Unindented("weir.report", "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(value=value_text, interval=interval_text, when=_when, heading=_heading)
    return environment


class _Unindented(PackageLoader):
    """Templates without the spaces that lines begin with: they would be a tenth of a page with many points."""

    def get_source(self, environment: Environment, template: str) -> tuple[str, str, Callable[[], bool] | None]:
        source, filename, is_current = super().get_source(environment, template)
        return "\n".join(line.lstrip() for line in source.split("\n")), filename, is_current


def plain(value: Any) -> Any:
    """Dataclasses as mappings, however deep; other than `asdict` it copies no lines of numbers, of which a page has thousands."""
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, list | tuple) and value and is_dataclass(value[0]):
        return [plain(one) for one in value]
    return value


def island(data: Any) -> str:
    """`data` as JSON that may stand inside a script element: nothing in it can end the element or start a comment."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


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


def _heading(title: str) -> str:
    """A metric's title as a heading; 'p99' stays as it is."""
    return title if title[:1] == "p" and title[1:2].isdigit() else title[:1].upper() + title[1:]


def _trial_rows(trials: Sequence[Trial], findings: RunFindings, labels: PointNames) -> list[dict[str, Any]]:
    names = {stack.cell: stack.name for point in findings.points for stack in point.stacks}
    rows = []
    for trial in trials:
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


def _when(unix_ns: int) -> str:
    return datetime.fromtimestamp(unix_ns / 1e9, UTC).strftime("%Y-%m-%d %H:%M UTC")


def flat(values: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """A nested mapping as (dotted name, text) rows."""
    rows: list[tuple[str, str]] = []
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            rows += flat(value, f"{name}.")
        elif isinstance(value, list | tuple):
            rows.append((name, ", ".join(str(item) for item in value) or "–"))
        else:
            rows.append(
                (name, "–" if value is None else f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value))
            )
    return rows


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
    if placement.services_on is not None:
        rows.append(("services on", placement.services_on))
    rows += [(f"limits of {tier}", limits.words) for tier, limits in placement.limits.items()]
    return rows if placement.network is None else [*rows, ("network", placement.network.words)]
