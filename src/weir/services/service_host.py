"""The machine on which services run: the stack's machine, or another machine with a host process."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weir.host import Host
from weir.model.observer_records import Sample
from weir.services.database import LOOPBACK
from weir.services.folder import ServiceFolder


@dataclass(frozen=True, slots=True)
class ServiceHost:
    """A machine for services, and functions that use this machine."""

    host: Host
    """Host that starts, samples and stops the services' processes."""
    engine: Path
    """Path of `weir-engine` on the services' machine."""
    free_port: Callable[[], int]
    """A function that returns a free port of `address`."""
    folder: Callable[[], ServiceFolder]
    """A function that creates a folder for data on the services' machine."""
    address: str = LOOPBACK
    clients: tuple[str, ...] = (LOOPBACK,)
    """Addresses of stacks, weir and other services. Other clients cannot log in."""
    logged: Callable[[Path], AbstractContextManager[Path]] = nullcontext
    """Context manager: takes a log's path on this machine, and yields a path on the services' machine. At the end of
    the `with` block, copies the log to this machine."""
    node: str | None = None
    """Name of the services' machine. None: this machine."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Facts about the services' machine for the run file."""
    reading: Callable[[Sample], Sample] = lambda sample: sample
    """A function that converts a sample to this machine's clock, and removes figures about the whole machine."""
