"""Writes the file of a kept load with known truth through `RunWriter`, for tests of its readers."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tests.support.load_summary import load_end
from tests.support.records import group, interval
from weir.model.hdr import bytes_of_text
from weir.model.load import ClosedLoad, Load, LoadPlan, Request
from weir.model.load_records import Quantiles, StepSummary, Validity
from weir.model.observer_records import CpuSample, NetworkSample, Sample, SocketCounts
from weir.model.resources import StackResources
from weir.model.run_types import Cell, Placement, RunInfo, TrialEvent, TrialResult
from weir.model.verdict import TrialVerdict
from weir.report.timeseries import Array
from weir.store import RunWriter

INTERVAL_S = 0.1
TIMES_MS = tuple(float(value) for value in np.geomspace(1.0, 9.0, 200))
"""Response times in each interval."""
_STARTED_UNIX_NS = 1_760_000_000_000_000_000


@dataclass(frozen=True)
class SyntheticLoad:
    """A load to write: 2,000 responses per second."""

    target: str = "http://127.0.0.1:8000/"
    load: Load = field(default_factory=lambda: ClosedLoad(4))
    intervals: int = 40
    errors: Mapping[str, int] | None = None
    """Failed requests of the fourth interval by kind; other intervals have none."""
    watched: bool = True
    """Whether weir watched the server's processes."""
    steps: Sequence[str] = ()
    events: Sequence[TrialEvent] = ()
    reasons: Sequence[str] = ()
    """Reasons for the verdict `validity`."""
    validity: Literal["suspect", "invalid"] = "suspect"
    """The verdict if there are `reasons`; without reasons the load is valid."""
    objectives: Sequence[dict[str, Any]] | None = None
    command: str = "weir load http://127.0.0.1:8000/ --out load.weir"
    environment: Mapping[str, Any] | None = None
    generator: str = "0.1.0"
    """The generator's version."""
    finished: bool = True
    """Whether the load ran to its end."""


def write_load(path: Path, asked: SyntheticLoad = SyntheticLoad()) -> Path:
    """Writes the file `path` and returns it."""
    duration_s = asked.intervals * INTERVAL_S
    plan = LoadPlan(Request("GET", asked.target), asked.load, duration_s, cpus=(0,))
    cell = Cell(1, asked.target, None, "GET", asked.load, title=asked.target)
    info = RunInfo(
        study="", title=asked.target, question="", scale="", seed=0, blocks=1, indicative=True, baseline=None,
        study_text=json.dumps(plan.to_json(), indent=2), command=asked.command, weir_version="0.1.0", started_unix_ns=_STARTED_UNIX_NS,
        environment=dict(asked.environment or {"kernel": "Linux 6.1.0 x86_64"}),
        placement=Placement(load=(0,), stack=(), services=(), control=()),
    )  # fmt: skip
    writer = RunWriter.create(path, info, [cell])
    trial = writer.begin_trial(cell, block=1, position=0, attempt=1, started_unix_ns=_STARTED_UNIX_NS)
    for index in range(asked.intervals):
        writer.add_interval(
            trial, interval(index, TIMES_MS, length_s=INTERVAL_S, errors=asked.errors if index == 3 else None)
        )
    if asked.watched:
        for second in range(round(duration_s) + 1):
            writer.add_sample(trial, float(second), _sample(second))
    for event in asked.events:
        writer.add_event(trial, event)
    if asked.finished:
        writer.finish_trial(trial, _result(asked, duration_s))
    writer.close("complete" if asked.finished else "interrupted")
    return path


def _sample(second: int) -> Sample:
    """Returns a sample: half a CPU used, a third of it in the kernel, 10 MB/s on the loopback device. One thread waits
    for events all the time and another for half of it."""
    server = replace(
        group("server", cpu_s=second / 3, threads=3, pools={"worker": 0.5 * second, "acceptor": 1.0 * second}),
        cpu_system_s=second / 6,
        disk_read_bytes=0,
        disk_written_bytes=1_000_000 * second,
    )
    cpus = [
        CpuSample(
            cpu=cpu, user_s=0.4 * second, system_s=0.2 * second, idle_s=0.39 * second, iowait_s=0, irq_s=0, softirq_s=0,
            steal_s=0.01 * second,
        )
        for cpu in (0, 1)
    ]  # fmt: skip
    network = NetworkSample(
        tcp_retransmits=0, listen_overflows=0, listen_drops=0, sockets=SocketCounts(established=4, time_wait=0, orphaned=0, in_use=5),
        received_bytes=0, sent_bytes=0, loopback_bytes=10_000_000 * second,
    )  # fmt: skip
    return Sample(t_ns=second * 1_000_000_000, groups=[server], cpus=cpus, network=network)


def _result(asked: SyntheticLoad, duration_s: float) -> TrialResult:
    times_ns = [int(time * 1e6) for time in TIMES_MS] * asked.intervals
    errors = dict(asked.errors or {})
    failed, answered = sum(errors.values()), len(times_ns)
    times = _quantiles(np.array(times_ns) / 1e3)
    counts = {
        "intended": answered + failed,
        "sent": answered + failed,
        "completed": answered,
        "ok": answered,
        "failed": failed,
    }
    part = StepSummary(sent=answered, completed=answered, ok=answered, failed=0, response_time_us=times)
    validity: Validity = asked.validity if asked.reasons else "valid"
    end = load_end(
        dict.fromkeys(("response_time", "service_time"), times_ns),
        duration_s=duration_s, target=asked.target, errors=errors, requests={**counts, "unanswered": 0, "unsent": 0},
        response_time_us=times.to_json(), service_time_us=times.to_json(),
        verdict={"validity": validity, "reasons": list(asked.reasons)},
        generator={"version": asked.generator, "cpu_fraction": 0.5, "peak_rss_bytes": 1, "threads": 1, "cpus": [0]},
        bytes={"sent": 80 * answered, "received": 120 * answered},
        **({"steps": {name: part.to_json() for name in asked.steps}} if asked.steps else {}),
        **({"objectives": list(asked.objectives)} if asked.objectives is not None else {}),
    )  # fmt: skip
    resources = StackResources(
        cpu_user_s=duration_s / 3,
        cpu_system_s=duration_s / 6,
        peak_threads=3,
        peak_processes=1,
        pss_bytes=25_000_000,
        private_bytes=20_000_000,
        steal_fraction=None,
    )
    return TrialResult(
        verdict=TrialVerdict.from_texts(validity, asked.reasons),
        summary=end.summary,
        resources=resources if asked.watched else None,
        histograms={clock: bytes_of_text(text) for clock, text in end.histograms.items()},
        load_started_monotonic_ns=0,
    )


def _quantiles(times_us: Array) -> Quantiles:
    shares = {"p50": 50, "p75": 75, "p90": 90, "p95": 95, "p99": 99, "p99_9": 99.9, "p99_99": 99.99}
    found = {name: float(np.percentile(times_us, share)) for name, share in shares.items()}
    return Quantiles(
        mean=float(times_us.mean()),
        stdev=float(times_us.std()),
        min=float(times_us.min()),
        max=float(times_us.max()),
        **found,
    )
