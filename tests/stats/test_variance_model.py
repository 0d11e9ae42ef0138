"""Tests the split of variance on simulated studies."""

import math

import numpy as np
import pytest

from weir import stats


def simulated(
    within: float, trials: float, blocks: float, *, count: int, systems: int, seed: int
) -> stats.VarianceComponents:
    """Returns the split of a study whose three parts are known; each trial is the mean of a hundred intervals."""
    random = np.random.default_rng(seed)
    level = random.uniform(3, 9, systems)
    table, errors = [], []
    for _ in range(count):
        common = random.normal(0, blocks)
        row = []
        for system in range(systems):
            mean = level[system] + common + random.normal(0, trials)
            intervals = math.exp(mean) * (1 + random.normal(0, within * 10, 100))
            row.append(math.log(intervals.mean()))
            error = stats.relative_standard_error(list(intervals))
            assert error is not None
            errors.append(error)
        table.append(row)
    found = stats.estimate_variance_components(table, errors)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("within", "trials", "blocks"), [(0.02, 0.0, 0.0), (0.005, 0.04, 0.0), (0.005, 0.01, 0.08), (0.01, 0.02, 0.03)]
)  # fmt: skip
def test_each_part_is_found_on_average(within: float, trials: float, blocks: float) -> None:
    found = [simulated(within, trials, blocks, count=10, systems=4, seed=seed) for seed in range(200)]
    for name, truth in (("within", within), ("between_trials", trials), ("between_blocks", blocks)):
        # Estimates of variances are unbiased, except if chance makes them negative: then an absent part seems small but
        # positive.
        mean = math.sqrt(np.mean([getattr(one, name) ** 2 for one in found]))
        assert mean == pytest.approx(truth, rel=0.1, abs=0.4 * max(within, trials, blocks)), name


def test_neighbours_that_resemble_one_another_do_not_make_a_mean_look_better_than_it_is() -> None:
    random = np.random.default_rng(1)
    errors, means = [], []
    for _ in range(300):
        noise = random.normal(0, 1, 400)
        wandering = np.zeros(400)
        for index in range(1, 400):
            wandering[index] = 0.6 * wandering[index - 1] + noise[index]
        series = 100 + wandering
        means.append(series.mean())
        error = stats.relative_standard_error(list(series))
        assert error is not None
        errors.append(error)
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(np.std(means) / 100, rel=0.15)


def test_one_block_one_system_or_a_short_series_tell_nothing() -> None:
    assert stats.estimate_variance_components([[1.0, 2.0]], [0.1]) is None
    assert stats.estimate_variance_components([[1.0], [2.0]], [0.1]) is None
    assert stats.relative_standard_error([1.0] * 9) is None
    assert stats.relative_standard_error([0.0] * 50) is None


def test_without_any_spread_every_part_is_zero() -> None:
    found = stats.estimate_variance_components([[1.0, 2.0]] * 3, [0.0] * 6)
    assert found is not None
    assert (found.within, found.between_trials, found.between_blocks) == pytest.approx((0.0, 0.0, 0.0))


def test_blocks_must_hold_the_same_systems() -> None:
    with pytest.raises(ValueError, match=r"inhomogeneous|every system"):
        stats.estimate_variance_components([[1.0, 2.0], [1.0, 2.0, 3.0]], [])
    with pytest.raises(ValueError, match="finite"):
        stats.estimate_variance_components([[1.0, math.nan], [1.0, 2.0]], [])
