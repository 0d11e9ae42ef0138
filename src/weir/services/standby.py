"""A streaming standby of PostgreSQL: what makes a copied data folder one, and how far it has come.

A copy of a stopped server's data folder is a base backup (PostgreSQL's manual, 25.2): the standby begins at the checkpoint with which that
server stopped and gets from its primary what was written since.
"""

from pathlib import Path

from weir.model.errors import TargetError
from weir.services.database import Address
from weir.services.postgres import connect, explained

_SIGNAL = "standby.signal"


def become_standby(data: Path) -> None:
    """Makes a stopped server's data folder that of a standby."""
    (data / _SIGNAL).touch()


def following_settings(primary: Address) -> dict[str, str]:
    """Settings with which a standby follows.

    Args:
        primary: the server to follow, and a role that may replicate.
    """
    return {"primary_conninfo": f"host={primary.host} port={primary.port} user={primary.user} password={primary.password}"}


def written_position(primary: Address) -> str:
    """Up to where a primary's log is written, as its LSN."""
    with explained(primary), connect(primary) as connection:
        return str(connection.execute("SELECT pg_current_wal_flush_lsn()").fetchall()[0][0])


def require_replayed(standby: Address, position: str) -> None:
    """Holds a standby against a position of its primary's log.

    Raises:
        TargetError: it does not follow, or is not there yet.
    """
    with explained(standby), connect(standby) as connection:
        asked = "SELECT pg_last_wal_replay_lsn()::text, pg_last_wal_replay_lsn() >= %s::pg_lsn, (SELECT status FROM pg_stat_wal_receiver)"
        ((replayed, reached, receiver),) = connection.execute(asked, (position,)).fetchall()
    if receiver != "streaming" or not reached:
        raise TargetError(f"its receiver is {receiver or 'not there'}, replayed up to {replayed}; expected {position} of its primary")
