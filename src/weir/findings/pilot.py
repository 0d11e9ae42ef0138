"""Measures the spread and the overhead of trials in an earlier run. The plan of a new run uses both."""

import math
from dataclasses import dataclass
from itertools import pairwise
from statistics import median, variance

from weir.findings.evidence import pair_by_block
from weir.findings.metrics import BY_KEY, THROUGHPUT
from weir.findings.points import group_points
from weir.model.errors import UsageError
from weir.model.run_types import Cell
from weir.store import RunReader


@dataclass(frozen=True, slots=True)
class Pilot:
    """The spread, overhead and memory of trials in an earlier run."""

    spread: float
    """Standard deviation of ln(throughput ratio) between two cells in the same block, pooled over all pairs of cells."""
    pairs: int
    """Degrees of freedom of `spread`."""
    overhead_s: dict[str, float]
    """A dict from stack label to the median time of a trial without its load, warm-up and pause."""
    memory_bytes: dict[str, int]
    """A dict from stack label to the peak memory of one process."""


def measure_pilot(reader: RunReader) -> Pilot:
    """Computes the spread, overhead and memory of a run's trials. Raises UsageError unless two blocks have usable
    trials of two stacks."""
    cells, trials = reader.cells(), reader.trials()
    squares, degrees = 0.0, 0
    for point in group_points(cells, trials):
        first = point.members[0]
        for other in point.members[1:]:
            logs = list(pair_by_block(other, first, BY_KEY[THROUGHPUT]).log_ratios.values())
            if len(logs) > 1:
                squares += variance(logs) * (len(logs) - 1)
                degrees += len(logs) - 1
    if not degrees:
        problem = "found fewer than two blocks in which two stacks can be compared, expected at least two"
        raise UsageError(f"--pilot: {reader.path}: {problem}", hint="use --assume-cv 5% instead of --pilot")
    overheads: dict[str, list[float]] = {}
    for trial, following in pairwise(trials):
        phases_s = trial.result.phases_s
        if "load" in phases_s:
            whole_s = (following.started_unix_ns - trial.started_unix_ns) / 1e9
            asked_for_s = phases_s["load"] + phases_s.get("warmup", 0.0) + phases_s.get("pause", 0.0)
            overheads.setdefault(_label(trial.cell), []).append(whole_s - asked_for_s)
    memory: dict[str, int] = {}
    for trial in trials:
        used = trial.result.resources
        if used is not None and used.pss_bytes is not None:
            label = _label(trial.cell)
            memory[label] = max(memory.get(label, 0), used.pss_bytes // trial.cell.replicas)
    return Pilot(
        spread=math.sqrt(squares / degrees),
        pairs=degrees,
        # The median ignores the one long gap of an interrupted and resumed run.
        overhead_s={label: max(0.0, median(found)) for label, found in overheads.items()},
        memory_bytes=memory,
    )


def _label(cell: Cell) -> str:
    return f"{cell.stack}[{cell.variant}]" if cell.variant else cell.stack
