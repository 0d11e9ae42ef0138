"""Interfaces of databases. A `DatabaseKind` builds commands and starts no process. A `Session` is a connection."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol
from urllib.parse import quote, unquote, urlsplit

from weir.model.errors import UsageError
from weir.model.requirements import missing_extra
from weir.services.counters import Counters
from weir.services.dataset import ColumnType, Dataset, DatasetTable

LOOPBACK = "127.0.0.1"
SILENT_S = 2
"""Idle time, in seconds, after which weir's connection to a database sends TCP keep-alive probes, one per second."""
PROBES = 3
"""Number of unanswered keep-alive probes after which the connection ends."""
CONNECT_S = 5
SUPERUSER = "weir"
"""Name and password of the administrator, on servers that weir starts."""


@dataclass(frozen=True, slots=True)
class Address:
    """Address and login of a database."""

    host: str
    port: int
    user: str
    password: str
    database: str
    clients: tuple[str, ...] = (LOOPBACK,)
    """Addresses of clients from which `user` may log in. Only for a user that weir creates."""

    def fields(self, scheme: str) -> dict[str, str]:
        """Returns the value of each field in `DatabaseService.fields`."""
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
    """weir's own connection to a server's maintenance database. Methods raise `TargetError` if the server fails."""

    def create(self, database: str, owner: Address) -> None:
        """Creates an empty database with all rights for `owner`."""

    def drop(self, database: str) -> None:
        """Removes a database, if it exists."""

    def counters(self, database: str) -> Counters:
        """Reads the counters of `database`, without weir's own statements."""

    def close(self) -> None:
        """Ends the connection."""


class DatabaseKind(Protocol):
    """One kind of database."""

    scheme: ClassVar[str]
    """Scheme of the database's URLs for stacks."""
    url_schemes: ClassVar[frozenset[str]]
    """Schemes that users may write in the URL of their own server."""
    default_port: ClassVar[int]
    maintenance: ClassVar[str]
    """Name of a database that every server has."""
    types: ClassVar[Mapping[ColumnType, str]]
    generated: ClassVar[str]
    """SQL clause of a column with generated numbers. `{next}` stands for the first generated number."""

    def files(self, clients: Sequence[str]) -> Mapping[str, str]:
        """Returns the files of `scratch` as a dict from name to text. These files allow logins only from `clients`."""

    def make(self, programs: Path, data: Path, scratch: Path) -> list[str]:
        """Returns the command that creates the data folder `data`."""

    def serve(
        self, programs: Path, data: Path, scratch: Path, address: str, port: int, settings: Mapping[str, str]
    ) -> list[str]:
        """Returns the command that runs the server in the foreground."""

    def admin(self, port: int, host: str = LOOPBACK) -> Address:
        """Returns the account of the administrator that `make` creates."""
        return Address(host, port, SUPERUSER, SUPERUSER, self.maintenance)

    def session(self, address: Address) -> Session:
        """Connects to a server. Raises TargetError if no server responds, or if the server cannot count statements."""

    def fill(self, address: Address, dataset: Dataset) -> None:
        """Writes a dataset into an empty database."""

    def value(self, address: Address, sql: str) -> int:
        """Runs a query, and returns its only value. Raises TargetError if the query fails or finds no whole number."""

    def build_table_sql(self, name: str, table: DatasetTable) -> str:
        generated, columns = self.generated.format(next=table.rows + 1), []
        for column, kind in table.columns.items():
            clauses = [generated] * kind.generated + ["PRIMARY KEY"] * kind.key
            columns.append(" ".join([column, self.types[kind.type], *clauses]))
        return f"CREATE TABLE {name} ({', '.join(columns)})"

    def build_insert_sql(self, name: str, table: DatasetTable) -> str:
        """Returns the statement that inserts one row, with `%s` for each value."""
        return f"INSERT INTO {name} ({', '.join(table.columns)}) VALUES ({', '.join(['%s'] * len(table.columns))})"


def find_database_kind(service_id: str) -> DatabaseKind:
    """Returns the kind of a database. Raises UsageError if the database's client is not installed."""
    # These imports are slow, and only studies with a database need them.
    try:
        if service_id == "postgres":
            from weir.services.postgres import Postgres

            return Postgres()
        from weir.services.mariadb import Mariadb

        return Mariadb()
    except ImportError as error:
        raise missing_extra(error, "databases", f"service {service_id}") from None


def parse_database_url(variable: str, url: str, kind: DatabaseKind) -> Address:
    """Parses the URL of a user's own server from an environment variable. Raises UsageError for an invalid URL."""
    expected = f"expected {kind.scheme}://USER:PASSWORD@HOST:PORT/DATABASE"
    try:
        parts = urlsplit(url)
        port = parts.port or kind.default_port
    except ValueError as error:
        raise UsageError(f"{variable}: found {url!r}: {error}; {expected}") from None
    if parts.scheme not in kind.url_schemes or not parts.hostname or not parts.username:
        raise UsageError(f"{variable}: found {url!r}, {expected}")
    user, password = unquote(parts.username), unquote(parts.password or "")
    return Address(parts.hostname, port, user, password, unquote(parts.path.strip("/")) or kind.maintenance)


def read_whole_number(rows: Sequence[Sequence[Any]], sql: str) -> int:
    """Returns the whole number in a result of one row and one column. Raises ValueError for any other result."""
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
