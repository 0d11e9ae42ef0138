"""Which class each user is of, from the first on."""

from collections import Counter
from itertools import islice
from typing import Any

from weir.compat.locust.population import classes_in_order


def some_class(name: str, *, weight: float = 1, fixed_count: int = 0) -> Any:
    return type(name, (), {"weight": weight, "fixed_count": fixed_count})


def test_users_come_by_weight_and_evenly() -> None:
    often, seldom = some_class("Often", weight=3), some_class("Seldom", weight=1)
    order = list(islice(classes_in_order([often, seldom]), 8))
    assert Counter(order) == {often: 6, seldom: 2}
    assert Counter(order[:4]) == {often: 3, seldom: 1}


def test_those_with_a_fixed_count_come_first_and_no_more() -> None:
    fixed, other = some_class("Fixed", fixed_count=2), some_class("Other")
    assert list(islice(classes_in_order([fixed, other]), 5)) == [fixed, fixed, other, other, other]
    assert list(classes_in_order([fixed])) == [fixed, fixed]
