"""The cost of agents on a Ray cluster: the rate of two agents, the throughput of one agent compared with this machine's
engine, and the merging of 100 agents' intervals."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench.machine import WEIR, BenchError
from bench.result import Bar, Found, Table
from bench.rounds import alternate
from bench.setting import Setting
from bench.spread import Spread, median_within
from tests.support.observing import observer
from weir.cluster.agents import start_agents
from weir.cluster.load import SharedLoad
from weir.cluster.merge import IntervalMerger
from weir.cluster.ray_cluster import join_cluster
from weir.generators.engine import EngineLoad
from weir.model.load import ClosedLoad, LoadPlan, Request
from weir.model.load_records import Interval

NODES = Path(__file__).resolve().parent.parent / "tests" / "support" / "ray_nodes.py"
CONNECTIONS = 64
RATE_RPS = 10_000
TURN_S, TURNS = 1.5, 4
"""Seconds of one load in a comparison, and the number of these loads per round. A virtual machine's CPU changes its
speed by a tenth within seconds, so short loads that alternate meet the same speed."""
CATCH_UP_S = 0.05
"""Time in which a resumed process does its overdue work before its load begins."""
MERGED, INTERVALS = 100, 20
BAR_RATE, BAR_ALIGNED_MS, BAR_MERGED, BAR_THROUGHPUT, BAR_TRIAL_S = 0.002, 5.0, 1_000, 0.99, 3.0
ALONE, AGENT = "this machine's engine", "one agent"


def measure_cluster(setting: Setting) -> Found:
    """Measures the rate on two nodes and the rest on one node. Everything except nginx runs on the generator's CPU."""
    notes: list[str] = []
    with _nodes(setting, 2) as address:
        print(f"{RATE_RPS:,} requests/s from two agents …", file=sys.stderr)
        rates = [_rate(setting, address) for _ in range(setting.rounds)]
    with _nodes(setting, 1) as address:
        print(f"{ALONE}, {AGENT} …", file=sys.stderr)
        with _standing(setting) as alone, _standing(setting, address) as agent:
            arms = {ALONE: partial(_turn, alone), AGENT: partial(_turn, agent)}
            rounds = alternate(arms, setting.rounds * TURNS, arms, notes, f"{CONNECTIONS} connections", setting.taken)
        beside = Spread.of(_beside_s(setting, address))
    ratios = [agent / alone for agent, alone in zip(rounds[AGENT], rounds[ALONE], strict=True)]
    ratio, (low, high) = Spread.of(ratios), median_within(ratios)
    delivered = Spread.of([rate for rate, _ in rates])
    apart = Spread.of([apart_ms for _, apart_ms in rates])
    merged = Spread.of([_merged_a_second(setting) for _ in range(setting.rounds)])
    rows = [
        [f"{RATE_RPS:,} requests/s from two agents", "requests/s", delivered.text(1)],
        ["", "intervals apart, ms at most", apart.text(2)],
        *([name, f"requests/s, {TURN_S:g} s at a time", Spread.of(values).text(0)] for name, values in rounds.items()),
        [AGENT, "s beside the load itself", beside.text(2)],
        [f"intervals of {MERGED} agents", "merged in a second of CPU time", merged.text(0)],
    ]
    worst = max(abs(rate / RATE_RPS - 1) for rate, _ in rates)
    return Found(
        "Agents on a cluster, two nodes for the rate and else one: nginx `return 200`",
        Table(["", "", "median and range"], rows, 2),
        [
            Bar(
                f"two agents: {RATE_RPS:,} requests/s within {BAR_RATE:.1%}", f"{worst:.3%} at most", worst <= BAR_RATE
            ),
            Bar(
                f"two agents: intervals within {BAR_ALIGNED_MS:g} ms",
                f"{apart.text(2)} ms",
                apart.median <= BAR_ALIGNED_MS,
            ),
            Bar(
                f"{AGENT}: throughput at least {BAR_THROUGHPUT:g} of {ALONE}",
                f"{ratio.text(3)}, the median within {low:.3f} to {high:.3f} (95 %)",
                ratio.median >= BAR_THROUGHPUT,
            ),
            Bar(
                f"{AGENT}: a load takes at most {BAR_TRIAL_S:g} s more",
                f"{beside.text(2)} s",
                beside.median <= BAR_TRIAL_S,
            ),
            Bar(f"merging: {BAR_MERGED:,} intervals of agents a second", merged.text(0), merged.median >= BAR_MERGED),
        ],
        notes,
        {**rounds, "rates": rates, "beside_s": beside.median, "merged": merged.median},
    )


