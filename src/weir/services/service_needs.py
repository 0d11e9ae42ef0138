"""Checks whether this machine has the program of a service, or the tool that downloads the program."""

from weir.model.errors import UsageError
from weir.model.requirements import UnmetRequirement
from weir.services.manifest import SYSTEM_PROGRAMS, DatabaseService, FrontService, Service, StandbyService, read_service
from weir.services.package import find_fetch_command, is_fetched


def find_unmet_need(service: Service) -> UnmetRequirement | None:
    """Returns the unmet need of a service. None if this machine can run the service."""
    match service:
        case FrontService() if not service.find_program():
            return UnmetRequirement(service.program, f"not found on the PATH nor in {SYSTEM_PROGRAMS[0]}")
        case StandbyService():
            primary = read_service(service.of)
            assert isinstance(primary, DatabaseService)
            if primary.own_url is None:
                return find_unmet_need(primary)
            why = f"a standby needs a primary that weir starts, but {primary.own_server} names your own server"
            return UnmetRequirement(service.id, why)
        case DatabaseService() if service.own_url is None:
            try:
                package = service.package
            except UsageError as error:
                return UnmetRequirement(service.id, error.message.removeprefix(f"{service.id}: "))
            if not (is_fetched(service) or find_fetch_command(package)):
                return UnmetRequirement(
                    package.tool, f"not found on the PATH; weir needs it to download {package.name}"
                )
    return None
