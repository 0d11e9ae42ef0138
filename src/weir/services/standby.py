"""Settings of a streaming standby of PostgreSQL, and the log position up to which the standby has replayed.

A copy of a stopped server's data folder is a base backup (PostgreSQL's manual, 25.2): the standby starts at the
server's last checkpoint and gets later changes from its primary.
"""

from typing import Any, LiteralString

from weir.model.errors import TargetError
from weir.services.database import Address

SIGNAL_FILE = "standby.signal"
"""Name of an empty file in a data folder. This file makes the server start as a standby."""


def build_standby_settings(primary: Address) -> dict[str, str]:
    """Returns the settings of a standby of `primary`. The user of `primary` must have the right to replicate."""
    login = f"user={primary.user} password={primary.password}"
    return {"primary_conninfo": f"host={primary.host} port={primary.port} {login}"}


def read_written_position(primary: Address) -> str:
    """Returns the position (LSN) of the end of a primary's write-ahead log."""
    return str(_query(primary, "SELECT pg_current_wal_flush_lsn()")[0][0])


def require_replayed(standby: Address, position: str) -> None:
    """Raises TargetError if a standby does not stream, or has not replayed the primary's log up to `position`."""
    replay: LiteralString = "pg_last_wal_replay_lsn()::text, pg_last_wal_replay_lsn() >= %s::pg_lsn"
    query: LiteralString = f"SELECT {replay}, (SELECT status FROM pg_stat_wal_receiver)"
    ((replayed, reached, receiver),) = _query(standby, query, position)
    if receiver != "streaming" or not reached:
        found = f"found receiver status {receiver or 'missing'}, log replayed up to {replayed}"
        raise TargetError(f"{found}; expected status streaming, and the primary's position {position}")


def _query(address: Address, query: LiteralString, *values: str) -> list[tuple[Any, ...]]:
    # This import is slow, and only studies with a database need it.
    from weir.services.postgres import connect, translate_errors

    with translate_errors(address), connect(address) as connection:
        return connection.execute(query, values).fetchall()
