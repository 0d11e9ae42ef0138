"""The cost of the live page for its load: a viewer who reads all events, compared with no viewer."""

import json
import subprocess
import sys
import threading
import urllib.request
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from bench.machine import WEIR, BenchError
from bench.result import Bar, Found, Table
from bench.rounds import alternate
from bench.setting import Setting
from bench.spread import Spread

CONNECTIONS = 50
RATE_RPS = 10_000
BAR_THROUGHPUT, BAR_LAG = 0.99, 1.10
ALONE, VIEWED = "nobody looks", "a viewer"
LOADS = {
    f"closed, {CONNECTIONS} connections": (["-c", str(CONNECTIONS)], "throughput_rps", "requests/s", 0),
    f"{RATE_RPS:,} requests/s": (
        ["-R", str(RATE_RPS), "-c", str(CONNECTIONS)],
        "schedule_lag_us",
        "schedule lag p99, µs",
        1,
    ),
}


def measure_live(setting: Setting) -> Found:
    """Measures both loads with and without a viewer."""
    notes: list[str] = []
    rows: list[list[str]] = []
    bars: list[Bar] = []
    measured: dict[str, object] = {}
    for label, (arguments, key, unit, digits) in LOADS.items():
        print(f"{label}: {ALONE}, {VIEWED} …", file=sys.stderr)
        arms = {
            ALONE: partial(_load, setting, arguments, key, viewed=False),
            VIEWED: partial(_load, setting, arguments, key, viewed=True),
        }
        rounds = alternate(arms, setting.rounds, arms, notes, label, setting.taken)
        ratio = Spread.of([seen / alone for seen, alone in zip(rounds[VIEWED], rounds[ALONE], strict=True)])
        rows += [[label, name, unit, Spread.of(values).text(digits)] for name, values in rounds.items()]
        if key == "throughput_rps":
            bars.append(
                Bar(
                    f"{label}: throughput at least {BAR_THROUGHPUT:g} of that alone",
                    ratio.text(3),
                    ratio.median >= BAR_THROUGHPUT,
                )
            )
        else:
            bars.append(
                Bar(
                    f"{label}: schedule lag p99 at most {BAR_LAG:g} of that alone",
                    ratio.text(3),
                    ratio.median <= BAR_LAG,
                )
            )
        measured[label] = rounds
    return Found(
        "The live page: `weir load` on nginx `return 200`",
        Table(["load", "", "", "median and range"], rows, 3),
        bars,
        notes,
        measured,
    )


def _load(setting: Setting, arguments: list[str], key: str, *, viewed: bool) -> float:
    """Runs `weir load` with a CPU of its own for the generator. Returns the value at `key` in its JSON, or the p99 of
    several quantiles."""
    command: list[str | Path] = [
        WEIR, "load", "--cpus", str(setting.cpus.load), setting.nginx.url, *arguments,
        "-d", f"{setting.seconds}s", "--no-generator-limit", "--json", "-", *(["--live"] if viewed else []),
    ]  # fmt: skip
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        said = []
        viewer: threading.Thread | None = None
        for line in process.stderr if viewed else ():
            said.append(line)
            if "live: " in line:
                viewer = threading.Thread(target=_look, args=(line.rpartition("live: ")[2].strip(),), daemon=True)
                viewer.start()
                break
        output, rest = process.communicate(timeout=setting.seconds + 60)
    if process.returncode or (viewed and viewer is None):
        raise BenchError(f"weir load ended with {process.returncode}: {''.join(said)}{rest}")
    value = json.loads(output)[key]
    figure: float = value["p99"] if isinstance(value, dict) else value
    return figure


def _look(url: str) -> None:
    """Reads the page's events until the stream ends."""
    parts = urlsplit(url)
    # The stream ends when the load ends.
    with urllib.request.urlopen(urlunsplit(parts._replace(path="/news")), timeout=60) as news:
        while news.read1():
            pass
