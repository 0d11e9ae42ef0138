"""Estimates the components of a figure's variance: within trials, between trials, and between blocks. The largest
component shows how to reduce the variance: by longer loads, by more trials, or by more blocks."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weir.stats.mean import Array

_BATCHES = 10
"""Number of equal parts (batches) of a series. Batch means count as independent (Law & Carson, Oper. Res. 1979)."""


@dataclass(frozen=True, slots=True)
class VarianceComponents:
    """Relative standard deviations of one trial's figure, by source of noise. Their squares add up to the variance."""

    within: float
    """Noise of the mean within a trial's window. A longer load reduces this noise."""
    between_trials: float
    """Differences between fresh processes in one block, beyond `within`. More trials average out these differences."""
    between_blocks: float
    """Common change of all systems in a block. Comparisons within blocks cancel this change."""
    trials: int
    blocks: int


def relative_standard_error(values: Sequence[float] | Array) -> float | None:
    """Returns the relative standard error of the mean of an autocorrelated series, by batch means. Returns None if the
    series is too short, or if its mean is 0."""
    observed = np.asarray(values, dtype=np.float64)
    length = len(observed) // _BATCHES
    if length < 1 or not observed.any():
        return None
    batches = observed[len(observed) - length * _BATCHES :].reshape(_BATCHES, length).mean(axis=1)
    return float(batches.std(ddof=1)) / math.sqrt(_BATCHES) / abs(float(observed.mean()))


def estimate_variance_components(
    logarithms: Sequence[Sequence[float]], errors: Sequence[float]
) -> VarianceComponents | None:
    """Estimates the variance components by analysis of variance, with a separate mean for each system.

    The model is ln X = m_c + B_b + e_cb for system c in block b, with one trial of each system in each block. The mean
    square between blocks estimates σ²_trial + (systems)·σ²_block. The residual mean square estimates σ²_trial, which
    includes the variance within trials.

    `logarithms` has a row for each block: the natural logarithms of the systems' figures, in the same order of systems.
    `errors` has the relative standard error of each trial's mean, in any order. Returns None with fewer than two blocks
    or two systems, because blocks and trials are then inseparable. Raises ValueError if a value is missing or infinite.
    """
    if len(logarithms) < 2 or min(map(len, logarithms)) < 2:
        return None
    table: Array = np.array(logarithms, dtype=np.float64)
    if table.ndim != 2 or not np.isfinite(table).all():
        raise ValueError("found a value that is missing or not finite, expected a value of every system in every block")
    blocks, systems = table.shape
    residuals = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
    of_trials = float((residuals**2).sum()) / ((blocks - 1) * (systems - 1))
    of_blocks = systems * float(table.mean(axis=1).var(ddof=1))
    within = float(np.mean(np.square(errors))) if len(errors) else 0.0
    return VarianceComponents(
        within=math.sqrt(within),
        between_trials=math.sqrt(max(of_trials - within, 0.0)),
        between_blocks=math.sqrt(max(of_blocks - of_trials, 0.0) / systems),
        trials=blocks * systems,
        blocks=blocks,
    )
