"""Renders a run's findings for a terminal, as one offline HTML file, as JSON, and in other tools' formats."""

from weir.report.charts import begin_charts
from weir.report.exports import render_json
from weir.report.html import render_html, write_html
from weir.report.terminal import render_answer, render_terminal

__all__ = ["begin_charts", "render_answer", "render_html", "render_json", "render_terminal", "write_html"]
