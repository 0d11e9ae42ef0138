"""Parses settings of services. In manifests and studies, all settings are text."""

from collections.abc import Mapping
from typing import TypeVar

from pydantic import ValidationError

from weir.toml_file import Table

T = TypeVar("T", bound=Table)


def parse_settings(type_: type[T], settings: Mapping[str, str]) -> T:
    """Converts settings to the type `type_`. Raises a ValueError with all unknown and all invalid settings."""
    try:
        return type_.model_validate(dict(settings))
    except ValidationError as error:
        problems = []
        for detail in error.errors():
            key = ".".join(map(str, detail["loc"]))
            message = detail["msg"].removeprefix("Value error, ").removeprefix("Input ")
            if detail["type"] == "extra_forbidden":
                problems.append(f"{key}: unknown setting; expected one of: {', '.join(type_.model_fields)}")
            elif key:
                problems.append(f"{key}: found {detail['input']!r}; {message[0].lower()}{message[1:]}")
            else:
                problems.append(message)
        raise ValueError("; ".join(problems)) from None
