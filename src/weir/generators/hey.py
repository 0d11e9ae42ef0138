"""hey: a closed loop. Its rate, `-q`, drops what it is late for and holds for each worker apart, so that it makes no open one."""

from pathlib import Path

from weir.compat.reports.text_reports import read_hey
from weir.generators.feature import Feature
from weir.generators.tool import Tool, body_file, milliseconds, no_fewer_than_connections, not_whole_seconds
from weir.model.claim import Claim
from weir.model.load import LoadPlan


class Hey(Tool):
    """hey. It looks at no certificate, and sends headers of its own: User-Agent, and the Content-Type text/html unless told another."""

    name = "hey"
    title = "hey"
    origin = "apt-get install hey"
    clock = "from before a request is made, connecting included, to the end of its answer; of the first 1,000,000 answers"
    can = frozenset({Feature.NEW_CONNECTIONS, Feature.REQUESTS})
    ask_version = ()

    def _cannot_besides(self, plan: LoadPlan) -> list[str]:
        reasons = not_whole_seconds(self.title, timeout_s=plan.timeout_s)
        if plan.requests is not None and plan.requests % plan.load.connections:
            reasons.append(f"{self.title} has each of {plan.load.connections} workers send as many: it cannot send {plan.requests}.")
        return reasons + no_fewer_than_connections(self.title, plan)

    def arguments(self, plan: LoadPlan, folder: Path) -> list[str]:
        """It compresses nothing and follows no redirect, like weir's engine."""
        request = plan.request
        # A duration would win over a number.
        options = ["-z", milliseconds(plan.duration_s)] if plan.requests is None else ["-n", f"{plan.requests}"]
        options += ["-c", f"{plan.load.connections}", "-cpus", f"{plan.threads}", "-t", f"{plan.timeout_s:.0f}"]
        options += ["-m", request.method, "-disable-compression", "-disable-redirects"]
        options += [] if plan.keep_alive else ["-disable-keepalive"]
        for name, value in request.headers:
            # It takes the host from nowhere else.
            options += ["-host", value] if name.lower() == "host" else ["-H", f"{name}: {value}"]
        if request.body is not None:
            options += ["-D", body_file(plan, folder)]
        return [*options, request.target]

    def read(self, printed: str, folder: Path) -> Claim:
        """From what it printed."""
        (claim,) = read_hey(printed, self.title)
        return claim
