"""The generator limit: weir's throughput on its own null server. No stack measured with weir can show more."""

import json
import subprocess

from bench.engine import engine_load
from bench.result import Found, Table
from bench.rounds import alternate
from bench.setting import Setting
from bench.spread import Spread
from weir.model.load import ClosedLoad, LoadPlan, Request
from weir.paths import find_engine_binary

CONNECTIONS = 64
NAME = "weir on `weir-engine serve null`"


def measure_ceiling(setting: Setting) -> Found:
    """Runs closed loads on one null server."""
    notes: list[str] = []
    # The server always ends with this process, because its standard input is a pipe from here.
    with subprocess.Popen(
        [
            "taskset",
            "--cpu-list",
            str(setting.cpus.server),
            find_engine_binary(),
            "serve",
            "null",
            "--listen",
            "127.0.0.1:0",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            assert server.stdout is not None
            url = f"http://{json.loads(server.stdout.readline())['address']}/"
            plan = LoadPlan(Request("GET", url), ClosedLoad(CONNECTIONS), setting.seconds)

            def load() -> float:
                throughput_rps: float = engine_load(plan, setting.cpus.load, setting.folder).summary["throughput_rps"]
                return throughput_rps

            measured = alternate({NAME: load}, setting.rounds, [NAME], notes, "generator limit", setting.taken)
        finally:
            server.terminate()
    return Found(
        f"Generator limit: closed loop, {CONNECTIONS} connections, the null server",
        Table(["", "requests/s"], [[NAME, Spread.of(measured[NAME]).text()]]),
        notes=notes,
        measured={name: [{"throughput_rps": value} for value in values] for name, values in measured.items()},
    )
