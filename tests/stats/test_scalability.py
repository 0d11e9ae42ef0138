"""Fits the universal scalability law to curves that follow it and to curves that do not."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import nnls

from tests.support.tiers import cases
from weir import stats
from weir.stats.scalability import fit_nonnegative

PLACES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)


def law(gamma: float, alpha: float, beta: float) -> Callable[[float], float]:
    return lambda n: gamma * n / (1 + alpha * (n - 1) + beta * n * (n - 1))


def measured(
    curve: Callable[[float], float], rng: np.random.Generator, blocks: int, noise: float
) -> list[dict[float, float]]:
    return [{place: curve(place) * math.exp(rng.normal(0, noise)) for place in PLACES} for _ in range(blocks)]


@pytest.mark.parametrize(("alpha", "beta"), [(0.02, 0.0002), (0.1, 0.001), (0.0, 0.0005), (0.05, 0.0002)])
def test_the_peak_is_recovered_within_5_percent(alpha: float, beta: float) -> None:
    rng = np.random.default_rng(13)
    true = math.sqrt((1 - alpha) / beta)
    errors = []
    for _ in range(200):
        fitted = stats.fit_scalability(measured(law(1000.0, alpha, beta), rng, 10, 0.05))
        assert fitted is not None
        assert not fitted.is_poor
        assert fitted.peak_at is not None
        errors.append(abs(fitted.peak_at.value / true - 1))
    assert float(np.median(errors)) < 0.05


@pytest.mark.parametrize("blocks", cases([10, 20], kept=1))
def test_intervals_of_the_peak_cover_the_truth_in_95_percent_of_studies(blocks: int) -> None:
    rng = np.random.default_rng(17)
    true = math.sqrt(0.95 / 0.0005)
    covered = 0
    for _ in range(1000):
        fitted = stats.fit_scalability(measured(law(500.0, 0.05, 0.0005), rng, blocks, 0.05))
        assert fitted is not None
        assert fitted.peak_at is not None
        assert fitted.peak_at.low is not None
        assert fitted.peak_at.high is not None
        covered += fitted.peak_at.low <= true <= fitted.peak_at.high
    assert 0.93 <= covered / 1000 <= 0.97


@pytest.mark.parametrize(
    "curve",
    [
        lambda n: 1000.0 * min(n, 16.0) * (0.5 if n > 64 else 1.0),
        lambda n: 1000.0 * n**1.6,
        lambda n: 1000.0 * min(n, 8.0),
        lambda n: 5000.0 if n < 30 else 500.0,
    ],
    ids=["falls off a cliff", "grows faster than users", "a pool of 8", "a step"],
)
def test_what_does_not_follow_the_law_is_refused(curve: Callable[[float], float]) -> None:
    rng = np.random.default_rng(19)
    refused = 0
    for _ in range(50):
        fitted = stats.fit_scalability(measured(curve, rng, 10, 0.05))
        assert fitted is not None
        refused += fitted.is_poor
    assert refused == 50


def test_linear_growth_has_no_peak_and_no_level() -> None:
    fitted = stats.fit_scalability([{place: 100.0 * place for place in PLACES}] * 10)
    assert fitted is not None
    assert (fitted.peak_at, fitted.peak_throughput) == (None, None)
    assert fitted.gamma.value == pytest.approx(100.0)


def test_contention_alone_levels_off() -> None:
    fitted = stats.fit_scalability([{place: law(100.0, 0.1, 0.0)(place) for place in PLACES}] * 10)
    assert fitted is not None
    assert fitted.peak_at is None
    assert fitted.peak_throughput == pytest.approx(1000.0, rel=1e-3)
    assert fitted.throughput(1) == pytest.approx(100.0, rel=1e-3)


def test_a_peak_beyond_what_was_measured_says_so() -> None:
    fitted = stats.fit_scalability([{place: law(100.0, 0.01, 1e-6)(place) for place in PLACES}] * 10)
    assert fitted is not None
    assert fitted.is_beyond


def test_few_places_are_refused_and_few_blocks_have_no_interval() -> None:
    assert stats.fit_scalability([{1.0: 1.0, 2.0: 2.0, 4.0: 3.0, 8.0: 4.0}] * 10) is None
    assert stats.fit_scalability([]) is None
    fitted = stats.fit_scalability(measured(law(100.0, 0.05, 0.001), np.random.default_rng(1), 3, 0.01))
    assert fitted is not None
    assert fitted.gamma.low is None
    assert fitted.peak_at is not None
    assert fitted.peak_at.low is None


@pytest.mark.parametrize("wrong", [{0.5: 1.0}, {1.0: 0.0}, {1.0: -1.0}, {1.0: math.nan}])
def test_what_cannot_be_is_refused(wrong: dict[float, float]) -> None:
    with pytest.raises(ValueError, match="expected"):
        stats.fit_scalability([wrong] * 10)


@pytest.mark.parametrize("rows", [3, 5, 20])
def test_nonnegative_fits_agree_with_scipy(rows: int) -> None:
    rng = np.random.default_rng(5)
    zeros = 0
    for _ in range(300):
        columns, target = rng.normal(size=(rows, 3)), rng.normal(size=rows)
        found = fit_nonnegative(columns, target)
        assert found == pytest.approx(nnls(columns, target)[0], abs=1e-9)
        zeros += int((found == 0).sum())
    assert zeros > 300
