"""Compares two systems: ratios, corrections for several comparisons, equivalence, and noise of identical systems."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weir.stats.distributions import binomial_survival, chi_square_upper_quantile, student_cdf
from weir.stats.mean import CONFIDENCE, Estimate, t_quantile
from weir.stats.sequential import widen_interval

EQUIVALENCE_MARGIN = 0.02
"""Maximum relative difference of two systems that count as equal."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """Mean ratio A ÷ B over blocks. Interval, p-value and spread are None with fewer than two pairs. They are also None
    if all ratios are equal and the caller gave no rounding."""

    value: float
    low: float | None
    high: float | None
    pairs: int
    p_value: float | None
    """Two-sided p-value of the hypothesis that the ratio is 1."""
    spread: float | None
    """Standard deviation of the blocks' log ratios: about the coefficient of variation of a block's ratio."""


def paired_ratio(
    numerators: Sequence[float],
    denominators: Sequence[float],
    confidence: float = CONFIDENCE,
    *,
    first_look: int | None = None,
    rounding: float = 0.0,
) -> Ratio:
    """Returns the geometric mean of A/B over blocks with its t interval, exp(mean ln(A/B) ± t·s/√n).

    The i-th numerator and denominator come from the same block, so effects of the block cancel. `first_look`: the first
    number of blocks after which a narrow interval may end the run. Such a run has a wider interval and a larger p-value
    (`widen_interval`). `rounding`: standard deviation of a log ratio from rounding of the values alone. The spread is
    at least `rounding`, because rounded values may be equal by chance.

    >>> ratio = paired_ratio([410.0, 395.0, 420.0], [100.0, 100.0, 100.0])
    >>> round(ratio.value, 2), round(ratio.low, 2), round(ratio.high, 2)
    (4.08, 3.78, 4.41)

    Raises ValueError if the lengths differ, or if a value is not positive and finite.
    """
    pairs = list(zip(numerators, denominators, strict=True))
    if not pairs or not all(value > 0 and math.isfinite(value) for pair in pairs for value in pair):
        raise ValueError(f"found {pairs!r}, expected at least one pair of positive numbers")
    logs = [math.log(numerator) - math.log(denominator) for numerator, denominator in pairs]
    mean, degrees = float(np.mean(logs)), len(logs) - 1
    spread = max(float(np.std(logs, ddof=1)) if np.ptp(logs) else 0.0, rounding) if degrees else 0.0
    if spread == 0.0:
        return Ratio(math.exp(mean), None, None, len(logs), None, None)
    error = widen_interval(len(logs), first_look) * spread / math.sqrt(len(logs))
    half_width, p_value = t_quantile(degrees, confidence) * error, 2 * student_cdf(-abs(mean / error), degrees)
    return Ratio(math.exp(mean), math.exp(mean - half_width), math.exp(mean + half_width), len(logs), p_value, spread)


@dataclass(frozen=True, slots=True)
class Change:
    """The ratio after ÷ before from two independent runs."""

    value: float
    low: float | None
    high: float | None
    error: float | None
    """Standard error of the ratio's logarithm. Error and interval are None if a side has fewer than two values, or if
    neither side has spread."""
    degrees: float | None
    """Degrees of freedom of the logarithm's t distribution (Welch and Satterthwaite)."""

    def p_above(self, bound: float) -> float | None:
        """Returns the one-sided p-value of the hypothesis "ratio at most `bound`". None without an interval."""
        if self.error is None or self.degrees is None:
            return None
        return student_cdf(-(math.log(self.value) - math.log(bound)) / self.error, self.degrees)

    def p_below(self, bound: float) -> float | None:
        """Returns the one-sided p-value of the hypothesis "ratio at least `bound`". None without an interval."""
        above = self.p_above(bound)
        return None if above is None else 1 - above


def compare_independent(before: Sequence[float], after: Sequence[float]) -> Change:
    """Returns the ratio after ÷ before of two geometric means, with Welch's t interval of the log ratio.

    The values come from two separate runs, so they have no pairs. Source: Welch, Biometrika 1947.

    >>> found = compare_independent([100.0, 102.0, 98.0], [110.0, 113.0, 108.0])
    >>> round(found.value, 3), round(found.low, 3), round(found.high, 3)
    (1.103, 1.051, 1.159)

    Raises ValueError if a side is empty, or if a value is not positive and finite.
    """
    if not all(len(side) and all(0 < value < math.inf for value in side) for side in (before, after)):
        raise ValueError(f"found {before!r} and {after!r}, expected positive numbers on both sides")
    sides = [np.log(np.asarray(side, dtype=np.float64)) for side in (before, after)]
    moved = float(sides[1].mean() - sides[0].mean())
    parts = [float(side.var(ddof=1)) / len(side) if len(side) > 1 else math.nan for side in sides]
    error = math.sqrt(sum(parts))
    if not error > 0:
        return Change(math.exp(moved), None, None, None, None)
    degrees = sum(parts) ** 2 / sum(part**2 / (len(side) - 1) for part, side in zip(parts, sides, strict=True))
    reach = t_quantile(degrees) * error
    return Change(math.exp(moved), math.exp(moved - reach), math.exp(moved + reach), error, degrees)


def holm(p_values: Sequence[float]) -> list[float]:
    """Returns p-values adjusted for multiple comparisons, in the given order. Source: Holm, Scand. J. Statist. 1979.

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    adjusted, highest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def tost_equivalent(numerators: Sequence[float], denominators: Sequence[float]) -> bool:
    """Returns whether the data show, at a level of 5 %, that two systems are equal within `EQUIVALENCE_MARGIN` (m).

    The test (two one-sided tests, Schuirmann 1987) requires that the 90 % interval of the ratio lies between 1/(1+m)
    and 1+m. False does not mean that the systems differ: the data may be inconclusive.
    """
    ratio = paired_ratio(numerators, denominators, confidence=0.90)
    if ratio.low is None or ratio.high is None:
        return False
    return ratio.low > 1 / (1 + EQUIVALENCE_MARGIN) and ratio.high < 1 + EQUIVALENCE_MARGIN


def exceeds_chance(errors: int, intervals: int) -> bool:
    """Returns whether `errors` of `intervals` 95 % intervals are significantly more than 5 % (one-sided, 5 % level).

    >>> exceeds_chance(1, 6), exceeds_chance(3, 6)
    (False, True)
    """
    return errors > 0 and binomial_survival(errors - 1, intervals, 1 - CONFIDENCE) < 0.05


def rms_log_ratio(differences: Sequence[float]) -> Estimate:
    """Returns the root mean square of log ratios between two copies of one system, with its χ² interval.

    The true mean is 0, so n log ratios have n degrees of freedom. The variance's interval is n·s²/χ²(1−α/2) …
    n·s²/χ²(α/2). The result is about equal to the relative difference: 0.02 means 2 %. Raises ValueError if there is
    no log ratio, or if a log ratio is not finite.
    """
    observed = np.asarray(differences, dtype=np.float64)
    if len(observed) == 0 or not np.isfinite(observed).all():
        raise ValueError(f"found log ratios {differences!r}, expected at least one, all of them finite")
    total, count, tail = float((observed**2).sum()), len(observed), (1 - CONFIDENCE) / 2
    low, high = (math.sqrt(total / chi_square_upper_quantile(share, count)) for share in (tail, 1 - tail))
    return Estimate(math.sqrt(total / count), low, high, count)
