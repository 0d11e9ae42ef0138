"""ab, of Apache: a closed loop on one thread, in HTTP/1.0."""

import csv
import io
from dataclasses import replace
from pathlib import Path

from weir.compat.reports.text_reports import read_ab
from weir.generators.feature import Feature
from weir.generators.tool import Tool, body_file, no_fewer_than_connections, not_whole_seconds
from weir.model.claim import Claim, Figure
from weir.model.load import LoadPlan

_MOST_RPS = 1_000_000
"""It must be told a number of requests: more than it can send. Of the memory that it asks for that number it uses what it needs."""
_PERCENTILES = "percentiles.csv"


class Ab(Tool):
    """ab. It looks at no certificate. Of percentiles it prints whole milliseconds and writes microseconds to a file, which is read."""

    name = "ab"
    title = "ab"
    origin = "apt-get install apache2-utils"
    clock = "the Total of its table: from before connecting, where the request does that, to the end of the answer"
    can = frozenset({Feature.NEW_CONNECTIONS, Feature.REQUESTS})
    ask_version = ("-V",)

    def _cannot_besides(self, plan: LoadPlan) -> list[str]:
        rounded = not_whole_seconds(self.title, duration_s=plan.duration_s, timeout_s=plan.timeout_s)
        return rounded + no_fewer_than_connections(self.title, plan)

    def arguments(self, plan: LoadPlan, folder: Path) -> list[str]:
        """It goes on when a connection fails, and takes answers of any length."""
        request = plan.request
        # The number after the time, which would set it to 50,000.
        options = ["-q", "-r", "-l", "-t", f"{plan.duration_s:.0f}", "-n", f"{plan.requests or round(_MOST_RPS * plan.duration_s)}"]
        options += ["-c", f"{plan.load.connections}", "-s", f"{plan.timeout_s:.0f}", "-e", _PERCENTILES]
        options += ["-k"] if plan.keep_alive else []
        headers = list(request.headers)
        if request.body is not None:
            options += ["-u" if request.method == "PUT" else "-p", body_file(plan, folder)]
            # It adds one of its own to a body, unless told.
            types = [value for name, value in headers if name.lower() == "content-type"]
            headers = [(name, value) for name, value in headers if name.lower() != "content-type"]
            options += ["-T", *types[:1]] if types else []
        if request.method not in ("GET", "POST", "PUT") or (request.body is None and request.method != "GET"):
            options += ["-i"] if request.method == "HEAD" else ["-m", request.method]
        for name, value in headers:
            options += ["-H", f"{name}: {value}"]
        return [*options, request.target]

    def threads(self, plan: LoadPlan) -> int:
        """It has one."""
        return 1

    def read(self, printed: str, folder: Path) -> Claim:
        """From what it printed and from the percentiles that it wrote."""
        (claim,) = read_ab(printed, self.title)
        if not claim.requests:
            return claim
        rows = csv.DictReader(io.StringIO((folder / _PERCENTILES).read_text()))
        steps = {int(row["Percentage served"]) / 100: Figure.printed(row["Time in ms"], 1e-3) for row in rows}
        return replace(claim, min_s=steps.pop(0.0), quantiles_s=steps)
