"""A dataset, `datasets/NAME.toml`: tables, columns and rows. Every database and every trial has the same rows.

The dataset's name is the random seed of the rows, so weir does not store the rows. `ReferenceDatabase` holds the rows
in an in-memory SQLite database. A workload's SQL computes the correct response from the reference database.
"""

import random
import re
import sqlite3
import string
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Literal

from pydantic import Field, model_validator

from weir.model.template import pieces
from weir.toml_file import DataFile, Table, read_data_file

Value = int | str | None
Row = tuple[Value, ...]
ColumnType = Literal["integer", "text", "timestamp"]

_NAME = r"^[a-z_][a-z0-9_]*$"


class Column(Table):
    """A column and the source of its values."""

    type: ColumnType
    value: str | None = None
    """Template with `{{row}}` (the row's number, from 1), `{{int LOW HIGH}}` or `{{word LENGTH}}`. Without a
    template: null, or the row's number if `generated` is true."""
    key: bool = False
    """Whether the column is the primary key."""
    generated: bool = False
    """Whether the database generates this column's numbers for new rows, after the dataset's last number."""

    @model_validator(mode="after")
    def _numbers_are_integers(self) -> "Column":
        if self.generated and self.type != "integer":
            raise ValueError(f"generated: found type {self.type!r}, expected type 'integer'")
        if self.value is not None:
            self.render(1, random.Random(0))
        return self

    def render(self, row: int, source: random.Random) -> Value:
        """Returns the column's value in row number `row`. Raises ValueError for an unknown placeholder, or for text in
        an integer column."""
        if self.value is None:
            return row if self.generated else None
        text = render(self.value, source, row)
        return int(text) if self.type == "integer" else text


class DatasetTable(Table):
    """A table: number of rows, and columns in order."""

    rows: int = Field(ge=0)
    columns: dict[str, Column] = Field(min_length=1)


class Dataset(DataFile):
    """The file `datasets/ID.toml`."""

    tables: dict[str, DatasetTable] = Field(min_length=1)

    @model_validator(mode="after")
    def _names_are_plain(self) -> "Dataset":
        for table, content in self.tables.items():
            for name in (table, *content.columns):
                if not re.match(_NAME, name):
                    raise ValueError(f"tables: found the name {name!r}, expected lower-case letters, digits and _")
        return self

    def rows(self, table: str) -> Iterator[Row]:
        """Yields the rows of a table. Every call yields the same rows."""
        content = self.tables[table]
        source = random.Random(f"{self.id}/{table}")
        for number in range(1, content.rows + 1):
            yield tuple(column.render(number, source) for column in content.columns.values())


class ReferenceDatabase:
    """A dataset in an in-memory SQLite: the content of the database before a trial."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self._connection = sqlite3.connect(":memory:", check_same_thread=False)
        self._connection.row_factory = sqlite3.Row
        for name, table in dataset.tables.items():
            columns = (f"{column} {kind.type}{' PRIMARY KEY' * kind.key}" for column, kind in table.columns.items())
            self._connection.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
            marks = ", ".join("?" * len(table.columns))
            self._connection.executemany(f"INSERT INTO {name} VALUES ({marks})", dataset.rows(name))
        self._connection.execute("PRAGMA query_only = 1")

    def rows(self, sql: str, inputs: Sequence[str] = ()) -> list[dict[str, Any]]:
        """Runs a query and returns the rows as dicts by column name. `inputs` replace the `?` in the query, in order.
        Raises ValueError if the query is not valid on this dataset."""
        wanted = sql.count("?")
        if wanted > len(inputs):
            most = f"expected at most {len(inputs)}, the number of the request's random inputs"
            raise ValueError(f"found {wanted} '?' in the query, {most}")
        values = [int(one) if one.lstrip("-").isdigit() else one for one in inputs[:wanted]]
        try:
            return [dict(row) for row in self._connection.execute(sql, values)]
        except sqlite3.Error as error:
            raise ValueError(f"{error}; expected a query that runs on the dataset {self.dataset.id}") from None


def read_dataset(dataset_id: str) -> Dataset:
    """Reads a dataset. Raises UsageError if the dataset does not exist or is not valid."""
    return read_data_file(Dataset, "datasets", dataset_id)


@cache
def load_truth(dataset_id: str) -> ReferenceDatabase:
    """Returns the reference database of a dataset. The first call creates the database."""
    return ReferenceDatabase(read_dataset(dataset_id))


def render(template: str, source: random.Random, row: int | None = None) -> str:
    """Fills the placeholders of a template: `{{int}}` and `{{word}}` with random values, `{{row}}` with `row`. Raises
    ValueError for an unknown placeholder or wrong arguments."""

    def draw(piece: str | list[str]) -> str:
        match piece:
            case str(text):
                return text
            case ["row"] if row is not None:
                return str(row)
            case ["int", low, high]:
                return str(source.randint(int(low), int(high)))
            case ["word", length]:
                return "".join(source.choices(string.ascii_letters, k=int(length)))
        known = f"{'' if row is None else '{{row}}, '}{{{{int LOW HIGH}}}} or {{{{word LENGTH}}}}"
        raise ValueError(f"unknown placeholder {{{{{' '.join(piece)}}}}}; expected {known}")

    return "".join(map(draw, pieces(template)))
