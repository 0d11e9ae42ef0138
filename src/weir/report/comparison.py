"""Renders the result of `weir compare` for a terminal or as Markdown. A side is one of the compared servers."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

from weir.findings import RunFindings
from weir.findings.compare import describe_basis
from weir.findings.formatting import listed, ratio_text
from weir.findings.metrics import BY_KEY, CPU, MEMORY, P50, P99, READY, THROUGHPUT
from weir.findings.point_types import Comparison, Point, StackFindings
from weir.model.sanitize import sanitize
from weir.report.number_format import TABLE_METRICS, value_text
from weir.stats import SAMPLES_BEYOND

_TITLES = {
    THROUGHPUT: "requests/s", P50: "p50", P99: "p99", CPU: "CPU per request", MEMORY: "memory", READY: "start-up",
}  # fmt: skip
_PHRASES = {THROUGHPUT: ("answers", "as many requests as"), P50: ("takes", "as long for the median response as")}
"""Verb and object of the answer's sentence, for each metric that the answer may use."""
_HEADINGS = ("req/s", "p50 ms", "p99 ms", "CPU µs/req", "MB", "start s")
_BAR_WIDTH, _MIN_BAR_WIDTH = 31, 9
_MAX_REASONS = 3
_MAX_RATIO = 20.0
"""The largest ratio that a bar can show. The text beside the bar always has the true ratio."""


@dataclass(frozen=True, slots=True)
class RatioLine:
    """The ratio of a side to the first side on one metric."""

    side: str
    metric: str
    comparison: Comparison
    text: str
    """The ratio and its interval, such as '2.1 (1.9–2.3)'. A very wide interval is omitted."""


def summarize(findings: RunFindings) -> str:
    """Returns a sentence that compares each side with the first side on the metric of the answer."""
    found = [one for point in findings.points[:1] for one in point.comparisons if one.metric == point.answer_metric]
    found = [one for one in found if one.ratio is not None]
    if not found:
        return findings.answer.sentence
    point, sign = findings.points[0], _sign(findings.points[0])
    parts = [_compare_side(point, one) for one in sorted(found, key=lambda one: -sign * (one.ratio or 0))]
    where = "" if point.answer_metric == THROUGHPUT else f"With {point.load}, "
    suspect = ", suspect" if findings.answer.validity == "suspect" else ""
    return f"{where}{'; '.join(parts)}. ({describe_basis(found[0])}{suspect})"


def _sign(point: Point) -> int:
    """Returns 1 if a higher value of the answer's metric is better, otherwise -1."""
    return 1 if BY_KEY[point.answer_metric].higher_is_better else -1


def _compare_side(point: Point, found: Comparison) -> str:
    assert found.ratio is not None
    one, other, ratio = found.name, found.against_name, found.ratio
    value, interval = ratio_text(ratio, found.low, found.high)
    verb, amount = _PHRASES[found.metric]
    if not _is_narrow(found):
        return f"{one} {verb} {value}× {amount} {other}: no narrow interval yet"
    if found.outcome in ("same", "undecided"):
        what = "" if found.metric == THROUGHPUT else f" on {BY_KEY[found.metric].title}"
        return f"{one} and {other} cannot be told apart{what}: {value} ({interval})"
    ends = (found.low, found.high)
    cpu = point.comparison(found.label, CPU)
    cpu_ratio = cpu.ratio if cpu is not None else None
    if (ratio - 1) * _sign(point) < 0:
        one, other = other, one
        inverse = [1 / end if end else None for end in reversed(ends)]
        value, interval = ratio_text(1 / ratio, *inverse)
        cpu_ratio = 1 / cpu_ratio if cpu_ratio else None
    cost = f", with {ratio_text(cpu_ratio, None, None)[0]}× the CPU per request" if cpu_ratio else ""
    return f"{one} {verb} {value}× ({interval}) {amount} {other}{cost}"


def _is_narrow(found: Comparison) -> bool:
    """Returns whether a ratio's interval is narrow enough to print. Two blocks may give 0.001–1,000."""
    return bool(found.low and found.high and found.high / found.low <= _MAX_RATIO**2)


def list_ratios(findings: RunFindings) -> Iterator[RatioLine]:
    """Yields the ratios of each side to the first side. The ratios of the first side's A/A copy come last."""
    copies = findings.identical_copies
    for point in findings.points[:1]:
        order = {stack.label: index for index, stack in enumerate(_rank(point))}
        both = [*point.comparisons, *(copies.comparisons if copies is not None else ())]
        both = [one for one in both if one.metric in _TITLES and one.ratio is not None]
        for one in sorted(both, key=lambda one: order.get(one.label, len(order))):
            assert one.ratio is not None
            value, interval = ratio_text(one.ratio, one.low, one.high)
            text = f"{value} ({interval})" if _is_narrow(one) else value
            yield RatioLine(one.name, _TITLES[one.metric], one, text)


def _rank(point: Point) -> list[StackFindings]:
    """Returns the sides from the best to the worst on the metric of the answer, without the A/A copy."""
    sides = [stack for stack in point.stacks if stack.arm == "main"]
    return sorted(sides, key=lambda stack: -_sign(point) * (stack.measure(point.answer_metric).value or 0.0))


