"""The engine against its own null server: the most this machine lets it do, and the most that any stack measured with it could show."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bench.engine import engine_load
from bench.machine import Placement
from bench.spread import Spread
from weir.model.load import ClosedLoad
from weir.places import engine_binary

CONNECTIONS = 64


@dataclass(frozen=True, slots=True)
class Ceiling:
    """Throughput of each round."""

    throughput_rps: list[float]

    def table(self) -> list[str]:
        """The result in Markdown."""
        return ["| | requests/s |", "|---|---:|", f"| weir on `weir-engine serve null` | {Spread.of(self.throughput_rps).text()} |"]


def measure_ceiling(cpus: Placement, rounds: int, duration_s: int, folder: Path) -> Ceiling:
    """`rounds` loads on one null server."""
    # Its standard input is our pipe: the server ends with this process, whatever happens to it.
    with subprocess.Popen(
        ["taskset", "--cpu-list", str(cpus.server), engine_binary(), "serve", "null", "--listen", "127.0.0.1:0"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            assert server.stdout is not None
            url = f"http://{json.loads(server.stdout.readline())['address']}/"
            loads = [engine_load(cpus.load, url, ClosedLoad(CONNECTIONS), duration_s, folder) for _ in range(rounds)]
        finally:
            server.terminate()
    return Ceiling([load.summary["throughput_rps"] for load in loads])
