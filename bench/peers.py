"""The other generators in a closed loop: their command lines, and the parsers of their reports.

Every generator gets one CPU and, if it has such an option, one thread. Requests are as short as possible, because long
headers cost the server CPU. A missing generator, or one that cannot do a job, is left out with a line. `paced` has
fixed rates.
"""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from bench.machine import SEARCH_PATH, BenchError, built

Kind = Literal["GET", "POST", "close", "tls"]
"""GET, a POST of 400 bytes of JSON and GET over TLS keep their connections; "close" is GET with a connection per
request."""

BODY = b'{"text": "' + b"x" * 388 + b'"}'
assert len(BODY) == 400
FROM_REGISTRIES = "scripts/bench-peers"
LOCUST_LEAST_S = 3


@dataclass(frozen=True, slots=True)
class Job:
    """A kind of request and a number of connections, the same for every generator."""

    kind: Kind
    connections: int

    @property
    def label(self) -> str:
        """The job's name in the tables."""
        what = {"GET": "GET", "POST": "POST of 400 bytes", "close": "GET, `Connection: close`", "tls": "GET over TLS"}[
            self.kind
        ]
        return f"{what}, {self.connections:,} connections"


@dataclass(frozen=True, slots=True)
class Said:
    """A generator's report of one load."""

    throughput_rps: float
    completed: int | None = None


@dataclass(frozen=True, slots=True)
class Peer:
    """One generator. `command` writes files into its folder and returns arguments, or None if the generator cannot do
    the job or does not take part in it."""

    name: str
    origin: str
    """The Debian package, or the script that installs the program."""
    command: Callable[[Job, str, int, Path], list[str] | None]
    parse: Callable[[str], Said]
    version: tuple[str, ...] = ()
    """Arguments with which the program prints its version."""

    @property
    def binary(self) -> str | None:
        """The program's path; None if the program is not installed."""
        return shutil.which(self.name, path=SEARCH_PATH)

    @property
    def missing(self) -> str:
        """The note for a generator that is not installed."""
        return f"{self.name} is not installed ({self.origin})"


class Bare(Peer):
    """The program `bench/clients` with one of its bare loops."""

    __slots__ = ()

    @property
    def binary(self) -> str | None:
        try:
            return str(built("weir-bench-clients"))
        except BenchError:
            return None


def _body_file(folder: Path) -> str:
    path = folder / "body.json"
    path.write_bytes(BODY)
    return str(path)


def _wrk(job: Job, url: str, duration_s: int, folder: Path) -> list[str]:
    options = ["-t1", f"-c{job.connections}", f"-d{duration_s}s"]
    if job.kind == "POST":
        script = folder / "post.lua"
        script.write_text(
            f"wrk.method = 'POST'\nwrk.body = [==[{BODY.decode()}]==]\nwrk.headers['Content-Type'] = 'application/json'\n"
        )
        options += ["-s", str(script)]
    if job.kind == "close":
        options += ["-H", "Connection: close"]
    return [*options, url]


def _wrk_said(output: str) -> Said:
    completed = re.search(r"^\s*(\d+) requests in ", output, re.MULTILINE)
    # wrk counts a response after more than two seconds as a timeout, but also as a completed request.
    errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+)", output)
    if completed is None or "Non-2xx" in output or (errors and errors.groups() != ("0", "0", "0")):
        raise BenchError(f"wrk printed errors or no count: {output.strip()}")
    return Said(_number(r"^Requests/sec:\s*([\d.]+)", output), int(completed.group(1)))


def _ab(job: Job, url: str, duration_s: int, folder: Path) -> list[str] | None:
    # -t sets -n to 50,000, so -n comes after -t. ab takes memory for each request of -n, so -n is only as high as
    # needed.
    options = ["-q", "-t", str(duration_s), "-n", str(1_000_000 * duration_s), "-c", str(job.connections)]
    if job.kind == "tls":
        return None
    if job.kind == "POST":
        options += ["-p", _body_file(folder), "-T", "application/json"]
    if job.kind != "close":
        options.append("-k")
    return [*options, url]


def _ab_said(output: str) -> Said:
    if _number(r"^Failed requests:\s*(\d+)", output) or "Non-2xx" in output:
        raise BenchError(f"ab had failures: {output.strip()[-500:]}")
    return Said(
        _number(r"^Requests per second:\s*([\d.]+)", output), int(_number(r"^Complete requests:\s*(\d+)", output))
    )


def _hey(job: Job, url: str, duration_s: int, folder: Path) -> list[str] | None:
    if job.kind not in ("GET", "POST"):
        return None
    options = ["-z", f"{duration_s}s", "-c", str(job.connections), "-cpus", "1", "-disable-compression"]
    if job.kind == "POST":
        options += ["-m", "POST", "-D", _body_file(folder), "-T", "application/json"]
    return [*options, url]


def _hey_said(output: str) -> Said:
    # hey keeps at most a million results, but its rate counts all of them.
    return Said(_number(r"^\s*Requests/sec:\s*([\d.]+)", output))


def _h2load(job: Job, url: str, duration_s: int, folder: Path) -> list[str] | None:
    if job.kind not in ("GET", "POST"):
        return None
    options = ["--h1", "-t", "1", "-D", str(duration_s), "-c", str(job.connections)]
    if job.kind == "POST":
        options += ["-d", _body_file(folder), "-H", "Content-Type: application/json"]
    return [*options, url]


def _h2load_said(output: str) -> Said:
    return Said(_number(r"^finished in .*, ([\d.]+) req/s", output), int(_number(r"(\d+) succeeded", output)))


