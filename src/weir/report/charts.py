"""Computes the data of each point's charts. Charts need no findings, only the ids of the counted trials. So weir
computes charts and findings at the same time: both take long in a run with a thousand trials."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from weir.findings.formatting import sentence_names
from weir.findings.load_findings import SERVER, trials_to_show
from weir.findings.points import PointCells, group_points
from weir.parallel import start_parallel
from weir.report.series import PointSeries, Shown, build_point_series, list_shown
from weir.report.timeseries import Array, Line, cut_slices, to_line
from weir.store import IntervalRow, RunReader


@dataclass(frozen=True, slots=True)
class AnswerLine:
    """A line in the chart of cumulative responses: the responses of one stack, or an upper bound on responses."""

    label: str
    colour: int | None
    """The number of the stack's colour; None for an upper bound that several stacks share."""
    values: Line
    is_bound: bool = False


@dataclass(frozen=True, slots=True)
class AnswerSeries:
    """The chart of cumulative responses and upper bounds. The chart has no lines if no stack has an upper bound."""

    time_s: list[float]
    lines: list[AnswerLine]


@dataclass(frozen=True, slots=True)
class PointCharts:
    """The data of all charts of one point."""

    series: PointSeries
    answers: AnswerSeries


Charts = Callable[[], list[PointCharts]]
"""Waits for the charts, and returns them in the order of `RunFindings.points`. Call the function at most once."""


def begin_charts(reader: RunReader) -> Charts:
    """Starts to compute charts in worker processes. Returns a function that waits for the charts. The returned function
    raises WeirError for a damaged run file."""
    cells = reader.cells()
    names = dict.fromkeys((cell.id for cell in cells), SERVER) if reader.info.is_load else sentence_names(cells)
    groups = group_points(cells, trials_to_show(reader))
    together = max(1, sum(len(group.members) for group in groups))

    def of_point(own: RunReader, group: PointCells) -> PointCharts:
        shown = list_shown(group, names)
        return PointCharts(build_point_series(own, group.load, shown, together), build_answer_series(own, shown))

    return start_parallel(reader, groups, of_point)


def build_answer_series(reader: RunReader, shown: Sequence[Shown]) -> AnswerSeries:
    """Returns a line for each stack (the mean cumulative responses) and a line for each distinct upper bound. The lines
    show sums, not rates: a burst's rate may exceed an upper bound, but the sum never exceeds bound × time."""
    if not any(stack.upper_bounds for stack in shown):
        return AnswerSeries([], [])
    intervals = {trial: reader.intervals(trial) for stack in shown for trial in stack.trials}
    edges = cut_slices([row for rows in intervals.values() for row in rows])
    lines: list[AnswerLine] = []
    upper_bounds: dict[str, AnswerLine] = {}
    for stack in shown:
        trials = [_answered(intervals[trial], edges) for trial in stack.trials]
        lines.append(AnswerLine(stack.name, stack.colour, to_line(np.mean(trials, axis=0))))
        for bound in stack.upper_bounds:
            own = stack.colour if bound.of == "stack" else None
            line = AnswerLine(bound.because, own, to_line(edges * bound.throughput_rps), is_bound=True)
            upper_bounds.setdefault(bound.because, line)
    return AnswerSeries([round(float(edge), 4) for edge in edges], [*lines, *upper_bounds.values()])


def _answered(rows: Sequence[IntervalRow], edges: Array) -> Array:
    """Returns a trial's number of correct responses up to each time in `edges`."""
    ends = [0.0, *(row.end_s for row in rows)]
    return np.asarray(np.interp(edges, ends, np.cumsum([0, *(row.ok for row in rows)])))
