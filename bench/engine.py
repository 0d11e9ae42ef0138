"""One load by `weir-engine load`, without the rest of weir around it."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.machine import BenchError, Finished, run_on
from weir.model.load import LoadPlan
from weir.paths import find_engine_binary


@dataclass(frozen=True, slots=True)
class EngineLoad:
    """The engine's summary of one load, and what its process used."""

    summary: dict[str, Any]
    process: Finished
    hello: dict[str, Any]

    @property
    def completed(self) -> int:
        """Requests that were answered."""
        completed: int = self.summary["requests"]["completed"]
        return completed


def engine_load(plan: LoadPlan, cpu: int, folder: Path, *, back_end: str = "auto", owns_cpu: bool = True) -> EngineLoad:
    """Carry out a plan from `cpu`.

    The engine is bound to it either way; told that it is its own it does not sleep at once where nothing is there to
    do. A load that the engine does not call valid is an error: it would be no measurement.
    """
    path = folder / "plan.json"
    path.write_text(json.dumps({**plan.to_json(), "cpus": [cpu] if owns_cpu else [], "backend": back_end}))
    process = run_on(cpu, [find_engine_binary(), "load", "--plan", path], folder, plan.duration_s)
    records = [json.loads(line) for line in process.output.splitlines()]
    hello, end = records[0], records[-1]
    summary = end["summary"]
    if summary["requests"]["failed"] or summary["verdict"]["validity"] == "invalid":
        raise BenchError(f"weir's load failed: {summary['errors']}, {summary['verdict']}")
    return EngineLoad(summary, process, hello)
