"""The answers that each stack has given so far, and the most that there can be by then: for the chart of predicted ceilings.

Counted up rather than by second: requests that wait alike are answered in bursts, each far above what a ceiling allows on average, while
their sum never exceeds ceiling × time.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weir.report.lines import Array, Line, line_of, slices
from weir.report.shown import Shown
from weir.store import IntervalRow, RunReader


@dataclass(frozen=True, slots=True)
class AnswerLine:
    """A stack's answers, or a ceiling."""

    label: str
    colour: int | None
    """The stack's; None of a ceiling that is nobody's own."""
    values: Line
    is_ceiling: bool = False


@dataclass(frozen=True, slots=True)
class AnswerSeries:
    """Lines on one axis of time, from the load's start. No lines where nothing is predicted."""

    time_s: list[float]
    lines: list[AnswerLine]


def answer_series(reader: RunReader, shown: Sequence[Shown]) -> AnswerSeries:
    """Answers so far of every stack of a point, the mean over trials, and the ceilings, each once."""
    if not any(stack.ceilings for stack in shown):
        return AnswerSeries([], [])
    intervals = {trial: reader.intervals(trial) for stack in shown for trial in stack.trials}
    edges = slices([row for rows in intervals.values() for row in rows])
    lines: list[AnswerLine] = []
    ceilings: dict[str, AnswerLine] = {}
    for stack in shown:
        trials = [_answered(intervals[trial], edges) for trial in stack.trials]
        lines.append(AnswerLine(stack.name, stack.colour, line_of(np.mean(trials, axis=0))))
        for ceiling in stack.ceilings:
            own = stack.colour if ceiling.of == "stack" else None
            ceilings.setdefault(ceiling.because, AnswerLine(ceiling.because, own, line_of(edges * ceiling.throughput_rps), is_ceiling=True))
    return AnswerSeries([round(float(edge), 4) for edge in edges], [*lines, *ceilings.values()])


def _answered(rows: Sequence[IntervalRow], edges: Array) -> Array:
    """How many requests a trial had answered by each moment."""
    ends = [0.0, *(row.end_s for row in rows)]
    answered = np.cumsum([0, *(row.ok for row in rows)])
    found: Array = np.interp(edges, ends, answered)
    return found
