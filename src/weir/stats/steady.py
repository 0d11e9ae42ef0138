"""Where a series takes on a new level, and whether it has come to rest.

PELT (Killick, Fearnhead & Eckley, JASA 2012) with a cost of squared deviations, from `ruptures`. Three things stand between the textbook
and series of a real server:

- *Spikes.* A pause of a few intervals is part of a steady state and no new level: values far from their neighbours' median are replaced by
  it (Hampel 1974). What lasts longer than half of that neighbourhood stays.
- *Memory.* Throughput of one interval is like that of the one before, so that it wanders more than independent noise would. The penalty is
  raised by how much that adds to the variance of a mean, (1 + r) ÷ (1 − r) with r the autocorrelation from one point to the next.
- *Size.* With enough points any change can be detected. Levels closer than the tolerance are one level.

Simulated (`tests/stats/test_steady.py`), with 60 points of two series and noise of 3 %: a change is found where there is none in fewer
than 1 of 100 trials if the noise is independent, in about 3 with r = 0.3, and in about 11 with r = 0.6.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import ruptures
from numpy.typing import NDArray

from weir.stats.mean import Estimate, drift

POINTS = 30
"""A series with fewer points says nothing about its levels."""
TOLERANCE = 0.02
"""What is closer than this is the same, and drifts by less."""
LEAST_SHARE = 0.5
"""The last level must last for at least this share of the series."""
_SHORTEST = 4
"""Points of the shortest level."""
_NEIGHBOURS = 11
_SPIKE_SIGMAS = 4.0
_PENALTY = 4.0
"""Times ln n and the variance of the noise. The textbook's 2 (BIC) errs more often than once in a hundred series of 60 points."""
_MOST_MEMORY = 0.8
"""Beyond this the levels themselves would be taken for memory."""
_KEPT = 0.9
_KEPT_VARIANCE = 0.6231
"""The variance of the smaller nine tenths of normal numbers, as a share of that of all: 1 − 2·z·φ(z) ÷ 0.9 with z = 1.645."""
_NORMAL_MAD = 1.4826
"""Standard deviations in a median absolute deviation, of a normal distribution."""

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Steady:
    """What several series of one length say together about when they came to rest."""

    changes: tuple[int, ...]
    """Where any of them takes on a new level: the index of its first point."""
    begin: int
    """From here on none of them does."""
    drift: Estimate | None
    """How far the one that moves most goes from there to the end, as a share of its mean; None where it has too few points."""
    points: int

    @property
    def share(self) -> float:
        """The part of the series that the last level takes."""
        return (self.points - self.begin) / self.points

    @property
    def drifts(self) -> bool:
        """Whether the last level is shown to move by more than the tolerance: its whole interval lies beyond."""
        return _is_beyond(self.drift)

    @property
    def is_steady(self) -> bool:
        """Whether the last level lasts long enough and does not drift."""
        return self.share >= LEAST_SHARE and not self.drifts


def change_points(values: Sequence[float]) -> list[int]:
    """Where a series takes on a new level: the index of each one's first point, but for the first level.

    >>> change_points([100, 101, 99, 100, 101] * 6 + [130, 131, 129, 130, 131] * 6)
    [30]

    Raises:
        ValueError: fewer than `POINTS` values, or one that is not finite.
    """
    observed = np.asarray(values, dtype=np.float64)
    if len(observed) < POINTS or not np.isfinite(observed).all():
        raise ValueError(f"expected at least {POINTS} finite numbers: {values!r}")
    return _levels(_without_spikes(observed))


def steady_part(series: Sequence[Sequence[float]]) -> Steady:
    """When several series of one length, such as throughput and response time, have all come to rest.

    Raises:
        ValueError: no series, unequal lengths, fewer than `POINTS` values, or one that is not finite.
    """
    if not series or len({len(values) for values in series}) != 1:
        raise ValueError("expected series of one length, at least one")
    points = len(series[0])
    changes = sorted({change for values in series for change in change_points(values)})
    begin = changes[-1] if changes else 0
    drifts = [found for values in series if (found := _drift(values[begin:])) is not None]
    farthest = max(drifts, key=lambda found: (_is_beyond(found), abs(found.value)), default=None)
    return Steady(tuple(changes), begin, farthest, points)


