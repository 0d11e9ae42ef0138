"""A streaming standby of PostgreSQL: what makes a copied data folder one, and how far it has come.

A copy of a stopped server's data folder is a base backup (PostgreSQL's manual, 25.2): the standby begins at the checkpoint with which that
server stopped and gets from its primary what was written since.
"""

from typing import Any, LiteralString

from weir.model.errors import TargetError
from weir.services.database import Address

SIGNAL_FILE = "standby.signal"
"""An empty file with which a stopped server's data folder is that of a standby."""


def following_settings(primary: Address) -> dict[str, str]:
    """Settings with which a standby follows.

    Args:
        primary: the server to follow, and a role that may replicate.
    """
    return {"primary_conninfo": f"host={primary.host} port={primary.port} user={primary.user} password={primary.password}"}


def written_position(primary: Address) -> str:
    """Up to where a primary's log is written, as its LSN."""
    return str(_asked(primary, "SELECT pg_current_wal_flush_lsn()")[0][0])


def require_replayed(standby: Address, position: str) -> None:
    """Holds a standby against a position of its primary's log.

    Raises:
        TargetError: it does not follow, or is not there yet.
    """
    query = "SELECT pg_last_wal_replay_lsn()::text, pg_last_wal_replay_lsn() >= %s::pg_lsn, (SELECT status FROM pg_stat_wal_receiver)"
    ((replayed, reached, receiver),) = _asked(standby, query, position)
    if receiver != "streaming" or not reached:
        raise TargetError(f"its receiver is {receiver or 'not there'}, replayed up to {replayed}; expected {position} of its primary")


def _asked(address: Address, query: LiteralString, *values: str) -> list[tuple[Any, ...]]:
    # PostgreSQL's client takes long to import, and most studies have no standby.
    from weir.services.postgres import connect, explained

    with explained(address), connect(address) as connection:
        return connection.execute(query, values).fetchall()
