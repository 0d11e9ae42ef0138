"""Locust: a closed loop of Python users, by a locustfile that weir writes. It has one thread."""

from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from weir.compat.reports.csv_tables import read_locust, read_locust_failures
from weir.generators.feature import Feature
from weir.generators.installation import Installation
from weir.generators.tool import InstalledTool, body_file, template
from weir.model.claim import Claim
from weir.model.load import LoadPlan

_STATS, _FAILURES = "report_stats.csv", "report_failures.csv"
_SCRIPT = "locustfile.py"


class Locust(InstalledTool):
    """Locust, with its faster client. It looks at no certificate, and judges answers by their status: from 400 on they fail."""

    name = "locust"
    title = "Locust"
    clock = "from the call of its client (FastHttpUser), connecting included, to the end of the answer; percentiles to two digits"
    can = frozenset({Feature.NEW_CONNECTIONS})
    begins = "weir: the load begins"
    start_up_s = 60.0
    installation = Installation("locust", program="venv/bin/locust", needs=("uv",))

    def arguments(self, plan: LoadPlan, folder: Path) -> list[str]:
        """All users come within the first second."""
        request, users = plan.request, f"{plan.load.connections}"
        url = urlsplit(request.target)
        # Its pool keeps a connection that the server does not close, unless it is told of that.
        closing = {} if plan.keep_alive else {"Connection": "close"}
        values = {
            "stats": repr(_STATS),
            "failures": repr(_FAILURES),
            "begins": repr(self.begins),
            "duration_s": repr(plan.duration_s),
            "timeout_s": repr(plan.timeout_s),
            "method": repr(request.method),
            "url": repr(url._replace(scheme="", netloc="").geturl() or "/"),
            "headers": repr(dict(request.headers) | closing),
            "body": "None" if request.body is None else f"Path({body_file(plan, folder)!r}).read_bytes()",
        }
        (folder / _SCRIPT).write_text(template("locustfile.txt").substitute(values))
        options = ["--headless", "--only-summary", "--exit-code-on-error", "0", "--host", f"{url.scheme}://{url.netloc}"]
        return ["-f", _SCRIPT, "-u", users, "-r", users, *options]

    def threads(self, plan: LoadPlan) -> int:
        """It has one."""
        return 1

    def read(self, printed: str, folder: Path) -> Claim:
        """From the tables that the locustfile has it write."""
        (claim,) = read_locust((folder / _STATS).read_text(), self.title)
        return replace(claim, errors=read_locust_failures((folder / _FAILURES).read_text()))
