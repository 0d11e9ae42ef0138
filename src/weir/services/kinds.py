"""The kinds of database that weir knows, by the service's name."""

from weir.services.database import DatabaseKind


def kind_of(service_id: str) -> DatabaseKind:
    """What is known about the service of that name. Raises KeyError for a name that is not a database's."""
    # Their clients take long to import, and most studies have no database.
    match service_id:
        case "postgres":
            from weir.services.postgres import Postgres

            return Postgres()
        case "mariadb":
            from weir.services.mariadb import Mariadb

            return Mariadb()
    raise KeyError(service_id)
