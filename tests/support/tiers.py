"""Chooses the cases of a parametrized test for `make test`; `make test-all` runs the others."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import pytest


def cases(
    values: Sequence[Any], *, kept: int | Collection[Any], where: Callable[[Any], bool] = lambda _: True
) -> list[Any]:
    """Returns the values for `pytest.mark.parametrize`; cases that are not kept have the mark `thorough`.

    Args:
        values: one value per case, or a tuple of the case's values.
        kept: the number of first cases to keep, or the values to keep.
        where: returns whether a value is a case of this test.
    """
    chosen = values[:kept] if isinstance(kept, int) else kept
    assert all(value in values for value in chosen), "a kept case is none of the cases"
    thorough = pytest.mark.thorough
    return [
        value if value in chosen else pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=thorough)
        for value in values
        if where(value)
    ]
