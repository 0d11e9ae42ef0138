"""The part of a run's page that is about one point: its tables, its charts' places and their data, as text.

As text, because the points of a large run are made in several processes, and text is what passes between them fastest.
"""

from dataclasses import dataclass

from weir.findings import BY_KEY, Point, RunFindings
from weir.findings.metrics import CPU, MEMORY, METRICS, P50, P99, READY, THROUGHPUT
from weir.report import sentences
from weir.report.charts import PointCharts
from weir.report.numbers import display
from weir.report.page import island, plain, template_of
from weir.report.strips import colours_of, measure_strip, ratio_strip, tile_rows

TABLE_METRICS = (THROUGHPUT, P50, P99, CPU, MEMORY, READY)
RESOURCE_METRICS = (CPU, MEMORY, READY)
TILE_METRICS = (THROUGHPUT, P99, CPU, MEMORY)
TEMPLATE = "point.html.j2"
_MOST_WITH_DOTS = 12
"""Points whose resources show each trial; of more, the table of trials alone does."""


@dataclass(frozen=True, slots=True)
class PointPart:
    """Everything about one point."""

    markup: str
    """Escaped."""
    data: str
    """Of its charts, as `island` makes it."""


def point_part(findings: RunFindings, charts: PointCharts, number: int) -> PointPart:
    """The part of the page about the point with this number, from 0."""
    point: Point = findings.points[number]
    series, answers = charts.series, charts.answers
    colours = colours_of(point)
    markup = template_of(TEMPLATE).render(
        findings=findings,
        point=point,
        number=number,
        several=len(findings.points) > 1,
        series=series,
        answers=answers,
        colours=colours,
        ratios=ratio_strip([found for found in point.comparisons if found.metric == THROUGHPUT], colours),
        tiles=[(BY_KEY[metric], display(metric), rows) for metric in TILE_METRICS if (rows := tile_rows(point, metric))],
        throughput=measure_strip(point, THROUGHPUT),
        published={(one.stack, one.metric): one.value for one in point.published if one.metric in BY_KEY},
        resources=[strip for metric in RESOURCE_METRICS if (strip := measure_strip(point, metric))],
        show_dots=len(findings.points) <= _MOST_WITH_DOTS,
        table_metrics=[(BY_KEY[metric], display(metric)) for metric in TABLE_METRICS],
        metrics={metric.key: metric for metric in METRICS},
        display=display,
        sentences=sentences,
    )
    return PointPart(markup, island({**plain(series), "answers": plain(answers)}))
