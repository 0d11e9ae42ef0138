"""MariaDB, and MySQL as a server of the user's own: how it is made, started and filled, and what its status counters say it did.

`SHOW GLOBAL STATUS` counts by kind of statement (Com_select) and costs nothing while the load runs, which the performance schema does.
"""

import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pymysql
from pymysql.connections import Connection

from weir.model.errors import TargetError
from weir.services.counters import Count, Counters
from weir.services.database import LOOPBACK, PROBES, SILENT_S, Address, insert_sql, table_sql, whole_number
from weir.services.dataset import ColumnType, Dataset

_CONNECT_S = 5
_SUPERUSER = "weir"
_ACCOUNTS = "accounts.sql"
_TYPES: dict[ColumnType, str] = {"integer": "int", "text": "varchar(255)", "timestamp": "datetime(6)"}
_DATA = (
    "select", "insert", "insert_select", "update", "update_multi", "delete", "delete_multi", "replace", "replace_select", "call_procedure",
    "load", "execute_immediate", "do",
)  # fmt: skip
_CONTROL = (
    "begin", "commit", "rollback", "rollback_to_savepoint", "savepoint", "release_savepoint", "set_option", "change_db", "admin_commands",
    "prepare_sql", "stmt_prepare", "stmt_reset",
)  # fmt: skip
"""Preparing is no work on data, but it is a round trip; executing a prepared statement counts as the statement that it is."""
_CHANGED_ROWS = ("Handler_write", "Handler_update", "Handler_delete")
_SENT_ROWS = "Rows_sent"
_INSERTS_RETURNING = "Feature_insert_returning"
"""INSERT … RETURNING, each taken to give one row: how the R2DBC driver learns the key of a row that it inserts. The JDBC driver has it from
the packet that ends every INSERT, which is no row."""
_BYTES = {"sent": "Bytes_sent", "received": "Bytes_received"}
_NAMES = (*(f"Com_{kind}" for kind in (*_DATA, *_CONTROL)), *_CHANGED_ROWS, _SENT_ROWS, _INSERTS_RETURNING, *_BYTES.values())
_STATUS = f"SHOW {{scope}} STATUS WHERE Variable_name IN ({', '.join(repr(name) for name in _NAMES)})"


class Mariadb:
    """MariaDB."""

    scheme = "mariadb"
    default_port = 3306
    maintenance = "mysql"

    def files(self, clients: Sequence[str]) -> Mapping[str, str]:
        """An account for TCP, which does not know localhost without looking names up."""
        accounts = [f"'{_SUPERUSER}'@'{client}'" for client in clients]
        made = [f"CREATE USER {one} IDENTIFIED BY '{_SUPERUSER}';\nGRANT ALL ON *.* TO {one} WITH GRANT OPTION;\n" for one in accounts]
        return {_ACCOUNTS: "".join(["FLUSH PRIVILEGES;\n", *made])}

    def make(self, programs: Path, data: Path, scratch: Path) -> list[str]:
        """`mariadb-install-db`."""
        return [
            str(programs / "scripts" / "mariadb-install-db"),
            "--no-defaults",
            f"--basedir={programs}",
            f"--datadir={data}",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            "--skip-name-resolve",
            f"--extra-file={scratch / _ACCOUNTS}",
        ]

    def serve(self, programs: Path, data: Path, scratch: Path, address: str, port: int, settings: Mapping[str, str]) -> list[str]:
        """`mariadbd`. Its socket file, which nobody needs, lies in its data folder: such a path may have 107 bytes only."""
        del scratch
        return [
            str(programs / "bin" / "mariadbd"),
            "--no-defaults",
            f"--basedir={programs}",
            f"--datadir={data}",
            f"--port={port}",
            f"--bind-address={address}",
            "--socket=mariadb.sock",
            "--pid-file=mariadb.pid",
            "--skip-name-resolve",
            # Each start would make a key and a certificate of its own, which takes seconds.
            "--skip-ssl",
            *(f"--{name}={value}" for name, value in settings.items()),
        ]

    def admin(self, port: int, host: str = LOOPBACK) -> Address:
        """The account of `make`."""
        return Address(host, port, _SUPERUSER, _SUPERUSER, self.maintenance)

    def session(self, address: Address) -> "MariadbSession":
        """A connection of weir's own."""
        return MariadbSession(_connect(address), address)

    def fill(self, address: Address, dataset: Dataset) -> None:
        """Tables and rows."""
        with _explained(address), _connect(address) as connection, connection.cursor() as cursor:
            for name, table in dataset.tables.items():
                cursor.execute(table_sql(name, table, _TYPES, "AUTO_INCREMENT"))
                if table.rows:
                    cursor.executemany(insert_sql(name, table), list(dataset.rows(name)))

    def value(self, address: Address, query: str) -> int:
        """The number that a query gives."""
        with _explained(address), _connect(address) as connection, connection.cursor() as cursor:
            cursor.execute(query)
            return whole_number(cursor.fetchall(), query)


