"""Tests crossings on simulated studies whose truth is known."""

import math

import numpy as np
import pytest
from scipy.interpolate import PchipInterpolator

from tests.support.tiers import cases
from weir import stats
from weir.stats.crossover import monotone_slopes

PLACES = (4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)


def simulated(
    rng: np.random.Generator,
    blocks: int,
    slope: float,
    at: float,
    *,
    noise: float = 0.03,
    heavy: bool = False,
    drift: float = 0.0,
) -> list[dict[float, float]]:
    """Returns ln(A/B) = slope·ln(N/at) with noise; each block has its own level, which drifts from the first block to
    the last."""
    found = []
    for block in range(blocks):
        level = drift * (block / max(blocks - 1, 1) - 0.5)
        errors = rng.standard_t(4, len(PLACES)) / math.sqrt(2) * noise if heavy else rng.normal(0, noise, len(PLACES))
        shared = rng.normal(0, noise / 2)
        found.append(
            {
                place: slope * math.log(place / at) + level + shared + float(error)
                for place, error in zip(PLACES, errors, strict=True)
            }
        )
    return found


@pytest.mark.parametrize("blocks", cases([10, 20], kept=1))
@pytest.mark.parametrize(("heavy", "drift"), cases([(True, 0.0), (False, 0.0), (False, 0.03)], kept=1))
def test_intervals_of_crossings_cover_the_truth_in_95_percent_of_studies(
    blocks: int, heavy: bool, drift: float
) -> None:
    rng = np.random.default_rng(11)
    covered = 0
    for _ in range(1000):
        found = stats.find_crossings(simulated(rng, blocks, -0.15, 27.0, heavy=heavy, drift=drift), draws=400)
        assert found is not None
        inside = [one for one in found.crossings if one.falls and (one.low or 0) <= 27.0 <= (one.high or math.inf)]
        covered += bool(inside)
    assert 0.93 <= covered / 1000 <= 0.97


def test_a_crossing_is_found_where_it_is_without_noise() -> None:
    found = stats.find_crossings(simulated(np.random.default_rng(1), 10, -0.2, 27.0, noise=1e-6))
    assert found is not None
    (crossing,) = found.crossings
    assert crossing.at == pytest.approx(27.0, rel=1e-3)
    assert crossing.falls
    assert crossing.between == (16.0, 32.0)
    assert crossing.next_place == pytest.approx(math.sqrt(16 * 32))
    assert crossing.is_narrow
    assert (crossing.probability, found.probability) == (1.0, 1.0)


def test_every_crossing_is_found_and_kept_apart() -> None:
    shape = {4.0: 0.2, 8.0: 0.1, 16.0: -0.1, 32.0: -0.2, 64.0: -0.1, 128.0: 0.1, 256.0: 0.3}
    rng = np.random.default_rng(3)
    found = stats.find_crossings(
        [{place: value + rng.normal(0, 0.02) for place, value in shape.items()} for _ in range(12)]
    )
    assert found is not None
    first, second = found.crossings
    assert (first.falls, second.falls) == (True, False)
    assert 8 < first.at < 16
    assert 64 < second.at < 128
    for crossing in found.crossings:
        assert crossing.low is not None
        assert crossing.high is not None
        assert crossing.low < crossing.at < crossing.high
        assert crossing.probability == pytest.approx(1.0)


def test_an_interval_is_open_where_the_crossing_may_lie_beyond_what_was_measured() -> None:
    wide = [{64.0: 0.3, 128.0: 0.1, 256.0: -0.02 + (0.1 if block % 2 else -0.1)} for block in range(10)]
    found = stats.find_crossings(wide)
    assert found is not None
    (crossing,) = found.crossings
    assert crossing.high is None
    assert crossing.low is not None
    assert 128 < crossing.low < crossing.at < 256
    assert crossing.probability is not None
    assert 0.5 < crossing.probability < 0.9
    assert not crossing.is_narrow


@pytest.mark.parametrize(("slope", "at", "side"), [(-0.1, 4000.0, "above"), (-0.1, 0.1, "below")])
def test_without_a_crossing_the_side_is_told(slope: float, at: float, side: str) -> None:
    found = stats.find_crossings(simulated(np.random.default_rng(7), 10, slope, at))
    assert found is not None
    assert not found.crossings
    assert found.side == side
    assert found.probability == 0.0


def test_few_blocks_give_a_crossing_and_no_interval() -> None:
    found = stats.find_crossings(simulated(np.random.default_rng(1), 4, -0.2, 27.0))
    assert found is not None
    (crossing,) = found.crossings
    assert not crossing.has_interval
    assert (crossing.low, crossing.high, crossing.probability, found.probability) == (None, None, None, None)


def test_one_place_or_none_says_nothing() -> None:
    assert stats.find_crossings([]) is None
    assert stats.find_crossings([{4.0: 0.1}, {4.0: 0.2}]) is None
    assert stats.find_crossings([{4.0: 0.1}, {8.0: -0.1}]) is None


def test_blocks_without_any_spread_have_a_crossing_of_no_width() -> None:
    found = stats.find_crossings([{4.0: 0.1, 16.0: -0.1}] * 10)
    assert found is not None
    (crossing,) = found.crossings
    assert crossing.at == pytest.approx(8.0)
    assert crossing.low == pytest.approx(8.0)
    assert crossing.high == pytest.approx(8.0)


def test_a_place_that_some_blocks_lack_counts_with_those_that_have_it() -> None:
    blocks = simulated(np.random.default_rng(1), 12, -0.2, 27.0, noise=0.01)
    for block in blocks[:3]:
        del block[16.0]
    found = stats.find_crossings(blocks)
    assert found is not None
    assert found.crossings[0].at == pytest.approx(27.0, rel=0.03)


def test_a_mean_of_exactly_nothing_is_no_crossing_of_its_own() -> None:
    touching = stats.find_crossings([{4.0: 0.1, 8.0: 0.0, 16.0: 0.1}] * 10)
    passing = stats.find_crossings([{4.0: 0.1, 8.0: 0.0, 16.0: -0.1}] * 10)
    assert touching is not None
    assert touching.crossings == ()
    assert touching.side == "neither"
    assert passing is not None
    assert [one.at for one in passing.crossings] == [pytest.approx(8.0)]


@pytest.mark.parametrize(
    "wrong", [{0.0: 1.0, 4.0: 2.0}, {-1.0: 1.0, 4.0: 1.0}, {4.0: math.nan, 8.0: 1.0}, {math.inf: 1.0, 8.0: 1.0}]
)
def test_what_has_no_place_or_no_value_is_refused(wrong: dict[float, float]) -> None:
    with pytest.raises(ValueError, match="expected"):
        stats.find_crossings([wrong] * 10)


@pytest.mark.parametrize("places", [2, 3, 4, 7])
def test_monotone_slopes_agree_with_scipy(places: int) -> None:
    rng = np.random.default_rng(places)
    for _ in range(100):
        axis = np.cumsum(rng.uniform(0.1, 5, places))
        # Whole numbers make equal neighbours, where a slope is 0.
        rows = rng.integers(-3, 4, (20, places)).astype(float)
        expected = PchipInterpolator(axis, rows, axis=1).derivative()(axis)
        assert monotone_slopes(axis, rows) == pytest.approx(expected, abs=1e-9)
