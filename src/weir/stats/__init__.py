"""Statistics of repeated trials: pure functions on numbers.

Nothing here knows about stacks, files or screens. The trial is the unit of evidence; formulas and their sources are in the docstrings.
"""

from weir.stats.capacity import (
    KNEE_SHARE,
    LEAST_SEARCHES,
    Attempt,
    Goal,
    Knee,
    Search,
    capacity_interval,
    over_searches,
    search_capacity,
    search_knee,
)
from weir.stats.comparison import Change, Ratio, change, equivalent, holm, more_than_chance, paired_ratio, pooled_spread
from weir.stats.crossing import NARROW, Crossing, Crossings, crossings
from weir.stats.detectable import blocks_to_detect, detectable_ratio
from weir.stats.mean import Estimate, drift, mean_interval, needed_blocks
from weir.stats.quantile import SAMPLES_BEYOND, Quantile, is_supported, merged_quantiles, quantiles_by_group
from weir.stats.queueing import BUSY, Demand, Predicted, Station, closed_system, most_throughput, narrowest, service_demand
from weir.stats.resample import LEAST_BLOCKS
from weir.stats.scalability import Scalability, scalability
from weir.stats.variance import Variance, error_of_mean, split_variance

__all__ = [
    "BUSY",
    "KNEE_SHARE",
    "LEAST_BLOCKS",
    "LEAST_SEARCHES",
    "NARROW",
    "SAMPLES_BEYOND",
    "Attempt",
    "Change",
    "Crossing",
    "Crossings",
    "Demand",
    "Estimate",
    "Goal",
    "Knee",
    "Predicted",
    "Quantile",
    "Ratio",
    "Scalability",
    "Search",
    "Station",
    "Variance",
    "blocks_to_detect",
    "capacity_interval",
    "change",
    "closed_system",
    "crossings",
    "detectable_ratio",
    "drift",
    "equivalent",
    "error_of_mean",
    "holm",
    "is_supported",
    "mean_interval",
    "merged_quantiles",
    "more_than_chance",
    "most_throughput",
    "narrowest",
    "needed_blocks",
    "over_searches",
    "paired_ratio",
    "pooled_spread",
    "quantiles_by_group",
    "scalability",
    "search_capacity",
    "search_knee",
    "service_demand",
    "split_variance",
]