def _oha(job: Job, url: str, duration_s: int, folder: Path) -> list[str] | None:
    if job.kind not in ("GET", "POST"):
        return None
    options = ["-z", f"{duration_s}s", "-c", str(job.connections), "--no-tui", "--output-format", "json"]
    if job.kind == "POST":
        options += ["-m", "POST", "-D", _body_file(folder), "-T", "application/json"]
    return [*options, url]


def _oha_said(output: str) -> Said:
    return Said(float(json.loads(output)["summary"]["requestsPerSec"]))


def _k6(job: Job, url: str, duration_s: int, folder: Path) -> list[str] | None:
    if job.kind not in ("GET", "POST"):
        return None
    script = folder / "script.js"
    call = f"http.get('{url}')"
    if job.kind == "POST":
        call = f"http.post('{url}', '{BODY.decode()}', {{headers: {{'Content-Type': 'application/json'}}}})"
    script.write_text(
        "import http from 'k6/http';\nexport const options = {discardResponseBodies: true};\n"
        f"export default function () {{ {call}; }}\n"
        "export function handleSummary(data) { return {stdout: JSON.stringify(data.metrics.http_reqs.values)}; }\n"
    )
    return [
        "run",
        "--quiet",
        "--no-usage-report",
        "--vus",
        str(job.connections),
        "--duration",
        f"{duration_s}s",
        str(script),
    ]


def _k6_said(output: str) -> Said:
    values = json.loads(output.strip().splitlines()[-1])
    return Said(float(values["rate"]), int(values["count"]))


def _locust(job: Job, url: str, duration_s: int, folder: Path) -> list[str] | None:
    if job.kind not in ("GET", "POST"):
        return None
    script = folder / "locustfile.py"
    call = "get('/')"
    if job.kind == "POST":
        call = f"post('/', data={BODY!r}, headers={{'Content-Type': 'application/json'}})"
    script.write_text(
        f"from locust import FastHttpUser, task\n\n\nclass User(FastHttpUser):\n    @task\n    def ask(self):\n        self.client.{call}\n"
    )
    users = str(job.connections)
    # Locust starts its users within the load's time.
    duration_s = max(duration_s, LOCUST_LEAST_S)
    options = ["--headless", "--json", "--skip-log", "--loglevel", "ERROR", "--stop-timeout", "0"]
    return ["-f", str(script), *options, "-u", users, "-r", users, "-t", f"{duration_s}s", "--host", url.rstrip("/")]


def _locust_said(output: str) -> Said:
    (entry,) = json.loads(output)
    if entry["num_failures"]:
        raise BenchError(f"locust had {entry['num_failures']} failures")
    completed = int(entry["num_requests"])
    # Locust's own rate is that of the last ten seconds, but a load may be much shorter.
    return Said(completed / (entry["last_request_timestamp"] - entry["start_time"]), completed)


def _request_file(job: Job, url: str, folder: Path) -> str:
    """Writes the request's bytes to a file, for generators that send raw bytes; returns the path."""
    target = urlsplit(url)
    head = f"{job.kind} {target.path} HTTP/1.1\r\nHost: {target.netloc}\r\n"
    body = b""
    if job.kind == "POST":
        head += f"Content-Type: application/json\r\nContent-Length: {len(BODY)}\r\n"
        body = BODY
    path = folder / "request"
    path.write_bytes(head.encode() + b"\r\n" + body)
    return str(path)


def _gcannon(job: Job, url: str, duration_s: int, folder: Path) -> list[str] | None:
    if job.kind not in ("GET", "POST"):
        return None
    return [
        url,
        "-c",
        str(job.connections),
        "-t",
        "1",
        "-d",
        str(duration_s),
        "--raw",
        _request_file(job, url, folder),
        "--json",
    ]


def _gcannon_said(output: str) -> Said:
    counted = json.loads(output)
    if any(counted["errors"].values()) or counted["status"]["2xx"] != counted["responses"]:
        raise BenchError(f"gcannon had failures: {output.strip()[-500:]}")
    # gcannon does not count the first 0.1 s, although it sends requests then.
    return Said(float(counted["rps"]))


def _bare(back_end: str) -> Callable[[Job, str, int, Path], list[str] | None]:
    def command(job: Job, url: str, duration_s: int, folder: Path) -> list[str] | None:
        if job.kind not in ("GET", "POST"):
            return None
        request_file = _request_file(job, url, folder)
        return ["bare", back_end, urlsplit(url).netloc, request_file, str(job.connections), str(duration_s)]

    return command


def _bare_said(output: str) -> Said:
    counted = json.loads(output)
    return Said(float(counted["throughput_rps"]), int(counted["completed"]))


def _number(pattern: str, output: str) -> float:
    match = re.search(pattern, output, re.MULTILINE)
    if match is None:
        raise BenchError(f"no {pattern!r} in the output: {output.strip()[-500:]}")
    return float(match.group(1))


WRK = Peer("wrk", "Debian: wrk", _wrk, _wrk_said, ("-v",))
AB = Peer("ab", "Debian: apache2-utils", _ab, _ab_said, ("-V",))
GCANNON = Peer("gcannon", "taken from the PATH", _gcannon, _gcannon_said)
OTHERS = (
    AB,
    GCANNON,
    Peer("hey", "Debian: hey", _hey, _hey_said),
    Peer("h2load", "Debian: nghttp2-client", _h2load, _h2load_said, ("--version",)),
    Peer("oha", FROM_REGISTRIES, _oha, _oha_said, ("--version",)),
    Peer("k6", FROM_REGISTRIES, _k6, _k6_said, ("version",)),
    Peer("locust", FROM_REGISTRIES, _locust, _locust_said, ("--version",)),
)
BARE = (
    Bare("bare epoll loop", "cargo build --release --package weir-bench-clients", _bare("epoll"), _bare_said),
    Bare("bare io_uring loop", "cargo build --release --package weir-bench-clients", _bare("io_uring"), _bare_said),
)
