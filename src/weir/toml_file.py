"""Reads a TOML file into a validated type, and says what is wrong with it in the file's own words.

Not a schema of anything: the types are those of `study`, `stacks` and the workloads.
"""

import difflib
import tomllib
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from weir.model.errors import UsageError

T = TypeVar("T", bound="Table")


class Table(BaseModel):
    """A TOML table: unknown keys are errors, and a number is not a string."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)


def read_toml(path: Path, *, what: str, hint: str = "") -> dict[str, Any]:
    """The content of `path`.

    Args:
        path: the file.
        what: what the file is, for messages ("a study").
        hint: the next command to try when the file is not there.

    Raises:
        UsageError: the file is not there, cannot be read or is not TOML.
    """
    try:
        text = path.read_bytes().decode()
    except FileNotFoundError:
        raise UsageError(f"{path}: not found; expected {what}", hint=hint) from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {error}; expected {what} in UTF-8") from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: not valid TOML: {error}") from None


def validate(type_: type[T], value: dict[str, Any], *, path: Path, hint: str = "", below: str = "") -> T:
    """`value` as `type_`; all problems at once, a line each, with `below` before each key.

    Raises:
        UsageError: the value does not fit; the message names file, key, what was found and what was expected.
    """
    if "schema" in value and value["schema"] != 1:
        raise UsageError(f"{path}: schema: found {value['schema']!r}, expected 1", hint="this file is from another version of weir")
    try:
        return type_.model_validate(value)
    except ValidationError as error:
        lines = [_describe(type_, detail) for detail in error.errors(include_url=False)]
        raise UsageError("\n".join(f"{path}: {below}{line}" for line in lines), hint=hint) from None


def schema_of(type_: type[Table]) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of files of a type. TOML has no null: what may be None is a key that may be left out."""
    schema: dict[str, Any] = _without_null(type_.model_json_schema(by_alias=True))
    return schema


def _without_null(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_null(one) for one in value]
    if not isinstance(value, dict):
        return value
    cleaned = {key: _without_null(one) for key, one in value.items() if not (key == "default" and one is None)}
    kinds = cleaned.get("anyOf")
    if isinstance(kinds, list):
        left = [one for one in kinds if one != {"type": "null"}]
        if len(left) == 1:
            del cleaned["anyOf"]
            return left[0] | cleaned
        cleaned["anyOf"] = left
    return cleaned


def _describe(type_: type[BaseModel], detail: ErrorDetails) -> str:
    key = ".".join(str(part) for part in detail["loc"]) or "the file"
    match detail["type"]:
        case "extra_forbidden":
            known = _known_keys(type_, detail["loc"][:-1])
            near = difflib.get_close_matches(str(detail["loc"][-1]), known, n=1)
            guess = f"; did you mean {near[0]!r}?" if near else ""
            expected = f"; expected one of: {', '.join(known)}" if known else ""
            return f"{key}: unknown key{guess or expected}"
        case "missing":
            return f"{key}: missing; expected a value"
    message = detail["msg"]
    for prefix in ("Value error, ", "Input "):
        message = message.removeprefix(prefix)
    return f"{key}: found {_short(detail['input'])}; {message[0].lower()}{message[1:]}"


def _known_keys(type_: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    """The keys of the table at `location` below `type_`; empty where the path cannot be followed."""
    current: Any = type_
    for part in location:
        if isinstance(current, type) and issubclass(current, BaseModel) and part in current.model_fields:
            current = current.model_fields[str(part)].annotation
        else:
            arguments = [a for a in getattr(current, "__args__", ()) if isinstance(a, type) and issubclass(a, BaseModel)]
            current = arguments[-1] if arguments else None
    arguments = [a for a in getattr(current, "__args__", ()) if isinstance(a, type) and issubclass(a, BaseModel)]
    model = current if isinstance(current, type) and issubclass(current, BaseModel) else (arguments[-1] if arguments else None)
    if model is None:
        return []
    return [field.alias or name for name, field in model.model_fields.items()]


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
