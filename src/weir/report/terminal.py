"""The findings of a run on a terminal: the answer first, then the table, then what weakens it and what was left out.

Fits 80 columns; colour only repeats what the words say, and rich leaves it away without a terminal or with NO_COLOR.
"""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from weir.findings import BY_KEY, Caution, Point, RunFindings, StackFindings
from weir.findings.metrics import (
    CPU,
    GENERATOR_CPU,
    GENERATOR_MEMORY,
    KERNEL_P50,
    KERNEL_P99,
    MEMORY,
    P50,
    P99,
    SAID_P50,
    SAID_P99,
    THROUGHPUT,
)
from weir.findings.words import counted
from weir.model.text import printable
from weir.report.generator_table import GENERATORS_NOTE
from weir.report.numbers import display, found_text, interval_text, size_ratio_text, size_text, value_text
from weir.report.overview import Overview, overview_of

MOST_LEFT_OUT = 12
"""Trials left out that are listed one by one; the HTML report has them all."""

_NAME_WIDTH = 23
"""Of a stack's name in a table. Longer ones fold rather than push the numbers out of 80 columns."""
_OF_GENERATORS = (THROUGHPUT, SAID_P50, KERNEL_P50, SAID_P99, KERNEL_P99, GENERATOR_CPU, GENERATOR_MEMORY)
_VALIDITY_STYLE = {"valid": "green", "suspect": "yellow", "invalid": "red"}


def render_answer(run: RunFindings) -> RenderableType:
    """What `weir run` prints as an interim answer: the sentence and the figures behind it."""
    findings: RunFindings = printable(run)
    parts: list[RenderableType] = [Text(""), _heading(findings), Text(""), Text(findings.answer.sentence, style="bold"), Text("")]
    overview = overview_of(findings)
    if overview is not None:
        return Group(*parts, _overview(overview), Text(""))
    measured = [point for point in findings.points if any(stack.evidence.used for stack in point.stacks)]
    for point in measured:
        parts += [_table(point, several=len(measured) > 1), Text("")]
    return Group(*parts)


def render_terminal(run: RunFindings) -> RenderableType:
    """What `weir run` and `weir report` print about a run."""
    findings: RunFindings = printable(run)
    parts: list[RenderableType] = [_heading(findings), Text(""), Text(findings.answer.sentence, style="bold"), Text("")]
    parts += _generators(findings)
    overview = overview_of(findings)
    if overview is not None:
        parts += [_overview(overview), Text("")]
    for point in findings.points:
        parts += [_table(point, several=len(findings.points) > 1), Text("")]
        if point.ceilings:
            parts += [Text(point.ceilings, style="dim"), Text("")]
        parts += _work(point)
        parts += _published(point)
    parts += _curves(findings)
    parts += _what_ran(findings)
    parts += _objectives(findings)
    parts.append(_evidence(findings))
    if findings.cautions:
        parts += [Text(""), Text("To keep in mind", style="bold"), _bullets([_caution(caution) for caution in findings.cautions])]
    if findings.left_out:
        parts += [Text(""), Text("Left out", style="bold"), _bullets(_left_out(findings))]
    return Group(*parts)


def _heading(findings: RunFindings) -> Text:
    answer = findings.answer
    verdict = answer.validity + (", indicative" if answer.indicative else "")
    text = Text.assemble((findings.question or findings.title, "italic"), "  [")
    text.append(verdict, style=_VALIDITY_STYLE[answer.validity])
    text.append("]")
    return text


def _table(point: Point, *, several: bool) -> Table:
    table = Table(
        title=point.label if several else None,
        title_justify="left",
        box=None,
        pad_edge=False,
        padding=(0, 2, 0, 0),
    )
    table.add_column("stack", overflow="fold", max_width=_NAME_WIDTH)
    for heading in ("req/s", "p50 ms", "p99 ms", "CPU µs/req", "MB", "start s"):
        table.add_column(heading, justify="right", no_wrap=True)
    for stack in point.stacks:
        table.add_row(*_row(stack))
        if stack.failed_share:
            table.add_row(Text(f"  {stack.failed_share:.1%} failed"))
        interval = [interval_text(stack.measure(metric)) for metric in (THROUGHPUT, CPU, MEMORY)]
        if interval[0]:
            table.add_row(
                Text("  95 % interval", style="dim"), Text(interval[0], style="dim"), "", "", Text(interval[1], style="dim"), "", ""
            )
    return table


