"""Computes the smallest difference that a study can detect, and the number of blocks for a given difference."""

import math
from bisect import bisect_left

from weir.stats.distributions import noncentral_student_cdf, student_quantile
from weir.stats.mean import CONFIDENCE, MAX_BLOCKS

POWER = 0.8
"""Required probability that a study detects a true difference. The value 0.8 is usual."""


def minimum_detectable_ratio(spread: float, blocks: int, comparisons: int = 1) -> float | None:
    """Returns the smallest true ratio above 1 that a paired t test on log ratios detects with probability `POWER`.

    The ratio is exp(λ·s/√n). The noncentrality λ solves P(|T| > t(1 − α/2m; n−1)) = power for T ~ noncentral t(n−1, λ).
    The test uses α/m, the first and strictest step of Holm's correction for m comparisons. So the result does not
    depend on the other comparisons. Returns None with fewer than two blocks. Sources: Cohen, Statistical Power
    Analysis, 1988, 2.3; Kalibera & Jones, ISMM 2013 (pairs from one block).

    `spread` is s, the standard deviation of the log ratio of two trials in one block. It is about √2 × a trial's
    coefficient of variation. `blocks` is n, the number of pairs. `comparisons` is m, the number of comparisons.

    >>> round(minimum_detectable_ratio(spread=0.07, blocks=10), 3)
    1.072

    Raises ValueError if `spread` is negative, or if `comparisons` is below 1.
    """
    if spread < 0 or comparisons < 1:
        raise ValueError(f"found {spread = } and {comparisons = }, expected spread >= 0 and comparisons >= 1")
    if blocks < 2:
        return None
    # Imported here, because the import is slow.
    from scipy.optimize import brentq

    critical = -student_quantile((1 - CONFIDENCE) / comparisons / 2, blocks - 1)

    def beyond(noncentrality: float) -> float:
        # The other tail is empty for a power above a half.
        return 1 - noncentral_student_cdf(critical, blocks - 1, noncentrality) - POWER

    highest = critical + 1.0
    while beyond(highest) < 0:
        highest *= 2
    noncentrality = float(brentq(beyond, 0.0, highest))
    exponent = noncentrality * spread / math.sqrt(blocks)
    return math.exp(exponent) if exponent < 700 else math.inf


def blocks_to_detect(ratio: float, spread: float, comparisons: int = 1) -> int:
    """Returns the minimum number of blocks with which a study detects the true ratio `ratio` with probability `POWER`.

    >>> blocks_to_detect(1.05, spread=0.07)
    19

    Raises ValueError if the ratio is not above 1.
    """
    if ratio <= 1:
        raise ValueError(f"found ratio {ratio}, expected a ratio above 1")

    def enough(blocks: int) -> bool:
        found = minimum_detectable_ratio(spread, blocks, comparisons)
        return found is not None and found <= ratio

    # More blocks always detect more: False … False, True … True.
    return min(bisect_left(range(MAX_BLOCKS), True, lo=2, key=enough), MAX_BLOCKS)