class MariadbSession:
    """weir's own connection. The server's counters cover all connections, so it takes its own off."""

    def __init__(self, connection: "Connection[Any]", address: Address) -> None:
        self._connection = connection
        self._address = address
        self._rows_read = 0

    def create(self, database: str, owner: Address) -> None:
        """Makes an empty database, and its owner where that is somebody else."""
        self._execute(f"CREATE DATABASE `{database}` CHARACTER SET utf8mb4")
        for client in owner.clients if owner.user != self._address.user else ():
            self._execute(f"CREATE USER '{owner.user}'@'{client}' IDENTIFIED BY '{owner.password}'")
            self._execute(f"GRANT ALL ON `{database}`.* TO '{owner.user}'@'{client}'")

    def drop(self, database: str) -> None:
        """Removes a database."""
        self._execute(f"DROP DATABASE IF EXISTS `{database}`")

    def counters(self, database: str) -> Counters:
        """What the whole server has counted less what this connection did: beside a trial's stack nobody else asks a server of ours.

        The session is read after the server, so that both hold the same number of weir's own readings.
        """
        rows_read = self._rows_read
        server, own = (dict(self._execute(_STATUS.format(scope=scope))) for scope in ("GLOBAL", "SESSION"))
        # A session's own Rows_sent is always 0.
        own[_SENT_ROWS] = rows_read
        found = {name: int(server[name]) - int(own.get(name, 0)) for name in server}
        statements: dict[tuple[str, ...], Count] = {
            (kind.upper().replace("_", " "),): Count(found[f"Com_{kind}"], None) for kind in (*_DATA, *_CONTROL) if f"Com_{kind}" in found
        }
        # MySQL has no such statement, and no such counter.
        key_rows = found.get(_INSERTS_RETURNING, 0)
        rows = sum(found[name] for name in (_SENT_ROWS, *_CHANGED_ROWS)) - key_rows if _SENT_ROWS in found else None
        return Counters(statements, {name: found[variable] for name, variable in _BYTES.items()}, rows, key_rows)

    def close(self) -> None:
        """Ends the connection."""
        self._connection.close()

    def _execute(self, query: str) -> "tuple[tuple[Any, ...], ...]":
        with _explained(self._address), self._connection.cursor() as cursor:
            cursor.execute(query)
            rows = tuple(cursor.fetchall())
        self._rows_read += len(rows)
        return rows


def _connect(address: Address) -> "Connection[Any]":
    with _explained(address):
        connection = pymysql.connect(
            host=address.host,
            port=address.port,
            user=address.user,
            password=address.password,
            database=address.database,
            autocommit=True,
            defer_connect=True,
        )
        way = socket.create_connection((address.host, address.port), timeout=_CONNECT_S)
        try:
            way.settimeout(None)
            for option, value in (
                (socket.TCP_NODELAY, 1),
                (socket.TCP_KEEPIDLE, SILENT_S),
                (socket.TCP_KEEPINTVL, 1),
                (socket.TCP_KEEPCNT, PROBES),
                (socket.TCP_USER_TIMEOUT, (SILENT_S + PROBES) * 1000),
            ):
                way.setsockopt(socket.IPPROTO_TCP, option, value)
            way.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            connection.connect(way)
        except BaseException:
            way.close()
            raise
        return connection


@contextmanager
def _explained(address: Address) -> Iterator[None]:
    try:
        yield
    except (pymysql.Error, ValueError, OSError) as error:
        where = f"mariadb at {address.host}:{address.port}, database {address.database}"
        raise TargetError(f"{where}: {' '.join(str(part) for part in error.args)}") from None
