"""The examples in the docstrings of `weir.stats` run."""

import doctest
from types import ModuleType

import pytest

from weir.stats import bootstrap, comparison, mean, power, quantile, steady


@pytest.mark.parametrize("module", [bootstrap, comparison, mean, power, quantile, steady])
def test_the_examples_in_docstrings_hold(module: ModuleType) -> None:
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0
