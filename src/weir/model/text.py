"""Text that came from elsewhere, made fit to be shown."""

from dataclasses import fields, is_dataclass, replace
from typing import Any


def printable(value: Any) -> Any:
    """`value` with every control character in its texts shown as a space: an error text from a server must not steer the terminal."""
    if isinstance(value, str):
        return "".join(character if character.isprintable() else " " for character in value)
    if isinstance(value, tuple):
        return tuple(printable(part) for part in value)
    if isinstance(value, dict):
        return {printable(key): printable(part) for key, part in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: printable(getattr(value, field.name)) for field in fields(value)})
    return value
