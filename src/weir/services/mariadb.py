"""MariaDB, and the user's own MySQL server: commands, data and status counters. `SHOW GLOBAL STATUS` returns counts of
statements by kind (Com_select). Unlike the performance schema, these counts cost nothing under load."""

import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pymysql
from pymysql.connections import Connection

from weir.model.errors import TargetError
from weir.services.counters import Count, Counters
from weir.services.database import CONNECT_S, PROBES, SILENT_S, SUPERUSER, Address, DatabaseKind, read_whole_number
from weir.services.dataset import ColumnType, Dataset

_TCP_OPTIONS = {
    socket.TCP_NODELAY: 1,
    socket.TCP_KEEPIDLE: SILENT_S,
    socket.TCP_KEEPINTVL: 1,
    socket.TCP_KEEPCNT: PROBES,
    socket.TCP_USER_TIMEOUT: (SILENT_S + PROBES) * 1000,
}
_ACCOUNTS = "accounts.sql"
_DATA = (
    "select insert insert_select update update_multi delete delete_multi replace replace_select call_procedure load "
    "execute_immediate do"
)
_CONTROL = (
    "begin commit rollback rollback_to_savepoint savepoint release_savepoint set_option change_db admin_commands "
    "prepare_sql stmt_prepare stmt_reset"
)
"""Kinds of statements that neither read nor change data. The execution of a prepared SELECT counts as `select`."""
_KINDS = {f"Com_{kind}": kind.upper().replace("_", " ") for kind in f"{_DATA} {_CONTROL}".split()}
_CHANGED_ROWS = ("Handler_write", "Handler_update", "Handler_delete")
_SENT_ROWS = "Rows_sent"
_INSERTS_RETURNING = "Feature_insert_returning"
"""Number of INSERT … RETURNING statements. weir counts one row for each of them: the R2DBC driver reads generated keys
from this row. The JDBC driver gets generated keys from the INSERT's OK packet, without a row."""
_BYTES = {"sent": "Bytes_sent", "received": "Bytes_received"}
_NAMES = (*_KINDS, *_CHANGED_ROWS, _SENT_ROWS, _INSERTS_RETURNING, *_BYTES.values())
_STATUS = f"SHOW {{scope}} STATUS WHERE Variable_name IN ({', '.join(map(repr, _NAMES))})"


class Mariadb(DatabaseKind):
    """The database kind MariaDB."""

    scheme = "mariadb"
    url_schemes = frozenset({"mariadb", "mysql"})
    default_port = 3306
    maintenance = "mysql"
    types: ClassVar[Mapping[ColumnType, str]] = {"integer": "int", "text": "varchar(255)", "timestamp": "datetime(6)"}
    generated = "AUTO_INCREMENT"

    def files(self, clients: Sequence[str]) -> Mapping[str, str]:
        """Returns SQL that creates accounts by IP address: a server without name lookups does not know localhost."""
        create = f"CREATE USER {{one}} IDENTIFIED BY '{SUPERUSER}';\nGRANT ALL ON *.* TO {{one}} WITH GRANT OPTION;\n"
        made = [create.format(one=f"'{SUPERUSER}'@'{client}'") for client in clients]
        return {_ACCOUNTS: "".join(["FLUSH PRIVILEGES;\n", *made])}

    def make(self, programs: Path, data: Path, scratch: Path) -> list[str]:
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

    def serve(
        self, programs: Path, data: Path, scratch: Path, address: str, port: int, settings: Mapping[str, str]
    ) -> list[str]:
        return [
            str(programs / "bin" / "mariadbd"),
            "--no-defaults",
            f"--basedir={programs}",
            f"--datadir={data}",
            f"--port={port}",
            f"--bind-address={address}",
            # weir does not use this socket. A relative path is short: socket paths have at most 107 bytes.
            "--socket=mariadb.sock",
            "--pid-file=mariadb.pid",
            "--skip-name-resolve",
            # Otherwise each start would create a key and a certificate, which takes seconds.
            "--skip-ssl",
            *(f"--{name}={value}" for name, value in settings.items()),
        ]

    def session(self, address: Address) -> "MariadbSession":
        return MariadbSession(_connect(address), address)

    def fill(self, address: Address, dataset: Dataset) -> None:
        with _translate_errors(address), _connect(address) as connection, connection.cursor() as cursor:
            for name, table in dataset.tables.items():
                cursor.execute(self.build_table_sql(name, table))
                if table.rows:
                    cursor.executemany(self.build_insert_sql(name, table), list(dataset.rows(name)))

    def value(self, address: Address, query: str) -> int:
        with _translate_errors(address), _connect(address) as connection, connection.cursor() as cursor:
            cursor.execute(query)
            return read_whole_number(cursor.fetchall(), query)


