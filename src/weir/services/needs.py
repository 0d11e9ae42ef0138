"""What a service needs of this machine before it can run: its program, or a tool that fetches it."""

from weir.model.errors import UsageError
from weir.model.needs import Unmet
from weir.services.manifest import SYSTEM_PROGRAMS, DatabaseService, FrontService, Service, StandbyService, read_service
from weir.services.package import can_fetch, is_fetched


def unmet_by_machine(service: Service) -> Unmet | None:
    """What a service lacks here; None where it can run."""
    match service:
        case FrontService():
            return None if service.found() else Unmet(service.program, f"not found on the PATH nor in {SYSTEM_PROGRAMS[0]}")
        case StandbyService():
            primary = read_service(service.of)
            assert isinstance(primary, DatabaseService)
            if primary.own_url is not None:
                return Unmet(service.id, f"made from the data of a server that weir starts, found one of your own in {primary.own_server}")
            return unmet_by_machine(primary)
        case DatabaseService():
            return _unmet_by_database(service)
        case _:
            return None


def _unmet_by_database(service: DatabaseService) -> Unmet | None:
    if service.own_url is not None:
        return None
    try:
        package = service.package
    except UsageError as error:
        return Unmet(service.id, error.message.removeprefix(f"{service.id}: "))
    if is_fetched(service) or can_fetch(package):
        return None
    return Unmet(package.tool, f"not found on the PATH; it fetches {package.name}")
