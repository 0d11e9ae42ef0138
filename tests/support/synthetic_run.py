"""Writes a run file with known truth through `RunWriter`, for tests of its readers and for a look at reports.

The trials obey physics (in a closed loop the mean response time is below N/X, and counts add up) unless a test breaks
them on purpose. `python -m tests.support.synthetic_run FOLDER` writes an example.
"""

import json
import math
import random
import sqlite3
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from statistics import NormalDist
from typing import Any, Literal

import numpy as np

from tests.support.synthetic_generator import SyntheticGenerator, made_by
from weir.model.hdr import Hdr
from weir.model.load import ClosedLoad, Load
from weir.model.load_records import (
    CLOCKS,
    ByteCounts,
    ErrorCounts,
    GeneratorUse,
    Interval,
    IntervalQuantiles,
    LoadSummary,
    Quantiles,
    RequestCounts,
    Verdict,
)
from weir.model.observer_records import CpuSample, GroupSample, NetworkSample, PoolTimes, Sample, SocketCounts
from weir.model.resources import StackResources
from weir.model.run_types import (
    Arm,
    Cell,
    Limits,
    Placement,
    PublishedFigure,
    RunInfo,
    TrialEvent,
    TrialResult,
    UpperBound,
)
from weir.model.verdict import TrialVerdict
from weir.objective import Judged, parse_objective
from weir.store import RunWriter

Recorded = list[tuple[int, int]]
"""(nanoseconds, count) pairs."""

STARTED_UNIX_NS = 1_760_000_000_000_000_000
_POINTS = 200
_NORMAL_POINTS = [NormalDist().inv_cdf((index + 0.5) / _POINTS) for index in range(_POINTS)]


@dataclass(frozen=True)
class SyntheticStack:
    """The truth about one stack."""

    name: str
    title: str
    model: str
    throughput_rps: float
    cpu_us_per_request: float
    memory_bytes: int
    ready_s: float
    threads: int
    latency_sigma: float = 0.3
    variation: float = 0.02
    """Coefficient of variation of throughput between trials."""
    warm_up: float = 0.0
    """Share of throughput that is missing at the start of a trial; it is gone after a quarter of the trial."""
    variant: str | None = None
    runtime: str = "Python 3.12.3"
    artifact_bytes: int | None = 30_000_000
    growth: Callable[[int], float] = lambda connections: 1.0
    """Throughput with this number of connections, as a multiple of `throughput_rps`."""
    scaled: Callable[[Mapping[str, str]], float] = lambda coordinates: 1.0
    """Throughput at a cell's coordinates, as a multiple of `throughput_rps`."""


FLASK = SyntheticStack(
    "flask-gunicorn",
    "Flask on gunicorn, sync workers",
    "process per request, blocking I/O",
    2_450,
    380,
    62_000_000,
    0.61,
    2,
    0.22,
)
SANIC = SyntheticStack(
    "sanic", "Sanic on its own server", "event loop per process, non-blocking I/O", 9_900, 92, 88_000_000, 0.94, 3, 0.35
)
NETTY = SyntheticStack(
    "spring-webflux", "Spring WebFlux on Netty", "event loop, non-blocking I/O", 11_200, 84, 412_000_000, 3.4, 34, 0.5, 0.05, 0.55,
    runtime="openjdk 17.0.15 2025-04-15", artifact_bytes=19_460_635,
)  # fmt: skip


PUBLISHED = (
    PublishedFigure(
        "flask-gunicorn",
        "throughput_rps",
        7191.2708,
        "A published comparison, hey, 20 connections",
        "4 workers on 4 of 12 CPUs",
    ),
    PublishedFigure("flask-gunicorn", "response_time_us.p50", 2500, "A published comparison, hey, 20 connections"),
    PublishedFigure("flask-gunicorn", "response_time_us.p99", 5400, "A published comparison, hey, 20 connections"),
    PublishedFigure(
        "sanic",
        "throughput_rps",
        33593.4268,
        "A published comparison, hey, 20 connections",
        "4 workers on 4 of 12 CPUs",
    ),
    PublishedFigure("sanic", "response_time_us.p50", 500, "A published comparison, hey, 20 connections"),
    PublishedFigure("sanic", "response_time_us.p99", 1500, "A published comparison, hey, 20 connections"),
)

