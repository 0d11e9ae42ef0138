"""What people look at: the findings of a run on a terminal, as JSON, and as one HTML file that opens offline.

Reads the run file and its findings; measures and concludes nothing.
"""

from weir.report.charts import begin_charts
from weir.report.html import render_html, write_html
from weir.report.json import render_json
from weir.report.load import render_load_html, write_load_html
from weir.report.terminal import render_answer, render_terminal

__all__ = [
    "begin_charts",
    "render_answer",
    "render_html",
    "render_json",
    "render_load_html",
    "render_terminal",
    "write_html",
    "write_load_html",
]
