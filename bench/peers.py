"""The other generators: how each is told what to do, and where it says what it did.

Every one gets one CPU and, where it can be told, one thread. One that is not installed, or that cannot do a job, is left out with a line.
"""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bench.machine import SEARCH_PATH, BenchError

Kind = Literal["GET", "POST", "close"]
"""GET with keep-alive, a POST of 400 bytes of JSON with keep-alive, or GET on a connection for each request."""

BODY = b'{"text": "' + b"x" * 388 + b'"}'
assert len(BODY) == 400


@dataclass(frozen=True, slots=True)
class Job:
    """What every generator is asked to do."""

    kind: Kind
    connections: int

    @property
    def label(self) -> str:
        """How it is named in the tables."""
        what = {"GET": "GET", "POST": "POST of 400 bytes", "close": "GET, `Connection: close`"}[self.kind]
        return f"{what}, {self.connections:,} connections"


@dataclass(frozen=True, slots=True)
class Said:
    """What a generator says it did."""

    throughput_rps: float
    completed: int | None = None


@dataclass(frozen=True, slots=True)
class Peer:
    """One generator. `command` gives None for a job that it cannot do; files it needs go into the folder."""

    name: str
    package: str
    command: Callable[[Job, str, int, Path], list[str] | None]
    parse: Callable[[str], Said]

    @property
    def binary(self) -> str | None:
        """Its path, if it is installed."""
        return shutil.which(self.name, path=SEARCH_PATH)


def _body_file(folder: Path) -> str:
    path = folder / "body.json"
    path.write_bytes(BODY)
    return str(path)


def _wrk(job: Job, url: str, duration_s: int, folder: Path) -> list[str]:
    options = ["-t1", f"-c{job.connections}", f"-d{duration_s}s"]
    if job.kind == "POST":
        script = folder / "post.lua"
        script.write_text(f"wrk.method = 'POST'\nwrk.body = [==[{BODY.decode()}]==]\nwrk.headers['Content-Type'] = 'application/json'\n")
        options += ["-s", str(script)]
    if job.kind == "close":
        options += ["-H", "Connection: close"]
    return [*options, url]


def _wrk_said(output: str) -> Said:
    completed = re.search(r"^\s*(\d+) requests in ", output, re.MULTILINE)
    if completed is None or "Non-2xx" in output or "Socket errors" in output:
        raise BenchError(f"wrk did not measure what was asked: {output.strip()}")
    return Said(_number(r"^Requests/sec:\s*([\d.]+)", output), int(completed.group(1)))


def _ab(job: Job, url: str, duration_s: int, folder: Path) -> list[str] | None:
    # -n after -t, which sets it to 50,000; it takes memory for each, so no more than can be done.
    options = ["-q", "-t", str(duration_s), "-n", str(1_000_000 * duration_s), "-c", str(job.connections)]
    if job.kind == "POST":
        options += ["-p", _body_file(folder), "-T", "application/json"]
    if job.kind != "close":
        options.append("-k")
    return [*options, url]


def _ab_said(output: str) -> Said:
    return Said(_number(r"^Requests per second:\s*([\d.]+)", output), int(_number(r"^Complete requests:\s*(\d+)", output)))


def _hey(job: Job, url: str, duration_s: int, folder: Path) -> list[str]:
    options = ["-z", f"{duration_s}s", "-c", str(job.connections), "-cpus", "1"]
    if job.kind == "POST":
        options += ["-m", "POST", "-D", _body_file(folder), "-T", "application/json"]
    if job.kind == "close":
        options.append("-disable-keepalive")
    return [*options, url]


def _hey_said(output: str) -> Said:
    # It keeps at most a million results; its rate counts them all.
    return Said(_number(r"^\s*Requests/sec:\s*([\d.]+)", output))


def _h2load(job: Job, url: str, duration_s: int, folder: Path) -> list[str] | None:
    if job.kind == "close":
        return None
    options = ["--h1", "-t", "1", "-D", str(duration_s), "-c", str(job.connections)]
    if job.kind == "POST":
        options += ["-d", _body_file(folder), "-H", "Content-Type: application/json"]
    return [*options, url]


def _h2load_said(output: str) -> Said:
    return Said(_number(r"^finished in .*, ([\d.]+) req/s", output), int(_number(r"(\d+) succeeded", output)))


def _oha(job: Job, url: str, duration_s: int, folder: Path) -> list[str]:
    options = ["-z", f"{duration_s}s", "-c", str(job.connections), "--no-tui", "--output-format", "json"]
    if job.kind == "POST":
        options += ["-m", "POST", "-D", _body_file(folder), "-T", "application/json"]
    if job.kind == "close":
        options.append("--disable-keepalive")
    return [*options, url]


def _oha_said(output: str) -> Said:
    return Said(float(json.loads(output)["summary"]["requestsPerSec"]))


def _k6(job: Job, url: str, duration_s: int, folder: Path) -> list[str]:
    script = folder / "script.js"
    call = f"http.get('{url}')"
    if job.kind == "POST":
        call = f"http.post('{url}', '{BODY.decode()}', {{headers: {{'Content-Type': 'application/json'}}}})"
    script.write_text(
        f"import http from 'k6/http';\nexport const options = {{noConnectionReuse: {str(job.kind == 'close').lower()}}};\n"
        f"export default function () {{ {call}; }}\n"
        "export function handleSummary(data) { return {stdout: JSON.stringify(data.metrics.http_reqs.values)}; }\n"
    )
    return ["run", "--quiet", "--no-usage-report", "--vus", str(job.connections), "--duration", f"{duration_s}s", str(script)]


def _k6_said(output: str) -> Said:
    values = json.loads(output.strip().splitlines()[-1])
    return Said(float(values["rate"]), int(values["count"]))


def _number(pattern: str, output: str) -> float:
    match = re.search(pattern, output, re.MULTILINE)
    if match is None:
        raise BenchError(f"no {pattern!r} in what was printed: {output.strip()[-500:]}")
    return float(match.group(1))


WRK = Peer("wrk", "wrk", _wrk, _wrk_said)
OTHERS = (
    Peer("ab", "apache2-utils", _ab, _ab_said),
    Peer("hey", "hey", _hey, _hey_said),
    Peer("h2load", "nghttp2-client", _h2load, _h2load_said),
    Peer("oha", "oha, from its own releases", _oha, _oha_said),
    Peer("k6", "k6, from its own releases", _k6, _k6_said),
)
