"""Response times at fixed rates: how much of weir's figures comes from weir itself?

The load is open, over 50 connections on nginx. weir alternates with the floor (`bench/clients`), a client that spins on
one connection, and with other generators that can hold a rate. weir and the floor count from the time when a request
was due. Above the capacity of one connection the floor stays at its highest rate, which the benchmark finds first.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from bench.engine import engine_load
from bench.machine import BenchError, built, run_on
from bench.paced import PACED_PEERS, QUANTILES, Paced, PacedPeer
from bench.result import Bar, Found, Table
from bench.rounds import alternate
from bench.setting import Setting
from bench.spread import Spread
from weir.model.load import LoadPlan, OpenLoad, Request

RATES_RPS = (1_000, 10_000, 50_000)
CONNECTIONS = 50
BAR_P50, BAR_P99 = 1.25, 2.0
BAR_LAG_RATE_RPS, BAR_LAG_US = 10_000, 50.0
BAR_RATE = 0.001
WEIR, FLOOR = "weir", "floor"
# A rate above every client's reach. At this rate the floor achieves the most that one connection can carry.
UNREACHABLE_RPS = 1_000_000
LADDER = tuple(percent / 100 for percent in range(95, 25, -5))
# The floor carries a rate if it achieves the rate and half of its requests did not wait for the request before.
WAITING, FLOOR_ACHIEVES = 1.1, 0.99


@dataclass(frozen=True, slots=True)
class PacedRound:
    """The report of one generator in one round at one rate."""

    paced: Paced
    schedule_lag_p99_us: float | None = None
    wait: str | None = None
    """weir's wait strategy, which is part of the result."""


@dataclass(frozen=True, slots=True)
class FloorLoad:
    """The floor's report of one load."""

    paced: Paced
    service_p50_us: float


def measure_latency(setting: Setting) -> Found:
    """Measures all rates, each with all generators."""
    notes: list[str] = []
    highest_rps = _highest_rate(setting, notes)
    rows: list[list[str]] = []
    bars: list[Bar] = []
    measured: dict[str, object] = {"floor's highest rate": highest_rps}
    for rate_rps in RATES_RPS:
        rounds, floor_rps = _at_rate(setting, rate_rps, highest_rps, notes)
        rows += _rows(rate_rps, floor_rps, rounds)
        bars += latency_bars(rate_rps, floor_rps, rounds)
        measured[f"{rate_rps} requests/s"] = {
            name: [asdict(round_) for round_ in theirs] for name, theirs in rounds.items()
        }
    columns = [
        "offered",
        "",
        "achieved, requests/s",
        *(f"{name.replace('_', '.')}, µs" for name in QUANTILES),
        "schedule lag p99, µs",
    ]
    return Found(
        f"Response time: open loop, {CONNECTIONS} connections, nginx `return 200`",
        Table(columns, rows, 2),
        bars,
        list(dict.fromkeys(notes)),
        measured,
    )


def _at_rate(
    setting: Setting, rate_rps: int, highest_rps: int, notes: list[str]
) -> tuple[dict[str, list[PacedRound]], int]:
    floor_rps = min(rate_rps, highest_rps)

    def weir() -> PacedRound:
        plan = LoadPlan(Request("GET", setting.nginx.url), OpenLoad(rate_rps, CONNECTIONS), setting.seconds)
        load = engine_load(plan, setting.cpus.load, setting.folder)
        summary = load.summary
        times = summary["response_time_us"]
        achieved_rps = summary["requests"]["sent"] / summary["duration_s"]
        return PacedRound(
            Paced(achieved_rps, {name: times[name] for name in QUANTILES}),
            summary["schedule_lag_us"]["p99"],
            load.hello["wait"],
        )

    def floor() -> PacedRound:
        return PacedRound(_floor(setting, floor_rps, setting.seconds).paced)

    def other(peer: PacedPeer) -> PacedRound:
        if peer.binary is None:
            raise BenchError(f"{peer.name} is not installed")
        command = peer.command(rate_rps, CONNECTIONS, setting.nginx.url, setting.seconds, setting.folder)
        process = run_on(
            setting.cpus.load, [peer.binary, *command], setting.folder, setting.seconds + peer.calibration_s
        )
        return PacedRound(peer.parse(process.output))

    generators: dict[str, Callable[[], PacedRound]] = {WEIR: weir, FLOOR: floor}
    for peer in PACED_PEERS:
        if peer.binary is None:
            notes.append(f"{peer.name} is not installed ({peer.origin})")
        else:
            generators[peer.name] = partial(other, peer)
    what = f"{rate_rps:,} requests/s"
    print(f"{what}: {', '.join(generators)} …", file=sys.stderr)
    return alternate(generators, setting.rounds, [WEIR, FLOOR], notes, what, setting.taken), floor_rps


