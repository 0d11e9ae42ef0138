"""The machine for services: the stack's machine, or another machine with a host process."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weir.host import Host
from weir.model.records import Sample
from weir.services.database import LOOPBACK
from weir.services.folder import ServiceFolder


@dataclass(frozen=True, slots=True)
class ServiceHost:
    """A machine for services."""

    host: Host
    """Host that starts, samples and stops the services' processes."""
    engine: Path
    """Path of `weir-engine` on that machine."""
    free_port: Callable[[], int]
    """Returns a free port of `address`."""
    folder: Callable[[], ServiceFolder]
    """Creates a folder for data on that machine."""
    address: str = LOOPBACK
    """Address of the services."""
    clients: tuple[str, ...] = (LOOPBACK,)
    """Addresses of stacks, weir and other services. Only clients with these addresses may log in."""
    logged: Callable[[Path], AbstractContextManager[Path]] = nullcontext
    """Takes a log's path on this machine, yields a path on that machine, and copies the log back in the end."""
    node: str | None = None
    """Name of the machine; None: this machine."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Facts about the machine for the run file."""
    reading: Callable[[Sample], Sample] = lambda sample: sample
    """Converts a sample to this machine's clock, without figures of the whole machine for services."""