def _generators(findings: RunFindings) -> list[RenderableType]:
    """Generators side by side on the same server."""
    parts: list[RenderableType] = []
    meanings: dict[str, Text] = {}
    for same in findings.generators:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), title=same.where, title_justify="left", title_style="bold")
        table.add_column("generator", no_wrap=True)
        for heading in ("req/s", "p50 ms", "kernel", "p99 ms", "kernel", "CPU µs/req", "MB"):
            table.add_column(heading, justify="right", no_wrap=True)
        for one in same.generators:
            table.add_row(Text(one.generator), *(Text(value_text(one.measure(metric))) for metric in _OF_GENERATORS))
            rate, cpu = (interval_text(one.measure(metric)) for metric in (THROUGHPUT, GENERATOR_CPU))
            if rate:
                table.add_row(*(Text(text, style="dim") for text in ("  95 %", rate, "", "", "", "", cpu, "")))
            if one.figures:
                meanings[one.generator] = Text(f"{one.version}: {one.figures}")
        parts += [table, Text(same.sentence)]
        notes = [Text(f"{one.generator}: {note}") for one in same.generators for note in one.notes]
        parts += [_bullets(notes)] if notes else []
        parts.append(Text(""))
    if parts:
        parts[-1:] = [Text(GENERATORS_NOTE, style="dim"), Text("")]
    if meanings:
        parts += [Text("What their response times are", style="bold"), _bullets(list(meanings.values())), Text("")]
    return parts


def _overview(overview: Overview) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), title="All points", title_justify="left", title_style="bold")
    table.add_column("", overflow="fold", max_width=30)
    for heading in overview.headings:
        table.add_column(heading, justify="right", overflow="fold")
    for row in overview.rows:
        table.add_row(Text(row.label), *(Text(cell) for cell in row.cells))
    return table


def _objectives(findings: RunFindings) -> list[RenderableType]:
    """Every objective of the study at every point, with what was found."""
    rows = findings.objectives()
    if not rows:
        return []
    missed = sum(not held.met for _, _, held in rows)
    title = f"Objectives: {missed} of {len(rows)} missed" if missed else f"Objectives: all {len(rows)} met"
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), title=title, title_justify="left", title_style="bold")
    several = len(findings.points) > 1
    for heading in ("", "objective", *(["point"] if several else []), "stack", "found", "trials"):
        table.add_column(heading, overflow="fold", justify="right" if heading in ("found", "trials") else "left")
    for point, stack, held in rows:
        place = [Text(point.label)] if several else []
        verdict = Text("met", style="green") if held.met else Text("MISSED", style="red")
        met = Text(f"{held.trials_met} of {held.trials}")
        table.add_row(verdict, Text(held.objective), *place, Text(stack.name), Text(found_text(held)), met)
    return [table, Text("")]


def _row(stack: StackFindings) -> list[Text]:
    name = _name(stack.name)
    if stack.baseline:
        name.append(" (baseline)", style="dim")
    values = [value_text(stack.measure(metric)) for metric in (THROUGHPUT, P50, P99, CPU, MEMORY, "ready_s")]
    return [name, *(Text(value) for value in values)]


def _name(name: str) -> Text:
    """A stack's name, folded before its variant where it is too long."""
    return Text(name.replace("[", "\n[", 1) if len(name) > _NAME_WIDTH else name)


