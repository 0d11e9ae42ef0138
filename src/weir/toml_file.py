"""Reads TOML files and validates them against other packages' types. Error messages name the file and the key."""

import difflib
import tomllib
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from weir.model.errors import UsageError
from weir.paths import find_data_folder

T = TypeVar("T", bound="Table")
D = TypeVar("D", bound="DataFile")


class Table(BaseModel):
    """Base class of TOML tables. Unknown keys are errors. A key for texts rejects numbers."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)


class DataFile(Table):
    """Base class of the files that come with weir. The path of a file is `FOLDER/ID.toml`."""

    schema_number: Literal[1] = Field(alias="schema")
    id: str
    title: str


def list_data_files(folder: str) -> dict[str, Path]:
    """Returns a dict from id to path of each TOML file in one of weir's data folders."""
    return {path.stem: path for path in sorted(find_data_folder(folder).glob("*.toml"))}


def read_data_file(type_: type[D], folder: str, file_id: str) -> D:
    """Reads a file that comes with weir. Raises UsageError if the file does not exist or is not valid."""
    path, what = find_data_folder(folder) / f"{file_id}.toml", f"a {folder.removesuffix('s')}"
    content = read_toml(path, what=what, hint=f"known {folder}: {', '.join(list_data_files(folder))}")
    found = validate(type_, content, path=path)
    if found.id != path.stem:
        raise UsageError(f"{path}: id: found {found.id!r}, expected {path.stem!r}, the file's name")
    return found


def read_toml(path: Path, *, what: str, hint: str = "") -> dict[str, Any]:
    """Reads a TOML file. `what`: the kind of file, such as "a study". `hint`: the next command if the file is missing.
    Raises UsageError if the file does not exist, cannot be read or is not TOML."""
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


def name_place(path: Path | None) -> str:
    """Returns the text before a message about a file: the path and a colon. Returns an empty text without a path."""
    return "" if path is None else f"{path}: "


def validate(type_: type[T], value: dict[str, Any], *, path: Path | None, below: str = "") -> T:
    """Returns `value` as `type_`. Raises UsageError with one line per problem. Each line begins with `path` (if
    given), and has `below` before the key."""
    place = name_place(path)
    if "schema" in value and value["schema"] != 1:
        problem = f"{place}schema: found {value['schema']!r}, expected 1"
        raise UsageError(problem, hint="weir --version (the file is for another version of weir)")
    try:
        return type_.model_validate(value)
    except ValidationError as error:
        lines = [_describe_error(type_, detail) for detail in error.errors(include_url=False)]
        raise UsageError("\n".join(f"{place}{below}{line}" for line in lines)) from None


def build_schema(type_: type[Table]) -> dict[str, Any]:
    """Returns the JSON Schema (draft 2020-12) of a type. The schema has no null, because TOML has no null."""
    schema: dict[str, Any] = _drop_null(type_.model_json_schema(by_alias=True))
    return schema


def _drop_null(value: Any) -> Any:
    if isinstance(value, list):
        return [_drop_null(one) for one in value]
    if not isinstance(value, dict):
        return value
    cleaned = {key: _drop_null(one) for key, one in value.items() if not (key == "default" and one is None)}
    kinds = cleaned.get("anyOf")
    if isinstance(kinds, list):
        left = [one for one in kinds if one != {"type": "null"}]
        if len(left) == 1:
            del cleaned["anyOf"]
            return left[0] | cleaned
        cleaned["anyOf"] = left
    return cleaned


def _describe_error(type_: type[BaseModel], detail: ErrorDetails) -> str:
    key = ".".join(str(part) for part in detail["loc"]) or "the file"
    match detail["type"]:
        case "extra_forbidden":
            known = _list_known_keys(type_, detail["loc"][:-1])
            near = difflib.get_close_matches(str(detail["loc"][-1]), known, n=1)
            guess = f"; did you mean {near[0]!r}?" if near else ""
            expected = f"; expected one of: {', '.join(known)}" if known else ""
            return f"{key}: unknown key{guess or expected}"
        case "missing":
            return f"{key}: missing; expected a value"
    message = detail["msg"]
    for prefix in ("Value error, ", "Input "):
        message = message.removeprefix(prefix)
    return f"{key}: found {_shorten(detail['input'])}; {message[0].lower()}{message[1:]}"


def _list_known_keys(type_: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    """Returns the keys of the table at `location` in `type_`. Returns an empty list if there is no table."""
    current: Any = type_
    for part in location:
        model = _find_model(current)
        # If `part` is not a field, `part` is an index of a list or a key of a dict of tables.
        current = model.model_fields[str(part)].annotation if model and part in model.model_fields else model
    model = _find_model(current)
    return [field.alias or name for name, field in model.model_fields.items()] if model else []


def _find_model(annotation: Any) -> type[BaseModel] | None:
    """Returns `Table` for an annotation such as `list[Table]`, `dict[str, Table]` or `Table | None`."""
    found = [a for a in (*getattr(annotation, "__args__", ()), annotation) if isinstance(a, type)]
    return next((a for a in reversed(found) if issubclass(a, BaseModel)), None)


def _shorten(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
