"""Builds one table of all points of a run: each stack's throughput, and its ratio to the baseline."""

from dataclasses import dataclass

from weir.findings import RunFindings
from weir.findings.formatting import ratio_text
from weir.findings.metrics import THROUGHPUT
from weir.findings.point_types import Comparison
from weir.report.number_format import value_text

MOST_STACKS = 3
"""Maximum number of stacks with a column of throughput. With more stacks, the table has only columns of ratios."""
MOST_COLUMNS = 4
"""Maximum number of columns. weir transposes a larger table if it also has more columns than rows."""

_WORDS = {"same": "the same", "undecided": "undecided", "no interval": "no interval"}


@dataclass(frozen=True, slots=True)
class Overview:
    """The table of all points."""

    corner: str
    """Heading of the first column: `point`, or `compared` if the table is transposed."""
    headings: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    """The rows: each row's label, and the texts of the row's cells."""


def build_overview(findings: RunFindings) -> Overview | None:
    """Returns the table of all points; None for a run with a single point."""
    if len(findings.points) < 2:
        return None
    stacks: dict[str, str] = {}
    compared: dict[str, str] = {}
    for point in findings.points:
        stacks |= {stack.label: stack.name for stack in point.stacks if stack.arm == "main"}
        ratios = [found for found in point.comparisons if found.metric == THROUGHPUT]
        compared |= {found.label: f"{found.name} ÷ {found.against_name}" for found in ratios}
    shown = stacks if len(stacks) <= MOST_STACKS else {}
    rows = []
    for point in findings.points:
        measures = {stack.label: stack.measure(THROUGHPUT) for stack in point.stacks}
        figures = [value_text(measures[label]) if label in measures else "–" for label in shown]
        figures += [_ratio(point.comparison(label, THROUGHPUT)) for label in compared]
        rows.append((point.label, tuple(figures)))
    headings = (*(f"{name} req/s" for name in shown.values()), *compared.values())
    if len(headings) > max(MOST_COLUMNS, len(rows)):
        columns = zip(*(cells for _, cells in rows), strict=True)
        return Overview("compared", tuple(label for label, _ in rows), tuple(zip(headings, columns, strict=True)))
    return Overview("point", headings, tuple(rows))


def _ratio(found: Comparison | None) -> str:
    if found is None or found.ratio is None:
        return "–"
    value, interval = ratio_text(found.ratio, found.low, found.high)
    word = _WORDS.get(found.outcome, "")
    return f"{value}×" + (f" ({interval})" if interval else "") + (f" {word}" if word else "")
