"""The cost of a front end: throughput of `weir wrk` compared with `weir load`, and the time until a load begins."""

import json
import re
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

from bench.machine import WEIR, BenchError
from bench.result import Bar, Found, Table
from bench.rounds import alternate
from bench.setting import Setting
from bench.spread import Spread

CONNECTIONS = 64
BAR_THROUGHPUT, BAR_START_S = 0.98, 0.25
NATIVE, FRONT_END = "weir load", "weir wrk"
REQUESTS = re.compile(r"^Requests/sec: +([\d.]+)$", re.MULTILINE)


def measure_front_ends(setting: Setting) -> Found:
    """Measures a closed load with each command, and the time from the start of `weir wrk` to its heading."""
    notes: list[str] = []
    print(f"{NATIVE}, {FRONT_END} …", file=sys.stderr)
    arms = {NATIVE: partial(_native, setting), FRONT_END: partial(_front_end, setting)}
    rounds = alternate(arms, setting.rounds, arms, notes, f"{CONNECTIONS} connections", setting.taken)
    ratio = Spread.of([wrk / load for wrk, load in zip(rounds[FRONT_END], rounds[NATIVE], strict=True)])
    starts = Spread.of([_start_s(setting) for _ in range(setting.rounds)])
    rows = [[name, "requests/s", Spread.of(values).text(0)] for name, values in rounds.items()]
    return Found(
        f"Front ends: {CONNECTIONS} connections on nginx `return 200`",
        Table(["", "", "median and range"], [*rows, [FRONT_END, "s to the heading", starts.text(3)]], 2),
        [
            Bar(
                f"{FRONT_END}: throughput at least {BAR_THROUGHPUT:g} of {NATIVE}'s",
                ratio.text(3),
                ratio.median >= BAR_THROUGHPUT,
            ),
            Bar(f"{FRONT_END}: begins within {BAR_START_S:g} s", f"{starts.text(3)} s", starts.median <= BAR_START_S),
        ],
        notes,
        {**rounds, "start_s": starts.median},
    )


def _command(setting: Setting, *words: str) -> list[str | Path]:
    """Returns a command line of weir that runs on the generator's CPU."""
    return ["taskset", "--cpu-list", str(setting.cpus.load), WEIR, *words]


def _native(setting: Setting) -> float:
    output = _output(
        setting,
        "load",
        setting.nginx.url,
        "-c",
        str(CONNECTIONS),
        "-d",
        f"{setting.seconds}s",
        "--no-generator-limit",
        "--json",
        "-",
    )
    throughput_rps: float = json.loads(output)["throughput_rps"]
    return throughput_rps


def _front_end(setting: Setting) -> float:
    match = REQUESTS.search(
        _output(setting, "wrk", "-t1", f"-c{CONNECTIONS}", f"-d{setting.seconds}s", setting.nginx.url)
    )
    if match is None:
        raise BenchError(f"{FRONT_END} printed no throughput")
    return float(match[1])


def _output(setting: Setting, *words: str) -> str:
    return subprocess.run(
        _command(setting, *words),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
        timeout=setting.seconds + 60,
    ).stdout


def _start_s(setting: Setting) -> float:
    """Returns the seconds from the start of `weir wrk` to its heading, which marks the beginning of the load."""
    began = time.monotonic()
    command = _command(setting, "wrk", "-t1", f"-c{CONNECTIONS}", "-d60", setting.nginx.url)
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        heading = process.stdout.readline()
        took_s = time.monotonic() - began
        process.terminate()
        process.stdout.read()
    if not heading.startswith("Running "):
        raise BenchError(f"{FRONT_END} did not begin: {heading!r}")
    return took_s
