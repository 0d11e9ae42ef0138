"""Computes how long each phase of a trial takes: the median over the trials of each stack."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import sub
from statistics import median

from weir.model.run_types import Trial

PHASES = ("services", "ready", "check", "warmup", "pause", "load", "observe", "after", "stop")


@dataclass(frozen=True, slots=True)
class StackTimes:
    """Medians over the trials of one stack, in seconds. A phase is None if no trial has it."""

    label: str
    trials: int
    phases_s: dict[str, float | None]
    between_s: float | None
    """Time from the end of a trial to the start of the next trial; None if no trial follows."""
    beyond_load_s: float
    """Time of a trial minus the time of the load."""
    beyond_asked_s: float
    """Time of a trial minus the times of the load, of the warm-up and of the pause."""


def split_trial_times(trials: Sequence[Trial]) -> list[StackTimes]:
    """Returns the median times of each stack over the trials that ran a load."""
    gaps = {
        before.id: (after.started_unix_ns - before.started_unix_ns) / 1e9 - before.result.phases_s.get("total", 0.0)
        for before, after in pairwise(trials)
    }
    by_stack: dict[str, list[Trial]] = {}
    for trial in trials:
        if trial.result.summary is not None and trial.result.phases_s:
            by_stack.setdefault(trial.cell.stack_label, []).append(trial)
    return [_times(label, mine, gaps) for label, mine in by_stack.items()]


def _times(label: str, trials: Sequence[Trial], gaps: dict[int, float]) -> StackTimes:
    phases = [trial.result.phases_s for trial in trials]
    found = {phase: [of[phase] for of in phases if phase in of] for phase in PHASES}
    between = [gaps[trial.id] for trial in trials if trial.id in gaps]
    beyond_load_s = [of["total"] - _loaded_s(trial) for of, trial in zip(phases, trials, strict=True)]
    asked_s = [of.get("warmup", 0.0) + of.get("pause", 0.0) for of in phases]
    return StackTimes(
        label=label,
        trials=len(trials),
        phases_s={phase: median(values) if values else None for phase, values in found.items()},
        # The median ignores the one long gap of an interrupted run.
        between_s=median(between) if between else None,
        beyond_load_s=median(beyond_load_s),
        beyond_asked_s=median(map(sub, beyond_load_s, asked_s)),
    )


def _loaded_s(trial: Trial) -> float:
    load = trial.result.whole_load or trial.result.summary
    return load.duration_s if load is not None else 0.0