def _rows(rate_rps: int, floor_rps: int, rounds: dict[str, list[PacedRound]]) -> list[list[str]]:
    rows = []
    for name, theirs in rounds.items():
        label = name
        if name == WEIR:
            label = f"weir ({theirs[0].wait})"
        elif name == FLOOR:
            label = "floor, 1 connection" + ("" if floor_rps == rate_rps else f" at its highest rate, {floor_rps:,}/s")
        lags = [round_.schedule_lag_p99_us for round_ in theirs if round_.schedule_lag_p99_us is not None]
        rows.append(
            [
                f"{rate_rps:,}/s",
                label,
                Spread.of([round_.paced.achieved_rps for round_ in theirs]).text(),
                *(
                    Spread.of([round_.paced.response_time_us[quantile] for round_ in theirs]).text()
                    for quantile in QUANTILES
                ),
                Spread.of(lags).text(1) if lags else "",
            ]
        )
    return rows


def latency_bars(rate_rps: int, floor_rps: int, rounds: dict[str, list[PacedRound]]) -> list[Bar]:
    what = f"{rate_rps:,} requests/s over {CONNECTIONS} connections"
    against = "the floor's" if floor_rps == rate_rps else f"the floor's at {floor_rps:,}/s"
    bars = []
    for quantile, bar in (("p50", BAR_P50), ("p99", BAR_P99)):
        pairs = zip(rounds[WEIR], rounds[FLOOR], strict=True)
        ratio = Spread.of(
            [ours.paced.response_time_us[quantile] / theirs.paced.response_time_us[quantile] for ours, theirs in pairs]
        )
        bars.append(Bar(f"{what}: {quantile} at most {bar:g} × {against}", ratio.text(2), ratio.median <= bar))
    off = Spread.of([abs(round_.paced.achieved_rps / rate_rps - 1) * 100 for round_ in rounds[WEIR]])
    bars.append(Bar(f"{what}: rate within {BAR_RATE:.1%}", f"{off.text(3)} % off", off.median <= BAR_RATE * 100))
    if rate_rps == BAR_LAG_RATE_RPS:
        lag = Spread.of([round_.schedule_lag_p99_us or 0.0 for round_ in rounds[WEIR]])
        bars.append(
            Bar(f"{what}: schedule lag p99 at most {BAR_LAG_US:g} µs", f"{lag.text(1)} µs", lag.median <= BAR_LAG_US)
        )
    return bars


def _highest_rate(setting: Setting, notes: list[str]) -> int:
    """Returns the highest rate in requests per second that the floor carries, in steps of 5 % of its rate without
    pauses."""
    print("the floor's highest rate …", file=sys.stderr)
    most_rps = _floor(setting, UNREACHABLE_RPS, 1).paced.achieved_rps
    for fraction in LADDER:
        rate_rps = int(most_rps * fraction)
        load = _floor(setting, rate_rps, 1)
        if (
            load.paced.response_time_us["p50"] <= WAITING * load.service_p50_us
            and load.paced.achieved_rps >= FLOOR_ACHIEVES * rate_rps
        ):
            return rate_rps
    notes.append(
        f"requests of the floor waited at every rate down to {rate_rps:,}/s, taken as its highest: the machine was not quiet"
    )
    return rate_rps


def _floor(setting: Setting, rate_rps: int, duration_s: float) -> FloorLoad:
    arguments = ["floor", setting.nginx.address, "/", str(rate_rps), str(duration_s)]
    command: list[str | Path] = [built("weir-bench-clients"), *arguments]
    value = json.loads(run_on(setting.cpus.load, command, setting.folder, duration_s).output)
    times = value["response_time_us"]
    paced = Paced(float(value["achieved_rps"]), {name: float(times[name]) for name in QUANTILES})
    return FloorLoad(paced, float(value["service_time_us"]["p50"]))
