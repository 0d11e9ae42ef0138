"""Settings of services that weir starts itself: text in manifests and studies, made into types."""

from collections.abc import Mapping
from typing import TypeVar

from pydantic import ValidationError

from weir.toml_file import Table

T = TypeVar("T", bound=Table)


def understood(type_: type[T], settings: Mapping[str, str]) -> T:
    """Settings as their type has them.

    Raises:
        ValueError: one is unknown or does not fit; the message names them all.
    """
    try:
        return type_.model_validate(dict(settings))
    except ValidationError as error:
        known = ", ".join(type_.model_fields)
        problems = (_problem(".".join(map(str, detail["loc"])), detail["msg"], detail["input"], known) for detail in error.errors())
        raise ValueError("; ".join(problems)) from None


def _problem(key: str, message: str, found: object, known: str) -> str:
    if message.startswith("Extra inputs"):
        return f"{key}: unknown setting; expected one of: {known}"
    said = message.removeprefix("Value error, ").removeprefix("Input ")
    return f"{key}: found {found!r}; {said[0].lower()}{said[1:]}" if key else said
