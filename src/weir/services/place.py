"""Where services run: beside their stack, or on a machine of their own, through a host there."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weir.host import Host
from weir.model.records import Sample
from weir.services.folder import Folder


@dataclass(frozen=True, slots=True)
class ServicePlace:
    """A machine for services."""

    host: Host
    """Starts, watches and stops them there."""
    engine: Path
    """`weir-engine` there."""
    address: str
    """Where they listen, and stacks reach them."""
    clients: tuple[str, ...]
    """The addresses that stacks, weir and one service of another come from: nobody else may log in."""
    free_port: Callable[[], int]
    """A port of that address that nothing listens on."""
    logged: Callable[[Path], AbstractContextManager[Path]]
    """From a log's path here to where it is written meanwhile; it is here in the end."""
    folder: Callable[[], Folder]
    """Makes a folder there for data."""
    node: str | None = None
    """What the machine is called; None: it is this one."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What is known of it, for the run file."""
    reading: Callable[[Sample], Sample] = lambda sample: sample
    """A reading of its processes by this machine's clock, without what it says of the machine."""
