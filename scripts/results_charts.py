"""Draws the charts of docs/results from the kept findings: `python -m scripts.results_charts docs/results`.

Each STUDY/findings.json becomes STUDY/chart.svg. A chart has one panel for each point of the study and one row for
each stack. It shows rates, or ratios to the study's baseline if the article printed rates of several stacks. The
picture follows the reader's light or dark setting.
"""

import json
import math
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

RATES = "requests per second"
RATIOS = "requests per second ÷ {baseline}, log scale"
STUDIES: dict[str, str] = {
    "api-capacity": RATES,
    "blocked-event-loop": RATES,
    "blocking-vs-nonblocking": RATIOS,
    "mvc-vs-webflux": RATES,
    "mvc-vs-webflux-issue": RATIOS,
    "socket-servers": RATIOS,
    "sync-vs-async": RATIOS,
    "threadpool-exhaustion": RATES,
}
"""Each study with the quantity on its axis."""

THROUGHPUT = "throughput_rps"
WIDTH, ROW, PANEL_HEAD, MARGIN = 860, 30, 34, 20
LEFT, RIGHT = 270, 630
"""Where the axis begins and ends: names stand left of it, values right of it."""

STYLE = """
svg { --page: #ffffff; --text: #1f2328; --muted: #59636e; --line: #d1d9e0; --here: #0969da; --other: #bc4c00 }
@media (prefers-color-scheme: dark) {
svg { --page: #0d1117; --text: #e6edf3; --muted: #9198a1; --line: #30363d; --here: #4493f8; --other: #e3894d } }
text { font: 14px system-ui, -apple-system, "Segoe UI", sans-serif; fill: var(--text) }
.head { font-weight: 600 } .muted { fill: var(--muted); font-size: 12px }
.end { text-anchor: end } .middle { text-anchor: middle }
.page { fill: var(--page) } .line { stroke: var(--line) } .bar { fill: var(--here); fill-opacity: .3 }
.dot { fill: var(--here) }
.interval { stroke: var(--here); stroke-width: 2.5 }
.limit { stroke: var(--other); stroke-width: 2.5; stroke-dasharray: 4 3 }
.article { fill: var(--page); stroke: var(--other); stroke-width: 2 } .one { stroke: var(--muted) }
"""


@dataclass(frozen=True)
class Row:
    """A stack at one point: its value, its interval, and the figures beside them."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    article: float | None = None
    """Ratio that the article's own rates give."""
    limit: float | None = None
    """The smallest rate that arithmetic allows: threads or users divided by the wait."""


@dataclass(frozen=True)
class Panel:
    title: str
    rows: list[Row]


def display_rates(point: dict[str, Any]) -> list[Row]:
    """Returns the rows of a panel of rates."""
    rows = []
    for stack in point["stacks"]:
        if stack["arm"] != "aa":
            measure = next(one for one in stack["measures"] if one["metric"] == THROUGHPUT)
            limit = min((one["throughput_rps"] for one in stack.get("upper_bounds", [])), default=None)
            rows.append(Row(stack["name"], measure["value"], measure["low"], measure["high"], limit=limit))
    return rows


def display_ratios(point: dict[str, Any]) -> list[Row]:
    """Returns the rows of a panel of ratios. The baseline comes first, with the value 1."""
    baseline = next(stack for stack in point["stacks"] if stack["baseline"])
    published = {one["name"]: one["value"] for one in point["published"] if one["metric"] == THROUGHPUT}
    rows = [Row(baseline["name"], 1)]
    for one in point["comparisons"]:
        if one["metric"] == THROUGHPUT and one["against_label"] == baseline["label"]:
            both = one["name"] in published and baseline["name"] in published
            article = published[one["name"]] / published[baseline["name"]] if both else None
            rows.append(Row(one["name"], one["ratio"], one["low"], one["high"], article))
    return rows


def read_panels(findings: dict[str, Any], quantity: str) -> list[Panel]:
    display = display_rates if quantity == RATES else display_ratios
    return [Panel(point["label"], display(point)) for point in findings["points"]]


def round_to_three_digits(value: float) -> str:
    """Formats a value with three significant digits, and with all digits before the point."""
    decimals = 2 if value == 0 else max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{decimals}f}"


def list_ticks(low: float, high: float, is_log: bool) -> list[float]:
    """Returns the ticks of an axis: round numbers, at most eight."""
    if is_log:
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        factors = (1, 1.5, 2, 3, 5, 7) if high / low < 5 else (1, 2, 5) if high / low < 100 else (1,)
        return [tick for decade in decades for factor in factors if low <= (tick := factor * 10.0**decade) <= high]
    raw = high / 5
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw)
    return [step * number for number in range(int(high / step) + 1)]


