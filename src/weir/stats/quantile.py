"""Quantiles of merged histograms, and whether the samples support them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from weir.model import histogram

SAMPLES_BEYOND = 100
"""A quantile is printed when at least this many samples lie beyond it."""


@dataclass(frozen=True, slots=True)
class Quantile:
    """The value below which the share `probability` of `samples` lies; None where there are no samples."""

    probability: float
    value: float | None
    samples: int

    @property
    def supported(self) -> bool:
        """Whether enough samples lie beyond it to print it."""
        return self.value is not None and is_supported(self.samples, self.probability)


def is_supported(samples: int, probability: float) -> bool:
    """Whether at least `SAMPLES_BEYOND` of `samples` lie beyond the quantile, on its shorter side.

    >>> is_supported(10_000, 0.99), is_supported(9_999, 0.99)
    (True, False)
    """
    # In parts per million, so that 0.99 of 10,000 is not 9,900.000000000002.
    beyond = min(probability, 1 - probability)
    return samples * round(beyond * 1_000_000) >= SAMPLES_BEYOND * 1_000_000


def merged_quantiles(parts: Iterable[bytes], probabilities: Sequence[float]) -> list[Quantile]:
    """Quantiles of all samples in `parts` together (HdrHistogram V2), in the histograms' unit.

    Merging, not averaging: the mean of two p99 is the p99 of nothing. Values carry three significant digits, the histograms' own.
    """
    merged = histogram.merge(parts)
    samples = int(merged.get_total_count())
    return [
        Quantile(probability, float(merged.get_value_at_percentile(probability * 100)) if samples else None, samples)
        for probability in probabilities
    ]