def _work(point: Point) -> list[RenderableType]:
    """What the services did per request, by their own counters."""
    if point.work is None:
        return []
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), title="Work per request", title_justify="left", title_style="bold")
    table.add_column("stack", overflow="fold", max_width=_NAME_WIDTH)
    table.add_column("service", no_wrap=True)
    for heading in ("statements", "begin, set …", "rows"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("bytes", overflow="fold")
    for stack in point.stacks:
        for work in stack.work:
            rows = "–" if work.rows is None else f"{work.rows:,.2f}"
            moved = ", ".join(f"{name} {value:,.0f}" for name, value in work.bytes.items())
            table.add_row(
                _name(stack.name), Text(work.service), f"{work.statements:,.2f}", f"{work.control_statements:,.2f}", rows, Text(moved)
            )
    return [table, Text(point.work.sentence, style="dim"), Text("")]


def _curves(findings: RunFindings) -> list[RenderableType]:
    """Where stacks change sides, how they grow, and what holds them back."""
    parts: list[RenderableType] = []
    for title, found in (
        ("Break-even", [(one.sentence, one.would_change) for one in findings.break_evens if one.metric == THROUGHPUT or one.crossings]),
        ("Scalability", [(one.sentence, one.would_change) for one in findings.scalings]),
        ("What holds them back", [(one.sentence, one.would_prove) for one in findings.bottlenecks]),
        ("Experiments on that", [(one.sentence, "") for one in findings.proofs]),
    ):
        if found:
            lines = [Text(sentence).append(f" {rest}", style="dim") for sentence, rest in found]
            parts += [Text(title, style="bold"), _bullets(lines), Text("")]
    return parts


def _what_ran(findings: RunFindings) -> list[RenderableType]:
    """What the stacks were built into, and what ran them."""
    if not any(stack.runtimes or stack.artifact_bytes for stack in findings.what_ran):
        return []
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), title="What ran", title_justify="left", title_style="bold")
    table.add_column("stack", overflow="fold", max_width=_NAME_WIDTH)
    table.add_column("built MB", justify="right", no_wrap=True)
    table.add_column("÷ baseline", justify="right", no_wrap=True)
    table.add_column("runs on", overflow="fold")
    for stack in findings.what_ran:
        table.add_row(
            _name(stack.name), size_text(stack.artifact_bytes), size_ratio_text(stack.size_ratio), Text(", ".join(stack.runtimes) or "–")
        )
    return [table, Text("")]


def _published(point: Point) -> list[RenderableType]:
    if not point.published:
        return []
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), title="As published", title_justify="left", title_style="bold")
    table.add_column("stack", overflow="fold", max_width=_NAME_WIDTH)
    for heading in ("", "published", "here"):
        table.add_column(heading, justify="left" if not heading else "right", no_wrap=True)
    last = ""
    for figure in point.published:
        known = figure.metric in BY_KEY
        shown = display(figure.metric) if known else None
        title = BY_KEY[figure.metric].title if known else figure.metric
        unit = f" {shown.unit}" if shown else ""
        published = f"{shown.text(figure.value)}{unit}" if shown else f"{figure.value:g}"
        ours = f"{shown.text(figure.ours)}{unit}" if shown and figure.ours is not None else "–"
        table.add_row(_name("" if figure.name == last else figure.name), Text(title), published, ours)
        last = figure.name
    return [table, Text("Other machines, other loads: compare the ratios, not the figures.", style="dim"), Text("")]


def _evidence(findings: RunFindings) -> Text:
    trials = findings.trials
    text = f"{trials.used} of {counted(trials.finished, 'trial')} used"
    if trials.tried < trials.planned:
        text += f" ({trials.planned} planned)"
    if findings.trials.retried:
        text += f", {findings.trials.retried} of them tried again"
    text += f". {findings.audit.sentence}"
    if findings.stopped:
        text += f" The run ended: {findings.stopped.text}."
    if findings.identical_copies:
        text += f" {findings.identical_copies.sentence}"
    if findings.variation:
        text += f" {findings.variation.sentence}"
    text += f" What would change the answer: {findings.answer.would_change}"
    return Text(text)


def _bullets(texts: list[Text]) -> Table:
    """Lines with a hanging indent."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for text in texts:
        grid.add_row("-", text)
    return grid


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
