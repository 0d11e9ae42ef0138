"""Tests intervals of merged quantiles on simulated studies whose truth is known."""

import itertools
from collections import Counter

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.tiers import cases
from weir import stats
from weir.model import hdr as histogram
from weir.stats.bootstrap import bootstrap_weights, percentile_interval, small_sample_inflation

EDGES = np.array([histogram.highest_at(index) for index in range(histogram.BUCKETS)])
SAMPLES = 3_000
P50, P99 = 0.5, 0.99


def recorded(values_ns: NDArray[np.float64]) -> bytes:
    """Returns the times rounded as the engine's histogram holds them."""
    buckets, counts = np.unique(np.searchsorted(EDGES, values_ns), return_counts=True)
    return histogram.encoded(dict(zip(buckets.tolist(), counts.tolist(), strict=True)))


def trial(rng: np.random.Generator, kind: str, place: float) -> NDArray[np.float64]:
    """Returns the response times of a trial around 1 ms; a process is slower or faster than others by a few percent.

    Args:
        rng: draws the times.
        kind: the kind of distribution.
        place: 0 for the first trial of a study, 1 for the last.
    """
    shift = rng.normal(0, 0.05)
    match kind:
        case "heavy":
            times = rng.lognormal(0, 0.3, SAMPLES) * np.where(
                rng.random(SAMPLES) < 0.02, rng.pareto(2.5, SAMPLES) + 2, 1
            )
        case "drifting":
            times = rng.lognormal(0, 0.3, SAMPLES) * np.exp(
                0.05 * (np.linspace(0, 1, SAMPLES) - 0.5) + 0.05 * (place - 0.5)
            )
        case _:
            times = rng.lognormal(0, 0.3, SAMPLES)
    scaled: NDArray[np.float64] = 1e6 * times * np.exp(shift)
    return scaled


@pytest.mark.parametrize(
    ("kind", "blocks"), cases(list(itertools.product(("heavy", "drifting", "plain"), (10, 20))), kept=1)
)
def test_intervals_of_quantiles_cover_the_truth_in_95_percent_of_studies(kind: str, blocks: int) -> None:
    rng = np.random.default_rng(23)
    # The system has two thousand trials with known quantiles. Each study draws one trial for each of its moments.
    system = [[recorded(trial(rng, kind, place)) for _ in range(2000 // blocks)] for place in np.linspace(0, 1, blocks)]
    merged = Counter[int]()
    for trials in system:
        for one in trials:
            merged.update(histogram.counts_in(one))
    truth = {
        quantile.probability: quantile.value
        for quantile in stats.merge_quantiles([histogram.encoded(merged)], (P50, P99))
    }
    covered = dict.fromkeys(truth, 0)
    for _ in range(1000):
        study = [trials[rng.integers(len(trials))] for trials in system]
        for quantile in stats.merge_quantiles(study, (P50, P99)):
            assert quantile.low is not None
            assert quantile.high is not None
            known = truth[quantile.probability]
            assert known is not None
            covered[quantile.probability] += quantile.low <= known <= quantile.high
    for probability, count in covered.items():
        assert 0.93 <= count / 1000 <= 0.97, (probability, count)


def test_fewer_trials_than_an_interval_needs_give_none() -> None:
    rng = np.random.default_rng(1)
    (median,) = stats.merge_quantiles([recorded(trial(rng, "plain", 0)) for _ in range(9)], (P50,))
    assert median.value is not None
    assert (median.low, median.high) == (None, None)


def test_trials_that_are_alike_have_an_interval_of_no_width() -> None:
    (median,) = stats.merge_quantiles([recorded(trial(np.random.default_rng(1), "plain", 0))] * 10, (P50,))
    assert median.low == pytest.approx(median.value)
    assert median.high == pytest.approx(median.value)


def test_an_interval_is_that_of_the_quantiles_of_all_draws_one_by_one() -> None:
    rng = np.random.default_rng(5)
    parts = [recorded(trial(rng, "heavy", 0)) for _ in range(12)]
    counts = np.zeros((12, histogram.BUCKETS))
    for row, part in zip(counts, parts, strict=True):
        for bucket, often in histogram.counts_in(part).items():
            row[bucket] = often
    for found in stats.merge_quantiles(parts, (P50, P99)):
        assert found.value is not None
        drawn = []
        for weights in bootstrap_weights(12):
            reached = np.cumsum(weights @ counts)
            drawn.append(EDGES[np.searchsorted(reached, found.probability * reached[-1] - 1e-6)])
        moved = small_sample_inflation(12) * np.log(np.array(drawn) / found.value)
        low, high = percentile_interval(moved)
        assert (found.low, found.high) == pytest.approx(
            (found.value * np.exp(low), found.value * np.exp(high)), rel=1e-12
        )