ENVIRONMENT: dict[str, Any] = {
    "machine": {"cpu_model": "Example CPU at 2.4 GHz", "cpus": 2, "memory_bytes": 8_321_499_136},
    "kernel": "Linux 6.1.0 x86_64",
    "python": "3.11.7",
    "tools": {"uv": "0.8.0", "gunicorn": "23.0.0", "sanic": "25.3.0"},
    "governor": None,
}


@dataclass(frozen=True)
class SyntheticStudy:
    """A study to write. `change` gets (stack label, block, result) and may change a trial's result before it is
    finished."""

    stacks: Sequence[SyntheticStack] = (FLASK, SANIC)
    blocks: int = 3
    aa: str | None = "flask-gunicorn"
    baseline: str | None = "flask-gunicorn"
    loads: Sequence[Load] = (ClosedLoad(20),)
    workloads: Sequence[str] = ("echo",)
    coordinates: Sequence[dict[str, str]] = ({},)
    """Coordinates of cells besides workload and load."""
    generators: Sequence[SyntheticGenerator] = ()
    """Generators, if weir's engine is not the only one; then the tap listens too."""
    limits: dict[str, Limits] = field(default_factory=dict)
    """Quotas, by tier."""
    upper_bounds: dict[str, tuple[UpperBound, ...]] = field(default_factory=dict)
    """Upper bounds by stack."""
    unlimited: Sequence[str] = ()
    """Stacks that have none of these coordinates."""
    objectives: Sequence[tuple[str, bool]] = ()
    """Objectives of every trial, and whether the trial met them."""
    duration_s: float = 8.0
    interval_s: float = 0.1
    seed: int = 1
    indicative: bool = True
    ended: Literal["complete", "interrupted"] | None = "complete"
    title: str = "Sync against async on a JSON echo"
    command: str = ""
    """The command that made the run; by default a call of `weir run`."""
    question: str = "Does an async server beat a sync one on a JSON echo?"
    study_text: str = 'title = "Sync against async on a JSON echo"\n[matrix]\nstacks = ["flask-gunicorn", "sanic"]\n'
    published: tuple[PublishedFigure, ...] = PUBLISHED
    claims: tuple[str, ...] = (
        "Async beats sync about 4 times in Python (its figures say 4.67).",
        "With 20 connections in a closed loop and 33,593 requests/s the mean response time cannot exceed 0.6 ms; the study prints 6.0 ms.",
    )
    environment: dict[str, Any] = field(default_factory=lambda: ENVIRONMENT)
    shared: tuple[str, ...] = ("weir's own control shares CPU 0 with the load generator.",)
    event: TrialEvent | None = None
    skip: Callable[[str, int], bool] = lambda label, block: False
    """Returns whether a trial never ran."""
    retries: int = 0
    """Number of retries of a trial that `change` makes invalid; `change` gets the retries too."""
    change: Callable[[str, int, TrialResult], TrialResult] = lambda label, block, result: result


def write_run(path: Path, study: SyntheticStudy = SyntheticStudy()) -> Path:
    """Writes the run file `path` and returns it."""
    rng = random.Random(study.seed)
    cells = _cells(study)
    info = RunInfo(
        study="sync-vs-async",
        title=study.title,
        question=study.question,
        scale="quick",
        seed=study.seed,
        blocks=study.blocks,
        indicative=study.indicative,
        baseline=study.baseline,
        study_text=study.study_text,
        command=study.command or f"weir run sync-vs-async --scale quick --seed {study.seed}",
        weir_version="0.1.0",
        started_unix_ns=STARTED_UNIX_NS,
        environment=study.environment,
        placement=Placement(load=(0,), stack=(1,), services=(), control=(0,), shared=study.shared, limits=study.limits),
        published=study.published,
        source="A published comparison of Flask, Sanic, Tomcat and Netty: hey, 20 connections, 5 minutes, one run each",
        claims=study.claims,
    )
    writer = RunWriter.create(path, info, [cell for cell, _ in cells])
    moment = 0
    for block in range(1, study.blocks + 1):
        order = list(cells)
        rng.shuffle(order)
        for position, (cell, stack) in enumerate(order):
            if study.skip(cell.stack_label, block):
                continue
            for attempt in range(1, study.retries + 2):
                moment += 1
                started = STARTED_UNIX_NS + moment * 12_000_000_000
                trial = writer.begin_trial(
                    cell, block=block, position=position, attempt=attempt, started_unix_ns=started
                )
                result = study.change(cell.stack_label, block, _measure(writer, trial, stack, cell, study, rng))
                writer.finish_trial(trial, result)
                if result.verdict.validity != "invalid":
                    break
    if study.ended is not None:
        writer.close(study.ended)
    return path