def render_comparison(run: RunFindings) -> RenderableType:
    """Returns the result that `weir compare` prints at the end."""
    findings: RunFindings = sanitize(run)
    parts: list[RenderableType] = [Text(summarize(findings), style="bold"), Text("")]
    for point in findings.points[:1]:
        columns = (Column(heading, justify="right", no_wrap=True) for heading in _HEADINGS)
        table = _table(Column("", overflow="fold", max_width=26), *columns)
        for side in _rank(point):
            table.add_row(side.name, *(value_text(side.measure(metric)) for metric in TABLE_METRICS))
        parts += [table, Text("")]
    lines = list(list_ratios(findings))
    for side, own in groupby(lines, key=lambda line: line.side):
        table = _table(Column("", min_width=17), Column("", justify="right", min_width=19, no_wrap=True), "")
        scale = _choose_scale([line.comparison for line in lines])
        for line in own:
            table.add_row(f"  {line.metric}", line.text, _Bar(line.comparison, scale))
        parts += [Text(f"{side} ÷ {lines[0].comparison.against_name}", style="bold"), table, Text("")]
    return Group(*parts, *map(Text, list_notes(findings)))


def render_so_far(run: RunFindings) -> RenderableType:
    """Returns the interim result of a comparison: a sentence, and a bar for each ratio on the answer's metric."""
    findings: RunFindings = sanitize(run)
    wanted = [_TITLES[point.answer_metric] for point in findings.points[:1]]
    lines = [line for line in list_ratios(findings) if line.metric in wanted]
    scale = _choose_scale([line.comparison for line in lines])
    table = _table("", Column("", justify="right", no_wrap=True), "")
    for line in lines:
        name = f"{line.side} ÷ {line.comparison.against_name}"
        table.add_row(f"  {name}", line.text, _Bar(line.comparison, scale))
    return Group(Text(summarize(findings), style="bold"), table)


def list_notes(findings: RunFindings) -> Iterator[str]:
    """Yields notes: each side's bottleneck, the noise, reasons to doubt the result, and the next measurement."""
    held_back: dict[str, list[str]] = {}
    for one in findings.bottlenecks:
        limit = "no resource that weir observed is full" if one.kind == "unknown" else f"the limit is {one.what}"
        held_back.setdefault(limit, []).append(one.name)
    for limit, names in held_back.items():
        yield f"{listed(names)}: {limit}."
    ratios = [one for point in findings.points[:1] for one in point.comparisons]
    measured = {one.label for one in ratios if one.metric == THROUGHPUT and one.ratio is not None}
    for metric, requests in ((P50, SAMPLES_BEYOND * 2), (P99, SAMPLES_BEYOND * 100)):
        if any(one.metric == metric and one.ratio is None and one.label in measured for one in ratios):
            yield f"{_TITLES[metric]} needs {requests:,} requests in each trial: use a longer --duration."
            break
    copies = findings.identical_copies
    if copies is not None and copies.sentence:
        yield f"Noise: {copies.sentence}"
    for reason in findings.answer.reasons[:_MAX_REASONS]:
        yield f"Suspect: {reason}"
    if findings.stopped is not None and findings.stopped.rule != "width":
        yield f"Ended: {findings.stopped.text.partition(';')[0]}."
    if findings.answer.would_change:
        yield f"Next: {findings.answer.would_change}"


def _table(*columns: Column | str) -> Table:
    has_headings = any(column.header for column in columns if isinstance(column, Column))
    return Table(*columns, box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=has_headings)


def _choose_scale(compared: Sequence[Comparison]) -> float:
    """Returns the logarithm of the ratio at the right end of the bars' axis. The ratio 1 is in the middle."""
    ends = [abs(math.log(end)) for one in compared for end in (one.ratio, one.low, one.high) if end]
    return min(max([math.log(1.1), *ends]), math.log(_MAX_RATIO))


@dataclass(frozen=True, slots=True)
class _Bar:
    """A bar that is narrower in a narrow terminal."""

    found: Comparison
    scale: float

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(_MIN_BAR_WIDTH, _BAR_WIDTH)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        # With an odd number of characters, the ratio 1 is in the middle.
        yield Text(_draw_bar(self.found, self.scale, (options.max_width - 1) // 2 * 2 + 1), style="cyan")


def _draw_bar(found: Comparison, scale: float, width: int) -> str:
    """Returns a bar of characters: `├─●─┤` for the interval and the ratio, and `│` for the ratio 1."""

    def place(ratio: float) -> int:
        share = max(-1.0, min(1.0, math.log(ratio) / scale))
        return round((share + 1) / 2 * (width - 1))

    assert found.ratio is not None
    cells = [" "] * width
    cells[place(1.0)] = "│"
    if found.low is not None and found.high is not None and _is_narrow(found):
        low, high = place(found.low), place(found.high)
        cells[low : high + 1] = ["─"] * (high - low + 1)
        cells[low], cells[high] = "├", "┤"
    cells[place(found.ratio)] = "●"
    return "".join(cells)


def format_markdown(findings: RunFindings) -> str:
    """Returns the result of a comparison as Markdown, for example for a pull request."""
    lines = [f"**{summarize(findings)}**", ""]
    for point in findings.points[:1]:
        lines += [f"| | {' | '.join(_HEADINGS)} |", "|-" + "|-:" * len(_HEADINGS) + "|"]
        for side in _rank(point):
            cells = (value_text(side.measure(metric)) for metric in TABLE_METRICS)
            lines.append(f"| {_escape(side.name)} | {' | '.join(cells)} |")
    sides: dict[str, dict[str, str]] = {}
    ratios = list(list_ratios(findings))
    for line in ratios:
        sides.setdefault(line.side, {})[line.metric] = line.text
    if ratios:
        lines += ["", f"| ÷ {_escape(ratios[0].comparison.against_name)} | {' | '.join(_TITLES.values())} |"]
        lines.append("|-" + "|-:" * len(_TITLES) + "|")
        for name, texts in sides.items():
            lines.append(f"| {_escape(name)} | {' | '.join(texts.get(title, '–') for title in _TITLES.values())} |")
    return "\n".join([*lines, "", *(f"- {note}" for note in list_notes(findings))]) + "\n"


def _escape(text: str) -> str:
    return text.replace("|", r"\|")
