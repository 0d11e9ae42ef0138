"""Simulates runs that end when their interval is narrow; the truth is known."""

import math

import numpy as np
import pytest

from weir import stats
from weir.stats.sequential import widen_interval

WIDTH = 0.05
FIRST_LOOK = 4
RUNS = 1000


def simulate(
    spread: float, last_block: int, truth: float, seed: int, first_look: int | None = FIRST_LOOK
) -> list[tuple[int, bool, bool]]:
    """Returns for each run its blocks, whether its interval contains the truth, and whether the interval excludes 1.
    Each block measures two systems once, with lognormal noise."""
    rng = np.random.default_rng(seed)
    ended = []
    for _ in range(RUNS):
        ratios = np.exp(rng.normal(math.log(truth), spread, last_block))
        for blocks in range(FIRST_LOOK, last_block + 1):
            ratio = stats.paired_ratio(list(ratios[:blocks]), [1.0] * blocks, first_look=first_look)
            assert ratio.low is not None
            assert ratio.high is not None
            if ratio.high / ratio.value - 1 <= WIDTH or blocks == last_block:
                ended.append((blocks, ratio.low <= truth <= ratio.high, not ratio.low <= 1 <= ratio.high))
                break
    return ended


@pytest.mark.parametrize("spread", [0.01, 0.03, 0.05, 0.08])
@pytest.mark.parametrize("last_block", [8, 12])
def test_the_interval_of_a_run_that_it_ended_holds_the_truth_in_93_to_97_percent(
    spread: float, last_block: int
) -> None:
    held = [is_held for _, is_held, _ in simulate(spread, last_block, truth=1.3, seed=int(spread * 100) + last_block)]
    # 1,000 runs give this share with an error of 0.7 %.
    assert 0.92 <= np.mean(held) <= 0.98


@pytest.mark.parametrize("spread", [0.02, 0.05])
def test_two_copies_are_called_different_in_3_to_7_percent(spread: float) -> None:
    different = [is_different for _, _, is_different in simulate(spread, 12, truth=1.0, seed=7)]
    assert 0.03 <= np.mean(different) <= 0.07


@pytest.mark.parametrize("spread", [0.01, 0.05])
def test_at_no_look_more_than_7_percent_of_copies_are_called_different(spread: float) -> None:
    rng = np.random.default_rng(7)
    different = dict.fromkeys(range(2, 13), 0)
    for _ in range(RUNS):
        ratios, has_ended, is_different = np.exp(rng.normal(0.0, spread, 12)), False, False
        for blocks in different:
            if not has_ended:
                ratio = stats.paired_ratio(list(ratios[:blocks]), [1.0] * blocks, first_look=FIRST_LOOK)
                assert ratio.low is not None
                assert ratio.high is not None
                is_different = not ratio.low <= 1 <= ratio.high
                has_ended = blocks >= FIRST_LOOK and ratio.high / ratio.value - 1 <= WIDTH
            different[blocks] += is_different
    assert all(0.03 <= count / RUNS <= 0.07 for count in different.values()), different


def test_without_the_wider_interval_too_few_runs_hold_the_truth() -> None:
    held = [is_held for _, is_held, _ in simulate(0.08, 40, truth=1.3, seed=3, first_look=None)]
    assert np.mean(held) < 0.93


def test_a_run_with_a_fixed_number_of_blocks_has_the_usual_interval() -> None:
    assert widen_interval(100, None) == 1.0
    assert widen_interval(FIRST_LOOK, FIRST_LOOK) == 1.0
    assert 1.0 < widen_interval(FIRST_LOOK + 1, FIRST_LOOK) < widen_interval(100, FIRST_LOOK) < 1.15
