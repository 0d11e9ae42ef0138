"""oha: a closed loop, and arrivals at a rate whose response times count from when they were due."""

from pathlib import Path

from weir.compat.reports.json_reports import read_oha
from weir.generators.feature import Feature
from weir.generators.tool import Tool, body_file, milliseconds, rate_of
from weir.model.claim import Claim
from weir.model.load import LoadPlan, OpenLoad

_REPORT = "report.json"


class Oha(Tool):
    """oha. It looks at no certificate: weir tells it so, as the others look at none."""

    name = "oha"
    title = "oha"
    origin = "cargo install oha --locked"
    clock = "from before a request is sent, or at a rate from when it was due, to the end of its answer"
    can = frozenset({Feature.NEW_CONNECTIONS, Feature.REQUESTS, Feature.RATE})

    def arguments(self, plan: LoadPlan, folder: Path) -> list[str]:
        """It compresses nothing and follows no redirect, like weir's engine."""
        request = plan.request
        # A duration would win over a number.
        options = ["-z", milliseconds(plan.duration_s)] if plan.requests is None else ["-n", f"{plan.requests}"]
        if isinstance(plan.load, OpenLoad):
            options += ["-q", f"{rate_of(plan.load):g}", "--latency-correction"]
        options += ["-c", f"{plan.load.connections}", "-t", milliseconds(plan.timeout_s), "-m", request.method]
        options += ["--disable-compression", "--redirect", "0", "--no-tui", "--output-format", "json", "--output", _REPORT]
        options += ["--worker-threads", f"{plan.threads}"]
        options += [] if plan.keep_alive else ["--disable-keepalive"]
        options += ["--insecure"] if request.target.startswith("https:") else []
        for name, value in request.headers:
            options += ["-H", f"{name}: {value}"]
        if request.body is not None:
            options += ["-D", body_file(plan, folder)]
        return [*options, request.target]

    def read(self, printed: str, folder: Path) -> Claim:
        """From the report that it wrote."""
        (claim,) = read_oha((folder / _REPORT).read_text(), self.title)
        return claim