class MariadbSession:
    """weir's own connection. The server counts all connections together. The session subtracts its own counters."""

    def __init__(self, connection: "Connection[Any]", address: Address) -> None:
        self._connection, self._address = connection, address
        self._rows_read = 0

    def create(self, database: str, owner: Address) -> None:
        self._execute(f"CREATE DATABASE `{database}` CHARACTER SET utf8mb4")
        for client in owner.clients if owner.user != self._address.user else ():
            self._execute(f"CREATE USER '{owner.user}'@'{client}' IDENTIFIED BY '{owner.password}'")
            self._execute(f"GRANT ALL ON `{database}`.* TO '{owner.user}'@'{client}'")

    def drop(self, database: str) -> None:
        self._execute(f"DROP DATABASE IF EXISTS `{database}`")

    def counters(self, database: str) -> Counters:
        """Returns the server's counters minus this connection's. Only the trial's stack and weir use the server. Reads
        this connection's counters last, so that both readings include the same number of weir's statements."""
        rows_read = self._rows_read
        server, own = (dict(self._execute(_STATUS.format(scope=scope))) for scope in ("GLOBAL", "SESSION"))
        # The Rows_sent of a session is always 0.
        own[_SENT_ROWS] = rows_read
        found = {name: int(server[name]) - int(own.get(name, 0)) for name in server}
        kinds = {text: found[name] for name, text in _KINDS.items() if name in found}
        statements: dict[tuple[str, ...], Count] = {(text,): Count(calls, None) for text, calls in kinds.items()}
        # MySQL has neither INSERT … RETURNING nor its counter.
        key_rows = found.get(_INSERTS_RETURNING, 0)
        rows = sum(found[name] for name in (_SENT_ROWS, *_CHANGED_ROWS)) - key_rows if _SENT_ROWS in found else None
        return Counters(statements, {name: found[variable] for name, variable in _BYTES.items()}, rows, key_rows)

    def close(self) -> None:
        self._connection.close()

    def _execute(self, query: str) -> tuple[tuple[Any, ...], ...]:
        with _translate_errors(self._address), self._connection.cursor() as cursor:
            cursor.execute(query)
            rows = tuple(cursor.fetchall())
        self._rows_read += len(rows)
        return rows


def _connect(address: Address) -> "Connection[Any]":
    with _translate_errors(address):
        login = {name: getattr(address, name) for name in ("host", "port", "user", "password", "database")}
        connection = pymysql.connect(**login, autocommit=True, defer_connect=True)
        way = socket.create_connection((address.host, address.port), timeout=CONNECT_S)
        try:
            way.settimeout(None)
            for option, value in _TCP_OPTIONS.items():
                way.setsockopt(socket.IPPROTO_TCP, option, value)
            way.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            connection.connect(way)
        except BaseException:
            way.close()
            raise
        return connection


@contextmanager
def _translate_errors(address: Address) -> Iterator[None]:
    try:
        yield
    except (pymysql.Error, ValueError, OSError) as error:
        where = f"mariadb at {address.host}:{address.port}, database {address.database}"
        raise TargetError(f"{where}: {' '.join(str(part) for part in error.args)}") from None
