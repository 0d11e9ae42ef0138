"""k6: a closed loop of virtual users, and arrivals at a rate, by a script that weir writes."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weir.compat.reports.json_reports import K6_FAILURES, read_k6
from weir.generators.feature import Feature
from weir.generators.tool import Tool, body_file, milliseconds, no_fewer_than_connections, rate_of, template, whole_rate
from weir.model.claim import Claim
from weir.model.load import LoadPlan, OpenLoad

_REPORT = "report.json"
_SCRIPT = "script.js"
_STATISTICS = ("avg", "min", "med", "p(75)", "p(90)", "p(95)", "p(99)", "p(99.9)", "p(99.99)", "max")


class K6(Tool):
    """k6. Its users run JavaScript between an answer and the next request, which is in none of its response times."""

    name = "k6"
    title = "k6"
    origin = "go install go.k6.io/k6@latest"
    clock = "http_req_duration: from the first write of a request to the end of its answer, without connecting or waiting before that"
    can = frozenset({Feature.NEW_CONNECTIONS, Feature.REQUESTS, Feature.RATE})
    ask_version = ("version",)
    begins = "weir: the load begins"
    start_up_s = 30.0

    def _cannot_besides(self, plan: LoadPlan) -> list[str]:
        counted = isinstance(plan.load, OpenLoad) and plan.requests is not None
        both = [f"{self.title} cannot end after a number of requests at a rate."] if counted else []
        return whole_rate(self.title, plan.load) + no_fewer_than_connections(self.title, plan) + both

    def arguments(self, plan: LoadPlan, folder: Path) -> list[str]:
        """Without its server for commands, whose port two of it would share."""
        (folder / _SCRIPT).write_text(_script(plan, folder))
        return ["run", "--quiet", "--no-color", "--no-usage-report", "--address", "", _SCRIPT]

    def environment(self, plan: LoadPlan) -> Mapping[str, str]:
        """Go takes as many threads as it is told."""
        return {**super().environment(plan), "GOMAXPROCS": f"{plan.threads}"}

    def read(self, printed: str, folder: Path) -> Claim:
        """From the summary that the script has it write."""
        (claim,) = read_k6((folder / _REPORT).read_text(), self.title)
        return claim


def _script(plan: LoadPlan, folder: Path) -> str:
    request = plan.request
    options: dict[str, Any] = {
        "discardResponseBodies": True,
        "insecureSkipTLSVerify": True,
        "maxRedirects": 0,
        "noConnectionReuse": not plan.keep_alive,
        "summaryTrendStats": _STATISTICS,
        "scenarios": {"load": {**_executor(plan), "gracefulStop": "0s"}},
    }
    values = {
        "options": json.dumps(options, indent=2),
        "right": json.dumps(plan.expected_status or [{"min": 100, "max": 399}]),
        "method": json.dumps(request.method),
        "url": json.dumps(request.target),
        "body": "null" if request.body is None else f"open({json.dumps(body_file(plan, folder))}, 'b')",
        "parameters": json.dumps({"headers": dict(request.headers), "timeout": milliseconds(plan.timeout_s)}),
        "counter": json.dumps(K6_FAILURES),
        "begins": json.dumps(K6.begins),
        "report": json.dumps(_REPORT),
    }
    return template("k6.js").substitute(values)


def _executor(plan: LoadPlan) -> dict[str, Any]:
    load, duration = plan.load, milliseconds(plan.duration_s)
    if isinstance(load, OpenLoad):
        users = {"preAllocatedVUs": load.connections, "maxVUs": load.connections}
        return {"executor": "constant-arrival-rate", "rate": round(rate_of(load)), "timeUnit": "1s", "duration": duration, **users}
    if plan.requests is not None:
        return {"executor": "shared-iterations", "vus": load.connections, "iterations": plan.requests, "maxDuration": duration}
    return {"executor": "constant-vus", "vus": load.connections, "duration": duration}
