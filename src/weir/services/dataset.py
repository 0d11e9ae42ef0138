"""A dataset, `datasets/NAME.toml`: tables, columns and rows, the same in every database and every time.

The rows are drawn from the dataset's name, so nobody has to keep them. `Truth` holds them in an SQLite in memory, where a workload's SQL
says what a right answer is: the database under test is never asked what it should have answered.
"""

import random
import sqlite3
import string
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from weir.model.errors import UsageError
from weir.model.template import pieces
from weir.places import data_folder
from weir.toml_file import Table, read_toml, validate

Value = int | str | None
Row = tuple[Value, ...]
ColumnType = Literal["integer", "text", "timestamp"]

_NAME = r"^[a-z_][a-z0-9_]*$"


class Column(Table):
    """A column and how its values come to be."""

    type: ColumnType
    value: str | None = None
    """A template: `{{row}}` (the row's number, from 1), `{{int LOW HIGH}}`, `{{word LENGTH}}`. None: null, or the row's number where
    `generated`."""
    key: bool = False
    """The primary key."""
    generated: bool = False
    """The database numbers rows that are inserted later, going on after the dataset's own."""

    @model_validator(mode="after")
    def _numbers_are_integers(self) -> "Column":
        if self.generated and self.type != "integer":
            raise ValueError("generated: expected type 'integer'")
        if self.value is not None:
            self.render(1, random.Random(0))
        return self

    def render(self, row: int, source: random.Random) -> Value:
        """The value in row number `row`.

        Raises:
            ValueError: the template has a placeholder that means nothing here, or makes no integer.
        """
        if self.value is None:
            return row if self.generated else None
        text = "".join(_drawn(piece, row, source) for piece in pieces(self.value))
        return int(text) if self.type == "integer" else text


class DatasetTable(Table):
    """A table: how many rows, and their columns in order."""

    rows: int = Field(ge=0)
    columns: dict[str, Column] = Field(min_length=1)


class Dataset(Table):
    """The file `datasets/ID.toml`."""

    schema_number: Literal[1] = Field(alias="schema")
    id: str
    title: str
    tables: dict[str, DatasetTable] = Field(min_length=1)

    @model_validator(mode="after")
    def _names_are_plain(self) -> "Dataset":
        import re

        for table, content in self.tables.items():
            for name in (table, *content.columns):
                if not re.match(_NAME, name):
                    raise ValueError(f"tables: found the name {name!r}, expected lower-case letters, digits and _")
        return self

    def rows(self, table: str) -> Iterator[Row]:
        """The rows of a table: always the same."""
        content = self.tables[table]
        source = random.Random(f"{self.id}/{table}")
        for number in range(1, content.rows + 1):
            yield tuple(column.render(number, source) for column in content.columns.values())


class Truth:
    """A dataset's rows, to be asked in SQL. Holds what should be in the database before a trial."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self._connection = sqlite3.connect(":memory:", check_same_thread=False)
        self._connection.row_factory = sqlite3.Row
        for name, table in dataset.tables.items():
            columns = ", ".join(
                f"{column} {kind.type}{' PRIMARY KEY' if kind.key else ''}" for column, kind in table.columns.items()
            )  # fmt: skip
            self._connection.execute(f"CREATE TABLE {name} ({columns})")
            marks = ", ".join("?" * len(table.columns))
            self._connection.executemany(f"INSERT INTO {name} VALUES ({marks})", dataset.rows(name))
        self._connection.execute("PRAGMA query_only = 1")

    def rows(self, sql: str, inputs: Sequence[str] = ()) -> list[dict[str, Any]]:
        """The rows that `sql` gives, by column name.

        Args:
            sql: a query; each `?` stands for one of `inputs`, in their order.
            inputs: what was drawn for a request.

        Raises:
            ValueError: it is no query on this dataset.
        """
        wanted = sql.count("?")
        if wanted > len(inputs):
            raise ValueError(f"found {wanted} times '?', expected at most {len(inputs)}: the request has no more random inputs")
        try:
            found = self._connection.execute(sql, [int(one) if one.lstrip("-").isdigit() else one for one in inputs[:wanted]]).fetchall()
        except sqlite3.Error as error:
            raise ValueError(f"{error}; expected a query on the dataset {self.dataset.id}") from None
        return [dict(row) for row in found]


def read_dataset(dataset_id: str) -> Dataset:
    """The dataset of that name.

    Raises:
        UsageError: there is no such dataset, or its file is not valid.
    """
    folder = data_folder("datasets")
    path = folder / f"{dataset_id}.toml"
    known = ", ".join(path.stem for path in dataset_files())
    dataset = validate(Dataset, read_toml(path, what="a dataset", hint=f"known datasets: {known}"), path=path)
    if dataset.id != path.stem:
        raise UsageError(f"{path}: id: found {dataset.id!r}, expected {path.stem!r}, the file's name")
    return dataset


@cache
def truth_of(dataset_id: str) -> Truth:
    """The rows of the dataset of that name, read once."""
    return Truth(read_dataset(dataset_id))


def dataset_files() -> list[Path]:
    """All datasets that travel with this weir."""
    return sorted(data_folder("datasets").glob("*.toml"))


def _drawn(piece: str | list[str], row: int, source: random.Random) -> str:
    match piece:
        case str(text):
            return text
        case ["row"]:
            return str(row)
        case ["int", low, high]:
            return str(source.randint(int(low), int(high)))
        case ["word", length]:
            return "".join(source.choices(string.ascii_letters, k=int(length)))
    raise ValueError(f"unknown placeholder {{{{{' '.join(piece)}}}}}; expected {{{{row}}}}, {{{{int LOW HIGH}}}} or {{{{word LENGTH}}}}")
