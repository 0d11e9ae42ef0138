"""The examples in the docstrings of `weir.stats` run."""

import doctest
from types import ModuleType

import pytest

from weir.stats import comparison, mean, quantile


@pytest.mark.parametrize("module", [comparison, mean, quantile])
def test_the_examples_in_docstrings_hold(module: ModuleType) -> None:
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0
