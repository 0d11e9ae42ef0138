"""Renders a run's findings for a terminal with 80 columns: the answer, the tables, cautions and omitted trials. Without
colours, the text has the same meaning. `rich` prints no colours outside a terminal, or with NO_COLOR."""

from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Column, Table
from rich.text import Text

from weir.findings import RunFindings
from weir.findings.formatting import counted
from weir.findings.metrics import BY_KEY, CPU, GENERATOR_CPU, THROUGHPUT
from weir.findings.point_types import Point
from weir.findings.trial_phases import PHASES, StackTimes
from weir.findings.types import Caution
from weir.model.sanitize import sanitize
from weir.report import number_format
from weir.report.number_format import GENERATOR_METRICS, TABLE_METRICS, display, interval_text, value_text
from weir.report.overview import Overview, build_overview
from weir.report.sentences import GENERATORS_NOTE

MOST_LEFT_OUT = 12
"""Maximum number of omitted trials that the terminal lists; the HTML report lists all omitted trials."""
_NAME_WIDTH = 23
"""Maximum length of a stack's name on one line. A longer name wraps, so that the table has 80 columns."""
_VALIDITY_STYLE = {"valid": "green", "suspect": "yellow", "invalid": "red"}


def render_answer(run: RunFindings) -> RenderableType:
    """Returns the interim result of `weir run`: the answer, and the tables of the metrics."""
    findings: RunFindings = sanitize(run)
    return Group(Text(""), *_answer(findings), *_tables(findings))


def render_terminal(run: RunFindings) -> RenderableType:
    """Returns the text that `weir run` and `weir report` print about a run."""
    findings: RunFindings = sanitize(run)
    parts = [*_answer(findings), *_generators(findings), *_tables(findings)]
    for point in findings.points:
        # In a run with several points, only the HTML report has the tables of each point.
        if len(findings.points) == 1:
            parts += [*_work(point), *_published(point)]
        if point.upper_bounds:
            parts += [Text(point.where + point.upper_bounds, style="dim"), Text("")]
    what_ran = _what_ran(findings) if len(findings.points) == 1 else []
    parts += [*_curves(findings), *what_ran, *_objectives(findings), _evidence(findings), Text("")]
    parts += _list("To keep in mind", [_caution(caution) for caution in findings.cautions])
    parts += _list("Left out", _left_out(findings))
    return Group(*parts[:-1])


def render_times(found: Sequence[StackTimes]) -> RenderableType:
    """Returns a table of the trials' time outside their loads, with a row for each phase."""
    if not found:
        return Text("No trial ran a load.")
    table = _table(None, "median seconds", *(Column(Text(sanitize(one.label)), justify="right") for one in found))
    rows = {phase: [one.phases_s[phase] for one in found] for phase in PHASES} | {
        "between trials": [one.between_s for one in found],
        "outside the load": [one.beyond_load_s for one in found],
        "minus warm-up and pause": [one.beyond_asked_s for one in found],
    }
    for phase, times_s in rows.items():
        table.add_row(phase, *("–" if time_s is None else f"{time_s:.3f}" for time_s in times_s))
    table.add_row("trials", *(str(one.trials) for one in found))
    return table


def _table(title: str | None, *columns: Column | str, title_style: str | None = "bold") -> Table:
    layout: dict[str, Any] = {"title_justify": "left", "box": None, "pad_edge": False, "padding": (0, 2, 0, 0)}
    return Table(*columns, title=title, title_style=title_style, **layout)


def _names(heading: str = "stack", width: int = _NAME_WIDTH) -> Column:
    return Column(heading, overflow="fold", max_width=width)


def _numbers(*headings: str) -> list[Column]:
    return [Column(heading, justify="right", no_wrap=True) for heading in headings]


def _list(title: str, lines: Sequence[Text]) -> list[RenderableType]:
    """Returns a title, and the lines as list items with a hanging indent. Returns nothing without lines."""
    if not lines:
        return []
    grid = Table.grid(Column(no_wrap=True), Column(overflow="fold"), padding=(0, 1, 0, 0))
    for line in lines:
        grid.add_row("-", line)
    return [*([Text(title, style="bold")] if title else []), grid, Text("")]


def _dim(*cells: str) -> list[Text]:
    return [Text(cell, style="dim") for cell in cells]