def put_elsewhere(path: Path, tiers: Sequence[str], node: str, cpus: int | None) -> None:
    """Changes the run file `path` as if services were on a node with this number of CPUs; with None the file has no
    facts about the node."""
    facts = {} if cpus is None else {"cpus": list(range(cpus))}
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE run SET placement = json_set(placement, '$.services_on', ?)", (node,))
        connection.execute(
            "UPDATE run SET environment = json_set(environment, '$.services_on', json(?))", (json.dumps({node: facts}),)
        )
        counted = "processes, threads, cpu_user_s, cpu_system_s, rss_bytes, voluntary_switches, involuntary_switches"
        for tier in tiers:
            connection.execute(
                f"INSERT INTO sample (trial_id, t_s, name, tier, {counted}) SELECT id, 0.5, ?, ?, 1, 1, 0.0, 0.0, 0, 0, 0 FROM trial",
                (f"{tier}@{node}", tier),
            )
        connection.commit()


def _cells(study: SyntheticStudy) -> list[tuple[Cell, SyntheticStack]]:
    cells: list[tuple[Cell, SyntheticStack]] = []
    for workload in study.workloads:
        for load in study.loads:
            for stack in study.stacks:
                arms: list[Arm] = ["main", "aa"] if stack.name == study.aa else ["main"]
                places = [{}] if stack.name in study.unlimited else study.coordinates
                made_by = [{"generator": one.name} for one in study.generators] or [{}]
                for arm, place, by in product(arms, places, made_by):
                    coordinates = place | by
                    cell = Cell(
                        id=len(cells) + 1, stack=stack.name, variant=stack.variant, workload=workload, load=load, arm=arm,
                        title=stack.title, model=stack.model, settings={"workers": "1"} | place, coordinates=dict(coordinates),
                        generator=by.get("generator", "weir"),
                        replicas=int(coordinates.get("replicas", 1)),
                        upper_bounds=study.upper_bounds.get(stack.name, ()),
                    )  # fmt: skip
                    cells.append((cell, stack))
    return cells


