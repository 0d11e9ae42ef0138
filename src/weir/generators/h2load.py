"""h2load, of nghttp2, in HTTP/1.1: a closed loop. Its rate, `--rps`, holds for each connection apart, so that it makes no open one."""

from pathlib import Path

from weir.compat.reports.text_reports import read_h2load
from weir.generators.feature import Feature
from weir.generators.tool import Tool, body_file, no_fewer_than_connections
from weir.model.claim import Claim
from weir.model.load import LoadPlan


class H2load(Tool):
    """h2load. It looks at no certificate, and gives up on no request: it has a timeout of connections alone."""

    name = "h2load"
    title = "h2load"
    origin = "apt-get install nghttp2-client"
    clock = "from when a request was handed to be sent to the end of its answer; percentiles only of recent versions"
    can = frozenset({Feature.REQUESTS})

    def _cannot_besides(self, plan: LoadPlan) -> list[str]:
        return no_fewer_than_connections(self.title, plan)

    def arguments(self, plan: LoadPlan, folder: Path) -> list[str]:
        """A method is a header to it, as in HTTP/2."""
        request = plan.request
        # A duration would win over a number.
        options = ["-D", f"{plan.duration_s:g}"] if plan.requests is None else ["-n", f"{plan.requests}"]
        options += ["--h1", "-t", f"{self.threads(plan)}", "-c", f"{plan.load.connections}"]
        options += ["-H", f":method: {request.method}"]
        for name, value in request.headers:
            options += ["-H", f"{name}: {value}"]
        if request.body is not None:
            options += ["-d", body_file(plan, folder)]
        return [*options, request.target]

    def threads(self, plan: LoadPlan) -> int:
        """No more than it has connections."""
        return min(plan.threads, plan.load.connections)

    def read(self, printed: str, folder: Path) -> Claim:
        """From what it printed."""
        (claim,) = read_h2load(printed, self.title)
        return claim