def choose_axis(panels: Iterable[Panel], is_log: bool) -> tuple[float, float]:
    """Returns the smallest and the largest value of an axis that all panels share."""
    values = [
        value
        for panel in panels
        for row in panel.rows
        for value in (row.value, row.low, row.high, row.article, row.limit)
        if value is not None
    ]
    return (min(values) / 1.15, max(values) * 1.15) if is_log else (0, max(values) * 1.05)


def draw(findings: dict[str, Any], quantity: str) -> str:
    """Returns the chart of a study as SVG."""
    panels = read_panels(findings, quantity)
    is_log = quantity == RATIOS
    low, high = choose_axis(panels, is_log)
    ticks = list_ticks(low, high, is_log)

    def place(value: float) -> float:
        share = math.log(value / low) / math.log(high / low) if is_log else value / high
        return round(LEFT + share * (RIGHT - LEFT), 1)

    parts: list[str] = []
    y = MARGIN
    for panel in panels:
        bottom = y + PANEL_HEAD + ROW * len(panel.rows)
        parts.append(f'<text class="head" x="{MARGIN}" y="{y + 18}">{escape(panel.title)}</text>')
        for tick in ticks:
            style = "one" if is_log and tick == 1 else "line"
            parts.append(draw_upright(style, place(tick), y + PANEL_HEAD - 6, bottom))
            parts.append(f'<text class="muted middle" x="{place(tick)}" y="{bottom + 15}">{tick:,g}</text>')
        for number, row in enumerate(panel.rows):
            parts += draw_row(row, y + PANEL_HEAD + ROW * number + ROW // 2, place, is_log)
        y = bottom + 26
    baseline = panels[0].rows[0].name
    parts += draw_legend(panels, quantity.format(baseline=baseline), y + 18)
    height = y + 36
    title = escape(findings["question"])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img">\n'
        f"<title>{title}</title>\n<style>{STYLE}</style>\n"
        f'<rect class="page" width="{WIDTH}" height="{height}" rx="8"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def draw_row(row: Row, y: int, place: Callable[[float], float], is_log: bool) -> list[str]:
    """Returns the shapes of a row whose middle is at `y`."""
    parts = [f'<text x="{MARGIN}" y="{y + 5}">{escape(row.name)}</text>']
    value = round_to_three_digits(row.value)
    if not is_log:
        width = round(place(row.value) - LEFT, 1)
        parts.append(f'<rect class="bar" x="{LEFT}" y="{y - 9}" width="{width}" height="18" rx="2"/>')
    if row.low is not None and row.high is not None:
        ends = (place(row.low), place(row.high))
        parts.append(f'<line class="interval" x1="{ends[0]}" x2="{ends[1]}" y1="{y}" y2="{y}"/>')
        parts += [draw_upright("interval", x, y - 5, y + 5) for x in ends]
        value += f" ({round_to_three_digits(row.low)}–{round_to_three_digits(row.high)})"
    parts.append(draw_dot(place(row.value), y))
    if row.article is not None:
        parts.append(draw_diamond(place(row.article), y))
    if row.limit is not None:
        parts.append(draw_upright("limit", place(row.limit), y - 13, y + 13))
    parts.append(f'<text class="end" x="{WIDTH - MARGIN}" y="{y + 5}">{value}</text>')
    return parts


def draw_dot(x: float, y: int) -> str:
    return f'<circle class="dot" cx="{x}" cy="{y}" r="4"/>'


def draw_diamond(x: float, y: int) -> str:
    return f'<path class="article" d="M{x} {y - 7}l7 7l-7 7l-7 -7z"/>'


def draw_upright(style: str, x: float, top: int, bottom: int) -> str:
    return f'<line class="{style}" x1="{x}" x2="{x}" y1="{top}" y2="{bottom}"/>'


def draw_legend(panels: list[Panel], quantity: str, y: int) -> list[str]:
    """Returns the line below the panels: the quantity, and one sample of each mark that the chart has."""
    rows = [row for panel in panels for row in panel.rows]
    x, step = LEFT + 130, 150
    parts = [f'<text class="muted" x="{MARGIN}" y="{y}">{escape(quantity)}</text>', draw_dot(x, y - 4)]
    names = ["weir, 95 % interval"]
    if any(row.article is not None for row in rows):
        parts.append(draw_diamond(x + step, y - 4))
        names.append("the article")
    if any(row.limit is not None for row in rows):
        parts.append(draw_upright("limit", x + step * len(names), y - 14, y + 4))
        names.append("limit by arithmetic")
    return parts + [
        f'<text class="muted" x="{x + 12 + step * number}" y="{y}">{name}</text>' for number, name in enumerate(names)
    ]


if __name__ == "__main__":
    for study, quantity in STUDIES.items():
        folder = Path(sys.argv[1], study)
        (folder / "chart.svg").write_text(draw(json.loads((folder / "findings.json").read_text()), quantity))
