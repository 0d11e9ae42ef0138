"""The other generators at a fixed rate: their command lines, and the parsers of their reports.

wrk2, zrk and oha (with `--latency-correction`) count from the time when a request was due, k6 from the time when it was
sent.
"""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.machine import SEARCH_PATH, BenchError
from bench.peers import FROM_REGISTRIES

QUANTILES = ("p50", "p90", "p99", "p99_9", "max")
# wrk2 calibrates itself for ten seconds before it begins to count.
CALIBRATION_S = 10


@dataclass(frozen=True, slots=True)
class Paced:
    """A generator's report of a load at a fixed rate."""

    achieved_rps: float
    response_time_us: dict[str, float]
    """Response times in microseconds, by quantile."""


@dataclass(frozen=True, slots=True)
class PacedPeer:
    """A generator that can hold a rate. `command(rate, connections, url, seconds, folder)` returns its arguments."""

    name: str
    origin: str
    command: Callable[[int, int, str, int, Path], list[str]]
    parse: Callable[[str], Paced]
    calibration_s: int = 0
    """Seconds that the generator needs in addition to the load."""

    @property
    def binary(self) -> str | None:
        """The program's path; None if the program is not installed."""
        return shutil.which(self.name, path=SEARCH_PATH)


def _wrk2(rate_rps: int, connections: int, url: str, duration_s: int, folder: Path) -> list[str]:
    return ["-t1", f"-c{connections}", f"-d{duration_s + CALIBRATION_S}s", f"-R{rate_rps}", "--latency", url]


def _wrk2_said(output: str) -> Paced:
    unit_us = {"us": 1.0, "ms": 1e3, "s": 1e6, "m": 60e6}
    times = {
        float(percent): float(number) * unit_us[unit]
        for percent, number, unit in re.findall(r"^\s*([\d.]+)%\s+([\d.]+)(us|ms|s|m)\s*$", output, re.MULTILINE)
    }
    achieved = re.search(r"^Requests/sec:\s*([\d.]+)", output, re.MULTILINE)
    if achieved is None:
        raise BenchError(f"no rate in the output: {output.strip()[-300:]}")
    percents = dict(zip(QUANTILES, (50.0, 90.0, 99.0, 99.9, 100.0), strict=True))
    return Paced(float(achieved.group(1)), {name: times[percent] for name, percent in percents.items()})


def _oha(rate_rps: int, connections: int, url: str, duration_s: int, folder: Path) -> list[str]:
    options = ["-z", f"{duration_s}s", "-c", str(connections), "-q", str(rate_rps), "--latency-correction"]
    return [*options, "--no-tui", "--output-format", "json", url]


def _oha_said(output: str) -> Paced:
    value = json.loads(output)
    times = {name: value["latencyPercentiles"][name.replace("_", ".")] * 1e6 for name in QUANTILES if name != "max"}
    return Paced(float(value["summary"]["requestsPerSec"]), times | {"max": value["summary"]["slowest"] * 1e6})


def _k6(rate_rps: int, connections: int, url: str, duration_s: int, folder: Path) -> list[str]:
    script = folder / "paced.js"
    scenario = {
        "executor": "constant-arrival-rate",
        "rate": rate_rps,
        "timeUnit": "1s",
        "duration": f"{duration_s}s",
        "preAllocatedVUs": connections,
        "maxVUs": connections,
    }
    options = {
        "discardResponseBodies": True,
        "scenarios": {"paced": scenario},
        "summaryTrendStats": ["p(50)", "p(90)", "p(99)", "p(99.9)", "max"],
    }
    script.write_text(
        f"import http from 'k6/http';\nexport const options = {json.dumps(options)};\n"
        f"export default function () {{ http.get('{url}'); }}\n"
        "export function handleSummary(data) {\n"
        "  const metrics = data.metrics;\n"
        "  return {stdout: JSON.stringify({rate: metrics.http_reqs.values.rate, times_ms: metrics.http_req_duration.values})};\n}\n"
    )
    return ["run", "--quiet", "--no-usage-report", "--log-output", "none", str(script)]


def _k6_said(output: str) -> Paced:
    value = json.loads(output.strip().splitlines()[-1])
    names = dict(zip(QUANTILES, ("p(50)", "p(90)", "p(99)", "p(99.9)", "max"), strict=True))
    return Paced(float(value["rate"]), {name: value["times_ms"][theirs] * 1e3 for name, theirs in names.items()})


PACED_PEERS = (
    PacedPeer("wrk2", "taken from the PATH", _wrk2, _wrk2_said, CALIBRATION_S),
    # zrk is a rewrite of wrk2 with the same options and output.
    PacedPeer("zrk", "taken from the PATH", _wrk2, _wrk2_said, CALIBRATION_S),
    PacedPeer("oha", FROM_REGISTRIES, _oha, _oha_said),
    PacedPeer("k6", FROM_REGISTRIES, _k6, _k6_said),
)
