"""Statistics of repeated trials: pure functions on numbers.

Nothing here knows about stacks, files or screens. The trial is the unit of evidence; formulas and their sources are in the docstrings.
"""

from weir.stats.comparison import Ratio, equivalent, holm, more_than_chance, paired_ratio, pooled_spread
from weir.stats.detectable import blocks_to_detect, detectable_ratio
from weir.stats.mean import Estimate, drift, mean_interval, needed_blocks
from weir.stats.quantile import SAMPLES_BEYOND, Quantile, is_supported, merged_quantiles

__all__ = [
    "SAMPLES_BEYOND",
    "Estimate",
    "Quantile",
    "Ratio",
    "blocks_to_detect",
    "detectable_ratio",
    "drift",
    "equivalent",
    "holm",
    "is_supported",
    "mean_interval",
    "merged_quantiles",
    "more_than_chance",
    "needed_blocks",
    "paired_ratio",
    "pooled_spread",
]
