"""Runs one load with `weir-engine load`, without the other parts of weir."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.machine import BenchError, Finished, run_on
from weir.model.load import LoadPlan
from weir.paths import find_engine_binary


@dataclass(frozen=True, slots=True)
class EngineLoad:
    """The engine's summary of one load, with the CPU and memory of its process."""

    summary: dict[str, Any]
    process: Finished
    hello: dict[str, Any]

    @property
    def completed(self) -> int:
        """Number of requests with a response."""
        completed: int = self.summary["requests"]["completed"]
        return completed


def engine_load(plan: LoadPlan, cpu: int, folder: Path, *, back_end: str = "auto", owns_cpu: bool = True) -> EngineLoad:
    """Runs a plan on `cpu`.

    An engine with a CPU of its own polls before it sleeps. Without `owns_cpu` it runs on any CPU and never polls. Raises
    BenchError if requests failed or the engine calls the load invalid.
    """
    path = folder / "plan.json"
    path.write_text(json.dumps({**plan.to_json(), "cpus": [cpu] if owns_cpu else [], "backend": back_end}))
    process = run_on(cpu if owns_cpu else None, [find_engine_binary(), "load", "--plan", path], folder, plan.duration_s)
    records = [json.loads(line) for line in process.output.splitlines()]
    hello, end = records[0], records[-1]
    summary = end["summary"]
    if summary["requests"]["failed"] or summary["verdict"]["validity"] == "invalid":
        raise BenchError(f"weir's load failed: {summary['errors']}, {summary['verdict']}")
    return EngineLoad(summary, process, hello)
