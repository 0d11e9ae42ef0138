"""Lists of numbers in a study file: `[4, 50, 100]`, one number, or numbers and ranges as text, `"4, 50..500 step 50"`."""

from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from weir.load_values import MOST_NUMBERS, numbers, profile
from weir.model.errors import UsageError
from weir.model.load import Profile

_TEXT = {"type": "string", "description": "Numbers and ranges: 4, 50..500 step 50"}


def _counts(value: Any) -> list[int]:
    found = _listed(value)
    for one in found:
        if isinstance(one, bool) or not isinstance(one, int | float) or one != int(one) or one < 1:
            raise ValueError(f"expected whole numbers from 1 on, not {one!r}")
    return [int(one) for one in _each_once(found)]


def _levels(value: Any) -> list[Profile]:
    levels: list[Profile] = []
    for one in _listed(value):
        if isinstance(one, str):
            try:
                one = profile(one, "profile")
            except UsageError as error:
                raise ValueError(error.message) from None
        elif isinstance(one, bool) or not isinstance(one, int | float) or one <= 0:
            raise ValueError(f"expected numbers above 0 or profiles such as '0s:10,30s:100', not {one!r}")
        levels.append(one if isinstance(one, tuple) else float(one))
    return _each_once(levels)


def _listed(value: Any) -> list[Any]:
    if isinstance(value, str):
        if ":" in value:
            raise ValueError(f"expected a profile inside a list: [{value!r}]")
        return list(numbers(value))
    found = value if isinstance(value, list) else [value]
    if not found:
        raise ValueError("expected at least one value")
    if len(found) > MOST_NUMBERS:
        raise ValueError(f"expected at most {MOST_NUMBERS:,} numbers")
    return found


def _each_once(found: list[Any]) -> list[Any]:
    twice = next((one for index, one in enumerate(found) if one in found[:index]), None)
    if twice is not None:
        raise ValueError(f"expected every value once; {twice!r} is there twice")
    return found


def _schema(item: dict[str, Any]) -> WithJsonSchema:
    return WithJsonSchema({"anyOf": [item, {"type": "array", "items": item, "minItems": 1, "uniqueItems": True}, _TEXT]})


_COUNT = {"type": "integer", "minimum": 1}
_LEVEL = {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "string", "description": "A profile: 0s:10,30s:100"}]}

Counts = Annotated[list[int], BeforeValidator(_counts), _schema(_COUNT)]
"""Whole numbers from 1 on."""
Levels = Annotated[list[Any], BeforeValidator(_levels), _schema(_LEVEL)]
"""Numbers above 0, and profiles over time: `["0s:10,30s:100"]`. Each is a `Profile`."""
