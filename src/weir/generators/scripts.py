"""Writes scripts for k6, JMeter and Locust, and builds their command lines. No script verifies certificates."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from string import Template
from typing import Any
from urllib.parse import urlsplit
from xml.sax.saxutils import escape

from weir.compat.reports.json_formats import K6_FAILURES
from weir.compat.reports.tables import read_locust_failures
from weir.generators.command_lines import format_milliseconds, write_body_file
from weir.generators.external_tool import get_rate
from weir.generators.installation import DATA
from weir.model.load import ClosedLoad, LoadPlan
from weir.model.reported_result import ReportedResult
from weir.stacks.toolchain import build_base_environment

START_MARKER = "weir: the load begins"
"""The text that the scripts of k6 and Locust print at the start of the load."""
K6_REPORT, JMETER_SAMPLES, LOCUST_STATS = "report.json", "samples.jtl", "report_stats.csv"
JAVA = "java>=11"
_LOCUST_FAILURES = "report_failures.csv"
_K6_STATISTICS = ("avg", "min", "med", "p(75)", "p(90)", "p(95)", "p(99)", "p(99.9)", "p(99.99)", "max")
_JMETER_NOT_SAVED = (
    "response_message",
    "data_type",
    "assertion_results_failure_message",
    "thread_counts",
    "url",
    "idle_time",
)
"""Columns of JMeter's samples that weir does not read. JMeter leaves them out, because writing costs time."""


def _fill_template(name: str, values: Mapping[str, str]) -> str:
    return Template((DATA / name).read_text()).substitute(values)


# --- k6


def build_k6_arguments(plan: LoadPlan, folder: Path) -> list[str]:
    """Writes k6's script and returns k6's arguments. The arguments disable k6's command server, because two k6 on one
    machine cannot use the same port. k6's response times exclude the run time of the script."""
    request = plan.request
    options = {
        "discardResponseBodies": True,
        "insecureSkipTLSVerify": True,
        "maxRedirects": 0,
        "noConnectionReuse": not plan.keep_alive,
        "summaryTrendStats": _K6_STATISTICS,
        "scenarios": {"load": {**_build_k6_executor(plan), "gracefulStop": "0s"}},
    }
    values = {
        "options": json.dumps(options, indent=2),
        "right": json.dumps(plan.expected_status or [{"min": 100, "max": 399}]),
        "method": json.dumps(request.method),
        "url": json.dumps(request.target),
        "body": "null" if request.body is None else f"open({json.dumps(write_body_file(plan, folder))}, 'b')",
        "parameters": json.dumps({"headers": dict(request.headers), "timeout": format_milliseconds(plan.timeout_s)}),
        "counter": json.dumps(K6_FAILURES),
        "begins": json.dumps(START_MARKER),
        "report": json.dumps(K6_REPORT),
    }
    (folder / "script.js").write_text(_fill_template("k6.js", values))
    return ["run", "--quiet", "--no-color", "--no-usage-report", "--address", "", "script.js"]


def _build_k6_executor(plan: LoadPlan) -> dict[str, Any]:
    users, duration, rate_rps = plan.load.connections, format_milliseconds(plan.duration_s), get_rate(plan)
    if rate_rps is not None:
        rate = {"rate": round(rate_rps), "timeUnit": "1s", "preAllocatedVUs": users, "maxVUs": users}
        return {"executor": "constant-arrival-rate", "duration": duration, **rate}
    if plan.requests is not None:
        count = {"iterations": plan.requests, "maxDuration": duration}
        return {"executor": "shared-iterations", "vus": users, **count}
    return {"executor": "constant-vus", "vus": users, "duration": duration}


# --- JMeter


