"""Builds the command lines of tools whose options describe a load. Options disable compression, redirects and the
verification of certificates, because weir's engine has none of them."""

import csv
import io
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from weir.generators.external_tool import get_rate
from weir.model.load import LoadPlan
from weir.model.reported_result import Figure, ReportedResult

OHA_REPORT = "report.json"
_AB_PERCENTILES = "percentiles.csv"
_AB_MOST_RPS = 1_000_000
"""A rate that ab cannot reach. For a load with a duration, ab gets this rate × duration as the number of requests."""


def write_body_file(plan: LoadPlan, folder: Path) -> str:
    """Writes the request's body to a file in the tool's working directory, and returns the file's name."""
    assert plan.request.body is not None
    (folder / "body").write_bytes(plan.request.body)
    return "body"


def format_milliseconds(time_s: float) -> str:
    """Formats a time in whole milliseconds, such as `1500ms`, for tools in Go and Rust."""
    return f"{round(time_s * 1000)}ms"


def _header_options(headers: Iterable[tuple[str, str]]) -> list[str]:
    return [word for name, value in headers for word in ("-H", f"{name}: {value}")]


def _body_option(option: str, plan: LoadPlan, folder: Path) -> list[str]:
    return [] if plan.request.body is None else [option, write_body_file(plan, folder)]


def count_wrk_threads(plan: LoadPlan) -> int:
    """Returns the highest number of threads that divides the connections equally: wrk would drop the remainder."""
    return max(threads for threads in range(1, plan.threads + 1) if plan.load.connections % threads == 0)


def build_wrk_arguments(plan: LoadPlan, folder: Path) -> list[str]:
    """Returns the arguments of wrk and wrk2. Writes a Lua script for a body or a method other than GET."""
    request, rate_rps = plan.request, get_rate(plan)
    options = [] if rate_rps is None else [f"-R{rate_rps:.0f}"]
    options += [f"-t{count_wrk_threads(plan)}", f"-c{plan.load.connections}", f"-d{plan.duration_s:.0f}s"]
    options += ["--timeout", f"{plan.timeout_s:.0f}s", "--latency", *_header_options(request.headers)]
    options += [] if plan.keep_alive else ["-H", "Connection: close"]
    if request.method != "GET" or request.body is not None:
        # The JSON string of a method is also a Lua string, because a method has only plain ASCII characters.
        script = f"wrk.method = {json.dumps(request.method)}\n"
        if request.body is not None:
            name = write_body_file(plan, folder)
            script += f'local body = assert(io.open("{name}", "rb"))\nwrk.body = body:read("*a")\nbody:close()\n'
        (folder / "request.lua").write_text(script)
        options += ["-s", "request.lua"]
    return [*options, request.target]


def build_hey_arguments(plan: LoadPlan, folder: Path) -> list[str]:
    """Returns the arguments of hey. By default, hey adds a User-Agent and the Content-Type text/html to requests."""
    request = plan.request
    options = _length_options(plan)
    options += ["-c", f"{plan.load.connections}", "-cpus", f"{plan.threads}", "-t", f"{plan.timeout_s:.0f}"]
    options += ["-m", request.method, "-disable-compression", "-disable-redirects"]
    options += [] if plan.keep_alive else ["-disable-keepalive"]
    # hey takes the Host header only from -host.
    hosts = [value for name, value in request.headers if name.lower() == "host"]
    options += [word for host in hosts for word in ("-host", host)]
    options += _header_options(header for header in request.headers if header[0].lower() != "host")
    return [*options, *_body_option("-D", plan, folder), request.target]


def build_oha_arguments(plan: LoadPlan, folder: Path) -> list[str]:
    """Returns the arguments of oha."""
    request, rate_rps = plan.request, get_rate(plan)
    options = _length_options(plan)
    options += [] if rate_rps is None else ["-q", f"{rate_rps:g}", "--latency-correction"]
    options += ["-c", f"{plan.load.connections}", "-t", format_milliseconds(plan.timeout_s), "-m", request.method]
    options += ["--disable-compression", "--redirect", "0"]
    options += ["--no-tui", "--output-format", "json", "--output", OHA_REPORT, "--worker-threads", f"{plan.threads}"]
    options += [] if plan.keep_alive else ["--disable-keepalive"]
    options += ["--insecure"] if request.target.startswith("https:") else []
    return [*options, *_header_options(request.headers), *_body_option("-D", plan, folder), request.target]


def _length_options(plan: LoadPlan) -> list[str]:
    """Returns the option for the number of requests or for the duration. Given both, hey and oha ignore the number."""
    return ["-z", format_milliseconds(plan.duration_s)] if plan.requests is None else ["-n", f"{plan.requests}"]


def build_h2load_arguments(plan: LoadPlan, folder: Path) -> list[str]:
    """Returns the arguments of h2load for HTTP/1.1. The header `:method` sets the method. h2load has no timeout."""
    request = plan.request
    # h2load prefers a duration to a number of requests.
    options = ["-D", f"{plan.duration_s:g}"] if plan.requests is None else ["-n", f"{plan.requests}"]
    options += ["--h1", "-t", f"{count_h2load_threads(plan)}", "-c", f"{plan.load.connections}"]
    options += _header_options([(":method", request.method), *request.headers])
    return [*options, *_body_option("-d", plan, folder), request.target]


def count_h2load_threads(plan: LoadPlan) -> int:
    """Returns the number of h2load's threads: at most the number of connections."""
    return min(plan.threads, plan.load.connections)


def build_ab_arguments(plan: LoadPlan, folder: Path) -> list[str]:
    """Returns the arguments of ab. With -r and -l, ab continues after failed connections, and accepts any length."""
    request = plan.request
    # -n must follow -t, because -t resets the number to 50,000.
    number = plan.requests or round(_AB_MOST_RPS * plan.duration_s)
    options = ["-q", "-r", "-l", "-t", f"{plan.duration_s:.0f}", "-n", f"{number}"]
    options += ["-c", f"{plan.load.connections}", "-s", f"{plan.timeout_s:.0f}", "-e", _AB_PERCENTILES]
    options += ["-k"] if plan.keep_alive else []
    headers = list(request.headers)
    if request.body is not None:
        options += _body_option("-u" if request.method == "PUT" else "-p", plan, folder)
        # ab adds its own Content-Type to a body unless -T sets one.
        types = [value for name, value in headers if name.lower() == "content-type"]
        headers = [(name, value) for name, value in headers if name.lower() != "content-type"]
        options += ["-T", *types[:1]] if types else []
    if request.method not in ("GET", "POST", "PUT") or (request.body is None and request.method != "GET"):
        options += ["-i"] if request.method == "HEAD" else ["-m", request.method]
    return [*options, *_header_options(headers), request.target]


def add_ab_percentiles(result: ReportedResult, folder: Path) -> ReportedResult:
    """Adds percentiles in microseconds from ab's file to the result. ab prints only whole milliseconds."""
    if not result.requests:
        return result
    rows = csv.DictReader(io.StringIO((folder / _AB_PERCENTILES).read_text()))
    steps = {int(row["Percentage served"]) / 100: Figure.printed(row["Time in ms"], 1e-3) for row in rows}
    return replace(result, min_s=steps.pop(0.0), quantiles_s=steps)