def _answer(findings: RunFindings) -> list[RenderableType]:
    answer = findings.answer
    verdict = answer.validity + (", indicative" if answer.indicative else "")
    question = (findings.question or findings.title, "italic")
    heading = Text.assemble(question, "  [", (verdict, _VALIDITY_STYLE[answer.validity]), "]")
    return [heading, Text(""), Text(answer.sentence, style="bold"), Text("")]


def _tables(findings: RunFindings) -> list[RenderableType]:
    """Returns the table of all points, or the table of the stacks for a run with a single point."""
    overview = build_overview(findings)
    return _stacks(findings.points[0]) if overview is None and findings.points else _overview(overview)


def _stacks(point: Point) -> list[RenderableType]:
    columns = _names(), *_numbers("req/s", "p50 ms", "p99 ms", "CPU µs/req", "MB", "start s")
    table = _table(None, *columns)
    for stack in point.stacks:
        name = _name(stack.name)
        if stack.baseline:
            name.append(" (baseline)", style="dim")
        table.add_row(name, *(value_text(stack.measure(metric)) for metric in TABLE_METRICS))
        if stack.failed_share:
            table.add_row(Text(f"  {stack.failed_share:.1%} failed"))
        rate, cpu = (interval_text(stack.measure(metric)) for metric in (THROUGHPUT, CPU))
        if rate:
            table.add_row(*_dim("  95 % interval", rate), "", "", *_dim(cpu))
    return [table, Text("")]


def _generators(findings: RunFindings) -> list[RenderableType]:
    parts: list[RenderableType] = []
    meanings: dict[str, Text] = {}
    for same in findings.generators:
        columns = _numbers("req/s", "p50 ms", "kernel", "p99 ms", "kernel", "CPU µs/req", "MB")
        table = _table(same.where, Column("generator", no_wrap=True), *columns)
        for one in same.generators:
            table.add_row(Text(one.generator), *(value_text(one.measure(metric)) for metric in GENERATOR_METRICS))
            rate, cpu = (interval_text(one.measure(metric)) for metric in (THROUGHPUT, GENERATOR_CPU))
            if rate:
                table.add_row(*_dim("  95 %", rate, "", "", "", "", cpu, ""))
            if one.figures:
                meanings[one.generator] = Text(f"{one.version}: {one.figures}")
        notes = [Text(f"{one.generator}: {note}") for one in same.generators for note in one.notes]
        parts += [table, Text(same.sentence), *(_list("", notes) or [Text("")])]
    if parts:
        parts[-1:] = [Text(GENERATORS_NOTE, style="dim"), Text("")]
    return parts + _list("Meaning of the reported response times", list(meanings.values()))


def _overview(overview: Overview | None) -> list[RenderableType]:
    if overview is None:
        return []
    columns = (Column(heading, justify="right", overflow="fold") for heading in overview.headings)
    table = _table("All points", _names("", 30), *columns)
    for label, cells in overview.rows:
        table.add_row(Text(label), *map(Text, cells))
    return [table, Text("")]


def _objectives(findings: RunFindings) -> list[RenderableType]:
    """Returns a table of every objective at every point, with the measured value."""
    rows = findings.objectives()
    if not rows:
        return []
    missed = sum(not held.met for _, _, held in rows)
    title = f"Objectives: {missed} of {len(rows)} missed" if missed else f"Objectives: all {len(rows)} met"
    several = len(findings.points) > 1
    table = _table(title)
    for heading in ("", "objective", *(["point"] if several else []), "stack", "found", "trials"):
        table.add_column(heading, overflow="fold", justify="right" if heading in ("found", "trials") else "left")
    for point, stack, held in rows:
        place = [Text(point.label)] if several else []
        verdict = Text("met", style="green") if held.met else Text("MISSED", style="red")
        met = f"{held.trials_met} of {held.trials}"
        table.add_row(verdict, Text(held.objective), *place, Text(stack.name), number_format.found_text(held), met)
    return [table, Text("")]


def _name(name: str) -> Text:
    """Returns a stack's name. A long name has its variant on a second line."""
    return Text(name.replace("[", "\n[", 1) if len(name) > _NAME_WIDTH else name)


