"""Makes text from servers and files safe to print."""

from dataclasses import fields, is_dataclass, replace
from typing import Any


def sanitize(value: Any) -> Any:
    """Replaces every control character in a value with a space, so that a server's text cannot control the terminal."""
    if isinstance(value, str):
        return "".join(character if character.isprintable() else " " for character in value)
    if isinstance(value, tuple):
        return tuple(sanitize(part) for part in value)
    if isinstance(value, dict):
        return {sanitize(key): sanitize(part) for key, part in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: sanitize(getattr(value, field.name)) for field in fields(value)})
    return value
