"""What every kind of database can do for a trial: be made, started, filled, counted and asked. `kinds` says which kinds there are.

A `DatabaseKind` knows commands and starts nothing; a `Session` is an open connection of weir's own, never one that a stack uses.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote, unquote, urlsplit

from weir.model.errors import UsageError
from weir.services.counters import Counters
from weir.services.dataset import ColumnType, Dataset, DatasetTable

LOOPBACK = "127.0.0.1"
SILENT_S = 2
"""After so long without a word the machine of a database is asked whether it is there,"""
PROBES = 3
"""once a second; without an answer to so many, weir's connection to it ends."""


@dataclass(frozen=True, slots=True)
class Address:
    """A database that listens, and whom to reach it as."""

    host: str
    port: int
    user: str
    password: str
    database: str
    clients: tuple[str, ...] = (LOOPBACK,)
    """The addresses that this user may come from, where weir is to make it."""

    def at(self, database: str) -> "Address":
        """The same server, another database in it."""
        return replace(self, database=database)

    def fields(self, scheme: str) -> dict[str, str]:
        """What stacks are told: `DatabaseService.fields`."""
        place = f"{self.host}:{self.port}/{quote(self.database)}"
        login = f"{quote(self.user, safe='')}:{quote(self.password, safe='')}"
        return {
            "url": f"{scheme}://{login}@{place}",
            "jdbc_url": f"jdbc:{scheme}://{place}",
            "r2dbc_url": f"r2dbc:{scheme}://{place}",
            "host": self.host,
            "port": str(self.port),
            "user": self.user,
            "password": self.password,
            "database": self.database,
        }


class Session(Protocol):
    """weir's own connection to a server, in its maintenance database. Every method raises `TargetError` where the server fails."""

    def create(self, database: str, owner: Address) -> None:
        """Makes an empty database that `owner` may do everything in."""

    def drop(self, database: str) -> None:
        """Removes a database, if it is there."""

    def counters(self, database: str) -> Counters:
        """What the server has counted for `database` so far, without weir's own questions."""

    def close(self) -> None:
        """Ends the connection."""


class DatabaseKind(Protocol):
    """One kind of database."""

    scheme: str
    """Of its URLs."""
    default_port: int
    maintenance: str
    """A database that is always there."""

    def files(self, clients: Sequence[str]) -> Mapping[str, str]:
        """What `make` and `serve` find in their folder `scratch`, by name. Only from the addresses `clients` anybody may log in."""

    def make(self, programs: Path, data: Path, scratch: Path) -> list[str]:
        """The command that makes the data folder `data`."""

    def serve(self, programs: Path, data: Path, scratch: Path, address: str, port: int, settings: Mapping[str, str]) -> list[str]:
        """The command that serves it in the foreground, on this port of an address."""

    def admin(self, port: int, host: str = LOOPBACK) -> Address:
        """The account that `make` left."""

    def session(self, address: Address) -> Session:
        """Connects.

        Raises:
            TargetError: nothing answers, or not as it should.
        """

    def fill(self, address: Address, dataset: Dataset) -> None:
        """Writes a dataset into an empty database."""

    def value(self, address: Address, sql: str) -> int:
        """The one whole number that `sql` gives.

        Raises:
            TargetError: it gives something else, or fails.
        """


def address_of_url(variable: str, url: str, kind: DatabaseKind) -> Address:
    """A user's own server, from the URL in an environment variable.

    Raises:
        UsageError: it is no such URL.
    """
    expected = f"expected {kind.scheme}://USER:PASSWORD@HOST:PORT/DATABASE"
    try:
        parts = urlsplit(url)
        port = parts.port or kind.default_port
    except ValueError as error:
        raise UsageError(f"{variable}: found {url!r}: {error}; {expected}") from None
    schemes = {kind.scheme, "postgres"} if kind.scheme == "postgresql" else {kind.scheme, "mysql"}
    if parts.scheme not in schemes or not parts.hostname or not parts.username:
        raise UsageError(f"{variable}: found {url!r}, {expected}")
    return Address(
        parts.hostname, port, unquote(parts.username), unquote(parts.password or ""), unquote(parts.path.strip("/")) or kind.maintenance
    )


def table_sql(name: str, table: DatasetTable, types: Mapping[ColumnType, str], generated: str) -> str:
    """The statement that makes a table.

    Args:
        name: the table's name.
        table: its columns.
        types: what the database calls each type.
        generated: what makes it number a column; `{next}` in it is the first number to give.
    """
    columns = [
        f"{column} {types[kind.type]}"
        + (" " + generated.format(next=table.rows + 1) if kind.generated else "")
        + (" PRIMARY KEY" if kind.key else "")
        for column, kind in table.columns.items()
    ]
    return f"CREATE TABLE {name} ({', '.join(columns)})"


def insert_sql(name: str, table: DatasetTable) -> str:
    """The statement that inserts one row, with `%s` for each value."""
    return f"INSERT INTO {name} ({', '.join(table.columns)}) VALUES ({', '.join(['%s'] * len(table.columns))})"


def whole_number(rows: Sequence[Sequence[Any]], sql: str) -> int:
    """The one number in a result.

    Raises:
        ValueError: there are more, or it is none.
    """
    if len(rows) != 1 or len(rows[0]) != 1:
        raise ValueError(f"{sql}: found {len(rows)} rows of {len(rows[0]) if rows else 0} columns, expected one number")
    found = rows[0][0]
    try:
        exact = int(found)
    except (TypeError, ValueError):
        raise ValueError(f"{sql}: found {found!r}, expected a number") from None
    if exact != found:
        raise ValueError(f"{sql}: found {found}, expected a whole number")
    return exact
