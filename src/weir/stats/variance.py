"""Where the spread of a figure comes from: within trials, between trials, or between blocks.

What varies most is what more measuring has to be spent on: longer loads, more trials, or another day.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weir.stats.mean import Array

_BATCHES = 10
"""A series is cut into so many parts, whose means are taken as independent (Law & Carson, Operations Research 1979)."""


@dataclass(frozen=True, slots=True)
class Variance:
    """Relative standard deviations of one trial's figure, by where they come from. Their squares add up."""

    within: float
    """What chance within the window leaves of its mean: a longer load makes it smaller."""
    between_trials: float
    """What fresh processes differ by beyond that, in one block: more trials average it."""
    between_blocks: float
    """What all systems of a block have in common: it cancels where they are compared by block."""
    trials: int
    blocks: int


def error_of_mean(values: Sequence[float] | Array) -> float | None:
    """The relative standard error of the mean of a series whose neighbours resemble one another, by the means of batches.

    None where it is too short, or its mean is 0.
    """
    observed = np.asarray(values, dtype=np.float64)
    length = len(observed) // _BATCHES
    if length < 1 or not observed.any():
        return None
    batches = observed[len(observed) - length * _BATCHES :].reshape(_BATCHES, length).mean(axis=1)
    return float(batches.std(ddof=1)) / math.sqrt(_BATCHES) / abs(float(observed.mean()))


def split_variance(logarithms: Sequence[Sequence[float]], errors: Sequence[float]) -> Variance | None:
    """How much of the spread lies where, by analysis of variance with each system at its own level.

    ln X of system c in block b is taken as m_c + B_b + e_cb. With one trial of each the mean square between blocks estimates
    σ²_trial + (systems)·σ²_block, and what remains σ²_trial, of which the variance within trials is a part.

    Args:
        logarithms: of each block, the natural logarithm of the figure of each system, all in one order.
        errors: the relative standard error of each trial's own mean, in any order.

    Returns:
        None with fewer than two blocks or two systems: what blocks and trials do cannot be told apart then.

    Raises:
        ValueError: blocks of different length, or a value that is not finite.
    """
    if len(logarithms) < 2 or min(map(len, logarithms)) < 2:
        return None
    table: Array = np.array(logarithms, dtype=np.float64)
    if table.ndim != 2 or not np.isfinite(table).all():
        raise ValueError("expected one finite value of every system in every block")
    blocks, systems = table.shape
    residuals = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
    of_trials = float((residuals**2).sum()) / ((blocks - 1) * (systems - 1))
    of_blocks = systems * float(table.mean(axis=1).var(ddof=1))
    within = float(np.mean(np.square(errors))) if len(errors) else 0.0
    return Variance(
        within=math.sqrt(within),
        between_trials=math.sqrt(max(of_trials - within, 0.0)),
        between_blocks=math.sqrt(max(of_blocks - of_trials, 0.0) / systems),
        trials=blocks * systems,
        blocks=blocks,
    )
