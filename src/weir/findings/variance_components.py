"""Splits the variance of a run's throughput: within trials, between trials, and between blocks."""

import math
from collections.abc import Sequence
from operator import itemgetter

from weir import stats
from weir.findings.formatting import counted
from weir.findings.metrics import BY_KEY, THROUGHPUT
from weir.findings.types import Variation
from weir.model.run_types import Trial
from weir.store import Answered, RunReader

_SMALL = 0.0005
"""Reports show a share below this value as 0.0 %."""


def split_variation(reader: RunReader, used: Sequence[Trial]) -> Variation | None:
    """Splits the variance of throughput, from blocks with a counted trial of every cell; None with too few blocks."""
    values: dict[int, dict[int, float]] = {}
    for trial in used:
        value = BY_KEY[THROUGHPUT].of(trial)
        if value is not None and value > 0:
            values.setdefault(trial.cell.id, {})[trial.block] = math.log(value)
    if len(values) < 2:
        return None
    common = sorted(set.intersection(*(set(of_cell) for of_cell in values.values())))
    table = [[of_cell[block] for of_cell in values.values()] for block in common]
    if len(table) < 2:
        return None
    counted_trials = [trial for trial in used if trial.block in common and trial.cell.id in values]
    errors = [error for trial in counted_trials if (error := _error(reader, trial)) is not None]
    found = stats.estimate_variance_components(table, errors)
    return None if found is None else Variation(found, _sentence(found))


def _error(reader: RunReader, trial: Trial) -> float | None:
    start_s = 0.0 if trial.result.window is None else trial.result.window.start_s
    return stats.relative_standard_error(drop_partial_interval(reader.answered(trial.id), start_s).rate_rps)


def drop_partial_interval(answered: Answered, from_s: float = -math.inf) -> Answered:
    """Drops intervals that start before `from_s`, and intervals shorter than half of the longest interval."""
    lengths_s = answered.end_s - answered.start_s
    later = answered.start_s >= from_s
    whole = later & (lengths_s > lengths_s.max(initial=0.0, where=later) / 2)
    return Answered(*(column[whole] for column in answered))


def _sentence(found: stats.VarianceComponents) -> str:
    parts = (
        (found.within, "within trials", "longer loads would narrow the intervals most"),
        (found.between_trials, "between trials", "more blocks would narrow the intervals most"),
        (found.between_blocks, "between blocks", "comparisons are free from differences between blocks"),
    )
    said = ", ".join(f"{value * 100:.1f} % {name}" for value, name, _ in parts)
    most, _, advice = max(parts, key=itemgetter(0))
    tail = f"; {advice}" if most > _SMALL else ""
    return f"Throughput varies by {said} ({counted(found.trials, 'trial')} in {counted(found.blocks, 'block')}){tail}."
