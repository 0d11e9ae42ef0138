"""Statistics of repeated trials: pure functions on numbers. The functions do not use stacks, files or screens. A trial
is one observation. Docstrings contain formulas and sources."""

from weir.stats.bootstrap import MIN_BLOCKS
from weir.stats.capacity_search import (
    KNEE_SHARE,
    MIN_SEARCHES,
    Attempt,
    Goal,
    Knee,
    SearchResult,
    estimate_capacity,
    search_capacity,
    search_knee,
    summarize_searches,
)
from weir.stats.comparison import (
    Change,
    Ratio,
    compare_independent,
    exceeds_chance,
    holm,
    paired_ratio,
    rms_log_ratio,
    tost_equivalent,
)
from weir.stats.crossover import NARROW, Crossing, Crossings, find_crossings
from weir.stats.mean import Estimate, blocks_for_precision, drift, mean_interval
from weir.stats.power import blocks_to_detect, minimum_detectable_ratio
from weir.stats.quantile import SAMPLES_BEYOND, Quantile, is_supported, merge_quantiles, quantiles_by_group
from weir.stats.queueing import ClosedPrediction, Demand, Station, estimate_service_demand, solve_closed_system
from weir.stats.scalability import Scalability, fit_scalability
from weir.stats.variance_model import VarianceComponents, estimate_variance_components, relative_standard_error
