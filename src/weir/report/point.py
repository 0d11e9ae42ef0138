"""Renders the part of a report about one point. The result is text, because worker processes send text fastest."""

from weir.findings import LoadFindings, RunFindings
from weir.findings.metrics import BY_KEY, CPU, MEMORY, P99, READY, THROUGHPUT
from weir.findings.point_types import Point
from weir.report.charts import PointCharts
from weir.report.interval_plot import assign_colours, measure_strip, ratio_strip, tile_rows
from weir.report.number_format import display
from weir.report.page import embed_json, get_template, read_fields

RESOURCE_METRICS = (CPU, MEMORY, READY)
TILE_METRICS = (THROUGHPUT, P99, CPU, MEMORY)
TEMPLATE = "point.html.j2"
RUN_TEMPLATES = ("comparison.html.j2", "resources.html.j2")
"""Templates that only a run's report includes. A load's report does not include them."""
_MOST_WITH_DOTS = 12
"""Above this number of points, the charts of resources have no dots for single trials."""


def render_point(findings: RunFindings, charts: PointCharts, number: int) -> tuple[str, str]:
    """Returns the HTML of the point with index `number`, and the data of the point's charts as JSON."""
    point: Point = findings.points[number]
    series, answers = charts.series, charts.answers
    colours = assign_colours(point)
    # A single load has one trial: no comparisons and no intervals.
    is_load = isinstance(findings, LoadFindings)
    tiles = [(BY_KEY[metric], display(metric), rows) for metric in TILE_METRICS if (rows := tile_rows(point, metric))]
    strips = [] if is_load else [measure_strip(point, metric) for metric in RESOURCE_METRICS]
    markup = get_template(TEMPLATE).render(
        findings=findings,
        is_load=is_load,
        point=point,
        number=number,
        series=series,
        answers=answers,
        colours=colours,
        tiles=tiles,
        throughput=measure_strip(point, THROUGHPUT),
        ratios=ratio_strip([found for found in point.comparisons if found.metric == THROUGHPUT], colours),
        published={(one.stack, one.metric): one.value for one in point.published if one.metric in BY_KEY},
        resources=list(filter(None, strips)),
        show_dots=len(findings.points) <= _MOST_WITH_DOTS,
    )
    return markup, embed_json(read_fields(series) | {"answers": answers})