def build_jmeter_arguments(plan: LoadPlan, folder: Path) -> list[str]:
    """Writes JMeter's test plan and returns JMeter's arguments. The arguments disable the command port, because two
    JMeters on one machine cannot use the same port."""
    request, load, url = plan.request, plan.load, urlsplit(plan.request.target)
    assert isinstance(load, ClosedLoad)
    headers = [_element("", "Header", {"Header.name": name, "Header.value": value}) for name, value in request.headers]
    values = {
        "users": f"{load.connections}",
        "duration_s": f"{plan.duration_s:.0f}",
        "loops": f"{load.requests_per_user or (-1 if plan.requests is None else plan.requests // load.connections)}",
        "headers": "".join(headers),
        "scheme": url.scheme,
        "host": escape(url.hostname or ""),
        "port": f"{url.port or ''}",
        "path": escape(url._replace(scheme="", netloc="").geturl()),
        "method": escape(request.method),
        "timeout_ms": f"{round(plan.timeout_s * 1000)}",
        "keep_alive": "true" if plan.keep_alive else "false",
        "files": "" if request.body is None else _raw_body(folder / write_body_file(plan, folder)),
    }
    (folder / "plan.jmx").write_text(_fill_template("plan.jmx", values), encoding="utf-8")
    properties = {"jmeterengine.nongui.port": "0", "jmeter.save.saveservice.output_format": "csv"}
    properties |= {f"jmeter.save.saveservice.{column}": "false" for column in _JMETER_NOT_SAVED}
    settings = [f"-J{key}={value}" for key, value in properties.items()]
    return ["-n", "-t", "plan.jmx", "-l", JMETER_SAMPLES, "-j", "jmeter.log", *settings]


def _raw_body(path: Path) -> str:
    """Returns the XML of a request's body. JMeter sends a single file without a parameter name as the raw body."""
    file = _element(str(path), "HTTPFileArg", {"File.path": str(path), "File.paramname": "", "File.mimetype": ""})
    files = f'<collectionProp name="HTTPFileArgs.files">{file}</collectionProp>'
    return f'<elementProp name="HTTPsampler.Files" elementType="HTTPFileArgs">{files}</elementProp>'


def _element(name: str, kind: str, properties: Mapping[str, str]) -> str:
    inner = "".join(f'<stringProp name="{key}">{escape(value)}</stringProp>' for key, value in properties.items())
    return f'<elementProp name="{escape(name)}" elementType="{kind}">{inner}</elementProp>'


def build_jmeter_variables(_: LoadPlan | None = None) -> dict[str, str]:
    """Returns environment variables for JMeter, with a JDK that JMeter supports."""
    java = build_base_environment([JAVA])
    return {name: java[name] for name in ("PATH", "JAVA_HOME") if name in java}


# --- Locust


def build_locust_arguments(plan: LoadPlan, folder: Path) -> list[str]:
    """Writes a locustfile with Locust's faster client (FastHttpUser), and returns Locust's arguments. All users start
    within the first second. A response with a status of 400 or more is a failure."""
    request, users, url = plan.request, f"{plan.load.connections}", urlsplit(plan.request.target)
    # Locust's pool keeps a connection open unless the request has "close".
    closing = {} if plan.keep_alive else {"Connection": "close"}
    values = {
        "stats": repr(LOCUST_STATS),
        "failures": repr(_LOCUST_FAILURES),
        "begins": repr(START_MARKER),
        "duration_s": repr(plan.duration_s),
        "timeout_s": repr(plan.timeout_s),
        "method": repr(request.method),
        "url": repr(url._replace(scheme="", netloc="").geturl() or "/"),
        "headers": repr(dict(request.headers) | closing),
        "body": "None" if request.body is None else f"Path({write_body_file(plan, folder)!r}).read_bytes()",
    }
    (folder / "locustfile.py").write_text(_fill_template("locustfile.txt", values))
    options = ["--headless", "--only-summary", "--exit-code-on-error", "0", "--host", f"{url.scheme}://{url.netloc}"]
    return ["-f", "locustfile.py", "-u", users, "-r", users, *options]


def add_locust_failures(result: ReportedResult, folder: Path) -> ReportedResult:
    """Adds the number of failures of each kind to the result, from a separate table of Locust."""
    return replace(result, errors=read_locust_failures((folder / _LOCUST_FAILURES).read_text()))