def _measure(
    writer: RunWriter, trial: int, stack: SyntheticStack, cell: Cell, study: SyntheticStudy, rng: random.Random
) -> TrialResult:
    """Writes the intervals, samples and events of one trial and returns the trial's result."""
    connections = cell.load.connections
    generator = next((one for one in study.generators if one.name == cell.generator), SyntheticGenerator("weir"))
    level = (
        generator.reach
        * stack.throughput_rps
        * stack.growth(connections)
        * stack.scaled(cell.coordinates)
        * rng.lognormvariate(0, stack.variation)
    )
    whole: Recorded = []
    completed = 0
    count = round(study.duration_s / study.interval_s)
    cpu_s, cpu_now = 0.4, rng.uniform(100, 200)
    a_second = max(1, round(1 / study.interval_s))
    for index in range(count):
        start_s, end_s = index * study.interval_s, (index + 1) * study.interval_s
        warm = 1 - stack.warm_up * max(0.0, 1 - start_s / (study.duration_s / 4))
        rate = level * warm * rng.lognormvariate(0, 0.03)
        done = max(1, round(rate * study.interval_s))
        scale_ns = 0.97 * connections / (done / study.interval_s) * 1e9 / math.exp(stack.latency_sigma**2 / 2)
        part = _latencies(done, scale_ns, stack.latency_sigma, rng)
        whole += part
        completed += done
        if generator.name == "weir":
            writer.add_interval(
                trial,
                _interval(
                    index, start_s, end_s, done, connections, _histogram(part), scale_ns / 1e3, stack.latency_sigma
                ),
            )
        writer.add_sample(
            trial, start_s, _sample(stack, cpu_s, cpu_now, start_s, index, reads_threads=index % a_second == 0)
        )
        cpu_s += min(0.99, rate * stack.cpu_us_per_request / 1e6) * study.interval_s
    writer.add_sample(
        trial, study.duration_s, _sample(stack, cpu_s, cpu_now, study.duration_s, count, reads_threads=True)
    )
    if study.event is not None:
        writer.add_event(trial, study.event)
    used = cpu_s - 0.4
    data = _histogram(whole).encode()
    held = [Judged(parse_objective(text), 43_100.0, met).to_json() for text, met in study.objectives]
    memory = round(stack.memory_bytes * rng.lognormvariate(0, 0.005))
    measured = TrialResult(
        verdict=TrialVerdict(),
        summary=replace(_summary(whole, completed, study.duration_s, connections), objectives=held or None),
        resources=StackResources(
            cpu_user_s=used * 0.7, cpu_system_s=used * 0.3, peak_threads=stack.threads, peak_processes=2, pss_bytes=memory,
            private_bytes=round(memory * 0.9), steal_fraction=0.001,
        ),
        histograms={f"{clock}_ns": data for clock in CLOCKS},
        load_started_monotonic_ns=1_000_000_000,
        ready_s=stack.ready_s * rng.lognormvariate(0, 0.03),
        artifact_bytes=stack.artifact_bytes,
        runtime=stack.runtime,
        isolation="namespace",
        phases_s={"warmup": 2.0, "pause": 1.0, "load": study.duration_s, "total": study.duration_s + 5},
        logs={"app": f"logs/{trial:04d}-app.log"},
    )  # fmt: skip
    return made_by(generator, measured) if study.generators else measured


def _histogram(values: Recorded) -> Hdr:
    recorded = Hdr()
    for value, count in values:
        recorded.add(value, count)
    return recorded


def _latencies(count: int, scale_ns: float, sigma: float, rng: random.Random) -> Recorded:
    """Returns `count` log-normal response times with median `scale_ns`, drawn at their quantiles."""
    share, extra = divmod(count, _POINTS)
    lucky = set(rng.sample(range(_POINTS), extra))
    times = [(int(scale_ns * math.exp(sigma * z)), share + (index in lucky)) for index, z in enumerate(_NORMAL_POINTS)]
    return [(value, often) for value, often in times if often]


def _interval(
    index: int, start_s: float, end_s: float, done: int, connections: int, part: Hdr, scale_us: float, sigma: float
) -> Interval:
    # Computed from the distribution, because the histogram takes ten milliseconds per quantile.
    def quantile(z: float) -> float:
        return float(scale_us * math.exp(sigma * z))

    times = IntervalQuantiles(
        mean=scale_us * math.exp(sigma * sigma / 2),
        p50=quantile(0),
        p90=quantile(1.2816),
        p99=quantile(2.3263),
        max=quantile(_NORMAL_POINTS[-1]),
    )
    return Interval(
        index=index, start_s=start_s, end_s=end_s, due=done, sent=done, completed=done, ok=done, failed=0, errors=ErrorCounts(),
        in_flight=connections, oldest_age_us=quantile(0), bytes_sent=300 * done, bytes_received=400 * done, response_time_us=times,
        histogram=part.to_text(),
    )  # fmt: skip


