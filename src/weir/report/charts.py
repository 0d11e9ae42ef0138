"""What the charts of each point are drawn from. All that it takes of the findings is which trials they use, so it is begun before them:
reading what happened within a thousand trials takes longer than comparing them.
"""

from collections.abc import Callable
from dataclasses import dataclass

from weir.findings.points import PointCells, group_points
from weir.findings.words import sentence_names
from weir.report.ceiling_series import AnswerSeries, answer_series
from weir.report.series import PointSeries, point_series
from weir.report.shown import shown_at
from weir.store import RunReader
from weir.workers import for_each


@dataclass(frozen=True, slots=True)
class PointCharts:
    """Of one point."""

    series: PointSeries
    answers: AnswerSeries


Charts = Callable[[], list[PointCharts]]
"""Waits for those of every point, in the order of `weir.findings.RunFindings.points`. To be called once."""


def begin_charts(reader: RunReader) -> Charts:
    """Begin with the charts of a run.

    Raises:
        WeirError: the run file is damaged.
    """
    cells = reader.cells()
    names = sentence_names(cells)
    groups = group_points(cells, reader.trials())
    together = max(1, sum(len(group.members) for group in groups))

    def of_point(own: RunReader, group: PointCells) -> PointCharts:
        shown = shown_at(group, names)
        return PointCharts(point_series(own, shown, together), answer_series(own, shown))

    return for_each(reader, groups, of_point)
