"""Response times at a fixed rate: how much of what weir reports is weir's own?

An open loop of 10,000 requests a second over 50 connections on nginx, alternating with a client that has one connection and does
nothing but spin (`bench/floor`), at the same rate. Both count from the moment a request was due.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from bench.engine import engine_load
from bench.machine import BenchError, Placement, run_on
from bench.nginx import Nginx
from bench.spread import Spread
from weir.model.load import OpenLoad

RATE_RPS = 10_000
CONNECTIONS = 50
BAR_RATIO = 2.0
QUANTILES = ("p50", "p90", "p99", "p99_9", "max")
FLOOR_BINARY = Path(__file__).resolve().parent.parent / "target" / "release" / "weir-bench-floor"


@dataclass(frozen=True, slots=True)
class Latency:
    """Response times in µs by quantile, a dictionary a round."""

    weir: list[dict[str, float]]
    floor: list[dict[str, float]]

    @property
    def ratio(self) -> Spread:
        """weir's median divided by the floor's, round by round."""
        return Spread.of([ours["p50"] / theirs["p50"] for ours, theirs in zip(self.weir, self.floor, strict=True)])

    def table(self) -> list[str]:
        """The result in Markdown."""
        lines = [
            "| response time, µs | " + " | ".join(name.replace("_", ".") for name in QUANTILES) + " |",
            "|---|" + "---:|" * len(QUANTILES),
        ]
        for name, rounds in ((f"weir, {CONNECTIONS} connections", self.weir), ("floor, 1 connection", self.floor)):
            lines.append(
                f"| {name} | " + " | ".join(Spread.of([times[quantile] for times in rounds]).text() for quantile in QUANTILES) + " |"
            )
        return lines

    def bars(self) -> list[tuple[str, str, bool]]:
        """What is asked of it, what was found, and whether that is enough."""
        return [(f"weir's p50 at most {BAR_RATIO:g} times the floor's", self.ratio.text(2), self.ratio.median <= BAR_RATIO)]


def measure_latency(nginx: Nginx, cpus: Placement, rounds: int, duration_s: int, folder: Path) -> Latency:
    """`rounds` rounds of each, the first of each round alternating."""
    if not FLOOR_BINARY.exists():
        raise BenchError("the floor client is not built: cargo build --release --package weir-bench-floor")

    def weir() -> dict[str, float]:
        load = engine_load(cpus.load, nginx.url, OpenLoad(RATE_RPS, CONNECTIONS), duration_s, folder)
        times = load.summary["response_time_us"]
        return {quantile: times[quantile] for quantile in QUANTILES}

    def floor() -> dict[str, float]:
        process = run_on(cpus.load, [FLOOR_BINARY, nginx.address, "/", str(RATE_RPS), str(duration_s)], folder)
        times = json.loads(process.output)["response_time_us"]
        return {quantile: times[quantile] for quantile in QUANTILES}

    result = Latency([], [])
    for index in range(rounds):
        for name in ("weir", "floor") if index % 2 == 0 else ("floor", "weir"):
            if name == "weir":
                result.weir.append(weir())
            else:
                result.floor.append(floor())
    return result