def _sample(
    stack: SyntheticStack, cpu_s: float, booted_s: float, t_s: float, index: int, *, reads_threads: bool
) -> Sample:
    """Returns a sample at `t_s`: 1 MB/s goes over the loopback device, and idle threads wait for events."""
    swept = index % 50 == 0
    boot_s = booted_s + t_s
    idle_s = max(0.0, stack.threads * t_s - (cpu_s - 0.4))
    pool = PoolTimes(
        pool="worker", threads=stack.threads, on_cpu_s=cpu_s - 0.4, runnable_s=0, socket_io_s=0, event_wait_s=idle_s, lock_s=0, accept_s=0,
        disk_s=0, sleep_s=0, other_s=0,
    )  # fmt: skip
    group = GroupSample(
        name="app", tier="app", processes=2, threads=stack.threads, cpu_user_s=round(cpu_s * 0.7, 2), cpu_system_s=round(cpu_s * 0.3, 2),
        rss_bytes=stack.memory_bytes + 4_000_000, voluntary_switches=index * 50, involuntary_switches=index,
        pss_bytes=stack.memory_bytes if swept else None, private_bytes=round(stack.memory_bytes * 0.9) if swept else None,
        disk_read_bytes=0, disk_written_bytes=round(20_000 * t_s), threads_by_state=[pool] if reads_threads else None,
    )  # fmt: skip
    sockets = SocketCounts(established=40, time_wait=0, orphaned=0, in_use=45)
    network = NetworkSample(
        tcp_retransmits=0, listen_overflows=0, listen_drops=0, sockets=sockets, received_bytes=0, sent_bytes=0,
        loopback_bytes=round(1e6 * t_s),
    )  # fmt: skip
    cpus = [
        CpuSample(
            cpu=cpu, user_s=boot_s * share, system_s=boot_s * 0.2, idle_s=boot_s * (0.79 - share), iowait_s=0.0, irq_s=0.0, softirq_s=0.0,
            steal_s=boot_s * 0.01,
        )
        for cpu, share in ((0, 0.45), (1, 0.72))
    ]  # fmt: skip
    return Sample(t_ns=round(boot_s * 1e9), groups=[group], cpus=cpus, network=network if reads_threads else None)


def _quantiles(values: Recorded) -> Quantiles:
    """Returns statistics of (nanoseconds, count) pairs; computed here, because a histogram takes ten milliseconds per
    quantile."""
    values = sorted(values)
    times_us = np.array([value for value, _ in values]) / 1e3
    counts = np.array([count for _, count in values])
    reached = np.cumsum(counts)

    def at(percentile: float) -> float:
        return float(times_us[np.searchsorted(reached, percentile / 100 * reached[-1])])

    mean = float(np.average(times_us, weights=counts))
    return Quantiles(
        mean=mean, stdev=float(np.sqrt(np.average((times_us - mean) ** 2, weights=counts))), min=float(times_us[0]), p50=at(50), p75=at(75),
        p90=at(90), p95=at(95), p99=at(99), p99_9=at(99.9), p99_99=at(99.99), max=float(times_us[-1]),
    )  # fmt: skip


def _summary(recorded: Recorded, completed: int, duration_s: float, connections: int) -> LoadSummary:
    times = _quantiles(recorded)
    return LoadSummary(
        schema=1, target="http://127.0.0.1:8080/bench/receive_data", duration_s=duration_s,
        requests=RequestCounts(
            intended=completed + connections, sent=completed + connections, completed=completed, ok=completed, failed=0,
            unanswered=connections, unsent=0,
        ),
        throughput_rps=completed / duration_s, status={"200": completed}, errors=ErrorCounts(), response_time_us=times,
        service_time_us=times, schedule_lag_us=Quantiles(), connect_time_us=Quantiles(), time_to_first_byte_us=times,
        bytes=ByteCounts(sent=300 * completed, received=400 * completed),
        generator=GeneratorUse(version="0.1.0", cpu_fraction=1.0, busy_fraction=0.35, peak_rss_bytes=9_000_000, threads=1, cpus=[0]),
        verdict=Verdict(validity="valid"),
    )  # fmt: skip


def judged(result: TrialResult, validity: Literal["valid", "suspect", "invalid"], *reasons: str) -> TrialResult:
    """Returns `result` with another verdict."""
    return replace(result, verdict=TrialVerdict.from_texts(validity, reasons))


if __name__ == "__main__":
    print(write_run(Path(sys.argv[1]) / "run.weir", SyntheticStudy(stacks=(FLASK, SANIC, NETTY))))
