"""The kinds of database that weir knows, by the service's name."""

from weir.services.database import DatabaseKind
from weir.services.mariadb import Mariadb
from weir.services.postgres import Postgres

_KINDS: dict[str, type[DatabaseKind]] = {"postgres": Postgres, "mariadb": Mariadb}


def kind_of(service_id: str) -> DatabaseKind:
    """What is known about the service of that name."""
    return _KINDS[service_id]()