@contextmanager
def _nodes(setting: Setting, count: int) -> Iterator[str]:
    resources = json.dumps([{"weir_load": 1}] * count)
    command = ["taskset", "--cpu-list", str(setting.cpus.load), sys.executable, str(NODES), resources]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        yield json.loads(_line(process))["address"]
        assert process.stdin is not None
        process.stdin.close()


def _rate(setting: Setting, address: str) -> tuple[float, float]:
    """Returns the responses per second, and the largest distance between the agents' intervals in milliseconds."""
    found = _load(setting, "-R", str(RATE_RPS), "--cluster", address, "--agents", "2")
    # An agent's late start, and the uncertainty of its clock.
    late_ms = [(agent["began_late_us"] + agent["clock_error_us"]) / 1e3 for agent in found["agents"]]
    return found["requests"]["completed"] / setting.seconds, max(late_ms)


@dataclass(frozen=True, slots=True)
class _Standing:
    """A process of `bench.standing`, with its agent. Both are suspended while another process has its turn."""

    process: subprocess.Popen[str]
    processes: list[int]

    def signal(self, number: int) -> None:
        for process in self.processes:
            # The next load reports an agent that has ended.
            with suppress(ProcessLookupError):
                os.kill(process, number)


@contextmanager
def _standing(setting: Setting, *address: str) -> Iterator[_Standing]:
    cpu = str(setting.cpus.load)
    words = [setting.nginx.url, str(CONNECTIONS), str(TURN_S), cpu, *address]
    command = ["taskset", "--cpu-list", cpu, sys.executable, "-m", "bench.standing", *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        standing = _Standing(process, json.loads(_line(process)))
        standing.signal(signal.SIGSTOP)
        try:
            yield standing
        finally:
            standing.signal(signal.SIGCONT)
            assert process.stdin is not None
            process.stdin.close()


def _turn(standing: _Standing) -> float:
    """Runs one load and returns the responses per second."""
    standing.signal(signal.SIGCONT)
    time.sleep(CATCH_UP_S)
    assert standing.process.stdin is not None
    standing.process.stdin.write("\n")
    standing.process.stdin.flush()
    throughput_rps = float(_line(standing.process))
    standing.signal(signal.SIGSTOP)
    return throughput_rps


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise BenchError("a helper process ended before it printed a line")
    return line


def _load(setting: Setting, *words: str) -> dict[str, Any]:
    command: list[str | Path] = [
        "taskset", "--cpu-list", str(setting.cpus.load), WEIR, "load", setting.nginx.url, "-c", str(CONNECTIONS),
        "-d", f"{setting.seconds}s", "--no-generator-limit", "--json", "-", *words,
    ]  # fmt: skip
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, timeout=setting.seconds + 60
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _beside_s(setting: Setting, address: str) -> list[float]:
    """Returns the seconds that each load of a running agent takes in addition to its duration, as in a trial."""
    took = []
    with join_cluster(address) as cluster, start_agents(cluster, "load", 1) as agents:
        for _ in range(setting.rounds):
            began = time.monotonic()
            with SharedLoad(agents, _plan(setting)) as load:
                lasted_s = load.result().summary.duration_s
            took.append(time.monotonic() - began - lasted_s)
    return took


def _merged_a_second(setting: Setting) -> float:
    """Parses and merges intervals of real loads as if 100 agents had sent them; returns intervals per second of CPU
    time."""
    told: list[str] = []
    with EngineLoad(
        _plan(setting), observer(on_interval=lambda interval: told.append(json.dumps(interval.to_json())))
    ) as load:
        load.result()
    lines = told[:INTERVALS]
    merger = IntervalMerger(str(agent) for agent in range(MERGED))
    began = time.process_time()
    merged = 0
    for line in lines:
        for agent in range(MERGED):
            merged += len(merger.take(str(agent), Interval.from_json(json.loads(line))))
    spent_s = time.process_time() - began
    if merged != len(lines):
        raise BenchError(f"the merger returned {merged} intervals, expected {len(lines)}")
    return MERGED * len(lines) / spent_s


def _plan(setting: Setting) -> LoadPlan:
    return LoadPlan(
        Request("GET", setting.nginx.url), ClosedLoad(CONNECTIONS), float(setting.seconds), cpus=(setting.cpus.load,)
    )
