"""Tests the median and range of several rounds."""

import pytest

from bench.spread import median_within


@pytest.mark.parametrize(
    ("rounds", "low", "high"), [(1, 1, 1), (5, 1, 5), (6, 1, 6), (8, 1, 8), (9, 2, 8), (31, 10, 22)]
)
def test_the_median_lies_between_the_values_of_the_sign_tests_table(rounds: int, low: int, high: int) -> None:
    assert median_within(range(rounds, 0, -1)) == (low, high)
