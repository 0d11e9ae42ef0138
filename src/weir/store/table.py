"""Converts records to rows of SQL tables, and back. Each field of a record becomes a column, and the field's type
determines the column's type. The module contains no particular table, and opens no file."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError

Column = int | float | str | bytes | None
Row = tuple[Column, ...]
_COLUMN_TYPES: dict[Any, str] = {bool: "INTEGER", int: "INTEGER", float: "REAL", str: "TEXT", bytes: "BLOB"}


def derive_columns(record: type, *, nullable: bool = False) -> dict[str, str]:
    """Returns a dict from each field of `record` (a dataclass or named tuple) to the SQL of the field's column. A value
    of a type that SQLite lacks becomes JSON in a TEXT column. A `Literal` becomes a CHECK of its texts. If
    `nullable` is true, every column may be null."""
    return {name: _derive_column(name, type_, nullable=nullable) for name, type_ in get_type_hints(record).items()}


def _derive_column(name: str, type_: Any, *, nullable: bool) -> str:
    required = _drop_none(type_)
    column = _COLUMN_TYPES.get(required, "TEXT") + ("" if nullable or required is not type_ else " NOT NULL")
    if get_origin(required) is Literal:
        column += f" CHECK ({name} IN ({', '.join(map(repr, get_args(required)))}))"
    return column


def _drop_none(type_: Any) -> Any:
    """Returns `X` for `X | None`, and any other type unchanged."""
    members = get_args(type_) if get_origin(type_) in (Union, UnionType) else ()
    return next(member for member in members if member is not NoneType) if NoneType in members else type_


class Codec:
    """Converts records to rows, and back. Values of types that SQLite lacks become JSON. `paths`: a dict from column to
    attribute path, for columns whose attribute has another name. Example of a path: `verdict.validity`."""

    def __init__(self, types: Mapping[str, Any], paths: Mapping[str, str] | None = None) -> None:
        self.columns = tuple(types)
        self._types = [_drop_none(type_) for type_ in types.values()]
        self._paths = [(paths or {}).get(name, name) for name in types]
        self._values = attrgetter(*self._paths)

    def encode(self, record: Any) -> Row:
        return tuple(map(_encode, self._types, self._values(record)))

    def decode(self, row: Sequence[Column]) -> dict[str, Any]:
        """Returns a dict from attribute path to value. Raises ValueError for a value of the wrong type in `row`."""
        return dict(zip(self._paths, map(_decode, self.columns, self._types, row), strict=True))


@cache
def _adapter(type_: Any) -> TypeAdapter[Any]:
    return TypeAdapter(type_)


def _encode(type_: Any, value: Any) -> Column:
    if isinstance(value, str):
        # SQLite does not accept lone surrogates. Python uses them for bytes that are not UTF-8.
        return value.encode("utf-8", "replace").decode("utf-8")
    if value is None or type_ in _COLUMN_TYPES:
        return value  # type: ignore[no-any-return]
    # ASCII preserves lone surrogates.
    return json.dumps(_adapter(type_).dump_python(value, by_alias=True, warnings=False), separators=(",", ":"))


def _decode(name: str, type_: Any, column: Column) -> Any:
    if column is None or (type_ in _COLUMN_TYPES and type_ is not bool):
        return column
    value = json.loads(column) if isinstance(column, str) and get_origin(type_) is not Literal else column
    try:
        return _adapter(type_).validate_python(value)
    except ValidationError as error:
        raise ValueError(f"{name}: {error.errors()[0]['msg']}") from error


def insert_into(table: str, columns: Sequence[str]) -> str:
    """Returns the SQL statement that inserts a row with these columns."""
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the run file."""

    name: str
    columns: Mapping[str, str]
    primary_key: tuple[str, ...] = ()
    """Columns of the primary key, if several. The SQL of a single key column contains `PRIMARY KEY` itself."""
    index: tuple[str, ...] = ()

    @property
    def create(self) -> str:
        lines = [f"    {name} {column}" for name, column in self.columns.items()]
        if self.primary_key:
            lines.append(f"    PRIMARY KEY ({', '.join(self.primary_key)})")
        index = f"CREATE INDEX {self.name}_trial ON {self.name} ({', '.join(self.index)});\n" if self.index else ""
        body = ",\n".join(lines)
        return f"CREATE TABLE {self.name} (\n{body}\n) STRICT;\n{index}"

    @property
    def insert(self) -> str:
        return insert_into(self.name, tuple(self.columns))