def _work(point: Point) -> list[RenderableType]:
    if point.work is None:
        return []
    numbers = _numbers("statements", "begin, set …", "rows")
    table = _table(
        "Work per request", _names(), Column("service", no_wrap=True), *numbers, Column("bytes", overflow="fold")
    )
    for stack in point.stacks:
        for work in stack.work:
            rows = "–" if work.rows is None else f"{work.rows:,.2f}"
            moved = ", ".join(f"{name} {value:,.0f}" for name, value in work.bytes.items())
            counts = f"{work.statements:,.2f}", f"{work.control_statements:,.2f}", rows
            table.add_row(_name(stack.name), Text(work.service), *counts, Text(moved))
    return [table, Text(point.work.sentence, style="dim"), Text("")]


def _curves(findings: RunFindings) -> list[RenderableType]:
    """Returns lists of sentences: break-evens, scalability, bottlenecks, and experiments on the bottlenecks."""
    changes = [one for one in findings.break_evens if one.metric == THROUGHPUT or one.crossings]
    sections = {
        "Break-even": [(one.sentence, one.would_change) for one in changes],
        "Scalability": [(one.sentence, one.would_change) for one in findings.scalings],
        "Bottlenecks": [(one.sentence, one.would_prove) for one in findings.bottlenecks],
        "Experiments on the bottlenecks": [(one.sentence, "") for one in findings.proofs],
    }
    parts: list[RenderableType] = []
    for title, found in sections.items():
        parts += _list(title, [Text(sentence).append(f" {rest}", style="dim") for sentence, rest in found])
    return parts


def _what_ran(findings: RunFindings) -> list[RenderableType]:
    if not any(stack.runtimes or stack.artifact_bytes for stack in findings.what_ran):
        return []
    table = _table("What ran", _names(), *_numbers("built MB", "÷ baseline"), Column("runs on", overflow="fold"))
    for stack in findings.what_ran:
        sizes = number_format.size_text(stack.artifact_bytes), number_format.size_ratio_text(stack.size_ratio)
        table.add_row(_name(stack.name), *sizes, Text(", ".join(stack.runtimes) or "–"))
    return [table, Text("")]


def _published(point: Point) -> list[RenderableType]:
    if not point.published:
        return []
    table = _table("As published", _names(), Column("", no_wrap=True), *_numbers("published", "here"))
    last = ""
    for figure in point.published:
        title, published, ours = figure.metric, f"{figure.value:g}", "–"
        if figure.metric in BY_KEY:
            title, shown = BY_KEY[figure.metric].title, display(figure.metric)
            published = f"{shown.text(figure.value)} {shown.unit}"
            ours = "–" if figure.ours is None else f"{shown.text(figure.ours)} {shown.unit}"
        table.add_row(_name("" if figure.name == last else figure.name), Text(title), published, ours)
        last = figure.name
    return [table, Text("The machines and loads differ: compare the ratios, not the figures.", style="dim"), Text("")]


def _evidence(findings: RunFindings) -> Text:
    trials = findings.trials
    planned = f" ({trials.planned} planned)" if trials.tried < trials.planned else ""
    retried = f", repeats included: {trials.retried}" if trials.retried else ""
    sentences = [
        f"{trials.used} of {counted(trials.finished, 'trial')} used{planned}{retried}.",
        findings.audit.sentence,
        f"The run ended: {findings.stopped.text}." if findings.stopped else "",
        *(found.sentence for found in (findings.identical_copies, findings.variation) if found),
        f"What would change the answer: {findings.answer.would_change}",
    ]
    return Text(" ".join(filter(None, sentences)))


def _caution(caution: Caution) -> Text:
    text = Text(caution.fact)
    if caution.threshold:
        text.append(f" {caution.threshold}")
    if caution.cause:
        text.append(f" Probably: {caution.cause[0].lower()}{caution.cause[1:]}")
    if caution.next_step:
        text.append(f" Next: {caution.next_step}")
    return text


def _left_out(findings: RunFindings) -> list[Text]:
    shown = [
        Text(f"trial {trial.trial}, {trial.name}, block {trial.block}: {'; '.join(trial.reasons)}")
        for trial in findings.left_out[:MOST_LEFT_OUT]
    ]
    if len(findings.left_out) > MOST_LEFT_OUT:
        shown.append(Text(f"and {len(findings.left_out) - MOST_LEFT_OUT} more, all in the HTML report"))
    return shown
