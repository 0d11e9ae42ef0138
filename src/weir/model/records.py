"""Converts a line of JSON from `weir-engine` to a dataclass and back. Names of fields are the JSON's keys. Readers ignore
unknown keys (`docs/reference/engine.md`).

This module does not use pydantic: importing pydantic takes longer than all other imports of a short load.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self, TypeVar, dataclass_transform

import msgspec

OMITTED_IF_NONE: Mapping[str, bool] = {"is_omitted": True}
"""Metadata of a field: if the value is None, the JSON lacks the key."""

_Type = TypeVar("_Type")
_PREPARING = threading.Lock()
_PREPARED: set[type] = set()


def convert(value: Any, type_: type[_Type]) -> _Type:
    """Returns `value`, decoded from JSON, as a dataclass. Raises ValueError if a key is missing or has a wrong type."""
    # msgspec describes a type before the first conversion. If two threads did so at once, one of them would read the
    # unfinished description of the other, and the process would crash.
    if type_ not in _PREPARED:
        with _PREPARING:
            msgspec.json.Decoder(type_)
            _PREPARED.add(type_)
    return msgspec.convert(value, type_)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class Record:
    """A line of the engine's output, or a part of such a line. Each subclass is a frozen dataclass."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True)(cls)

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Returns the record for a decoded JSON object. Raises ValueError if a key is missing or has a wrong type."""
        return convert(value, cls)

    def to_json(self) -> dict[str, Any]:
        """Returns the JSON object of this record. Inverse of `from_json`."""
        values = {one: getattr(self, one.name) for one in fields(self)}  # type: ignore[arg-type]
        return {
            one.name: _to_json(value)
            for one, value in values.items()
            if value is not None or not one.metadata.get("is_omitted")
        }

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return tuple(one.name for one in fields(cls))  # type: ignore[arg-type]


def _to_json(value: Any) -> Any:
    if isinstance(value, Record):
        return value.to_json()
    if isinstance(value, list):
        return [_to_json(one) for one in value]
    return {key: _to_json(one) for key, one in value.items()} if isinstance(value, dict) else value