def _is_beyond(moved: Estimate | None) -> bool:
    if moved is None or moved.low is None or moved.high is None:
        return False
    return moved.low > TOLERANCE or moved.high < -TOLERANCE


def _without_spikes(observed: Array) -> Array:
    """Values far from the median of their neighbourhood become that median."""
    padded = np.pad(observed, _NEIGHBOURS // 2, mode="reflect")
    median = np.median(np.lib.stride_tricks.sliding_window_view(padded, _NEIGHBOURS), axis=1)
    apart = np.abs(observed - median)
    limit = _SPIKE_SIGMAS * max(_NORMAL_MAD * float(np.median(apart)), 1e-9 * float(np.abs(median).max()))
    cleaned: Array = np.where(apart > limit, median, observed)
    return cleaned


def _levels(observed: Array) -> list[int]:
    """Change points of a series without spikes."""
    noise, memory = _noise(observed)
    if noise == 0:
        return []
    scaled = ((observed - observed.mean()) / noise).reshape(-1, 1)
    penalty = _PENALTY * math.log(len(observed)) * (1 + memory) / (1 - memory)
    found: list[int] = ruptures.KernelCPD(kernel="linear", min_size=_SHORTEST).fit_predict(scaled, pen=penalty)
    return _apart(observed, found[:-1])


def _apart(observed: Array, changes: Sequence[int]) -> list[int]:
    """Those of `changes` that part levels farther from each other than the tolerance, the closest pair joined first."""
    kept = list(changes)
    while kept:
        edges = [0, *kept, len(observed)]
        means = [float(observed[low:high].mean()) for low, high in pairwise(edges)]
        steps = [abs(after - before) / max(abs(before), abs(after), 1e-300) for before, after in pairwise(means)]
        closest = min(range(len(steps)), key=steps.__getitem__)
        if steps[closest] > TOLERANCE:
            break
        del kept[closest]
    return kept


def _noise(observed: Array) -> tuple[float, float]:
    """The standard deviation of a series around its levels, and its memory: the autocorrelation from one point to the next.

    Both from differences, which levels do not touch but where they change: over one point they have the variance 2σ²(1 − r), over two
    points 2σ²(1 − r²). The largest tenth of them, changes of level among them, is left out.
    """
    near, far = (_trimmed_variance(observed[lag:] - observed[:-lag]) for lag in (1, 2))
    if near == 0:
        # Mostly equal values: what is left of their spread is the noise.
        return float(np.diff(observed).std()) / math.sqrt(2), 0.0
    memory = min(max(far / near - 1, 0.0), _MOST_MEMORY)
    return math.sqrt(near / 2 / (1 - memory)), memory


def _trimmed_variance(differences: Array) -> float:
    """The variance of normal numbers around 0, from the smaller nine tenths of them."""
    squares = np.sort(differences**2)
    return float(squares[: math.ceil(_KEPT * len(squares))].mean()) / _KEPT_VARIANCE


def _drift(values: Sequence[float]) -> Estimate | None:
    """`drift` of a level without its spikes, its interval widened by the level's memory."""
    observed = np.asarray(values, dtype=np.float64)
    if len(observed) < POINTS // 2:
        return None
    cleaned = _without_spikes(observed)
    moments = np.arange(len(cleaned), dtype=np.float64)
    moved = drift(list(moments), list(cleaned))
    if moved is None or moved.low is None or moved.high is None:
        return moved
    _, memory = _noise(cleaned)
    wider = math.sqrt((1 + memory) / (1 - memory))
    half_width = (moved.high - moved.low) / 2 * wider
    return Estimate(moved.value, moved.value - half_width, moved.value + half_width, moved.count)
