"""The process of a service: a host starts it in a tier of its own and stops it in the end."""

import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from weir.host import Host, User
from weir.model.errors import TargetError
from weir.model.run_types import Limits, Placement
from weir.services.database import LOOPBACK
from weir.services.service_host import ServiceHost

T = TypeVar("T")

_READY_S = 30.0
_READY_PAUSE_S = 0.01
_STOP_GRACE_S = 10.0


@dataclass(frozen=True, slots=True)
class ResourceAllocation:
    """CPUs and limits of a service: the services' CPUs, or else the stack's, and the limits of its tier."""

    cpus: tuple[int, ...]
    limits: Limits | None

    @classmethod
    def for_service(cls, name: str, placement: Placement, place: ServiceHost) -> "ResourceAllocation":
        """Returns the allocation of a service; all CPUs on another machine: a placement has those of this one."""
        cpus = placement.services or placement.stack if place.node is None else ()
        return cls(cpus, placement.limits.get(name))


@contextmanager
def run_service(
    place: ServiceHost,
    name: str,
    command: Sequence[str],
    connect: Callable[[], T],
    *,
    cwd: Path,
    resources: ResourceAllocation,
    log: Path,
    user: User | None = None,
    is_log_there: bool = False,
) -> Iterator[T]:
    """Starts the process of a service and waits until it is ready. Yields the result of `connect`, and stops it.

    Args:
        place: its machine.
        name: of the service, its process and its tier.
        command: the program with its arguments.
        connect: raises TargetError while the server is not ready.
        cwd: working directory.
        resources: CPUs and limits.
        log: file for its output, on this machine unless `is_log_there`.
        user: its user; None: weir's user.
        is_log_there: whether `log` is a file of the service's machine.
    """
    with nullcontext(log) if is_log_there else place.logged(log) as written:
        environment, cpus, limits = build_environment(), resources.cpus, resources.limits
        place.host.start(
            name, command, tier=name, cwd=cwd, env=environment, log=written, cpus=cpus, user=user, limits=limits
        )
        try:
            yield wait_for_service(place.host, name, log, connect)
        finally:
            place.host.stop(name, grace_s=_STOP_GRACE_S)


def wait_for_service(host: Host, name: str, log: Path, connect: Callable[[], T]) -> T:
    """Returns the result of `connect` once that raises no TargetError. Raises TargetError, which names the log, if the
    server ended or is not ready in time."""
    deadline = time.monotonic() + _READY_S
    while True:
        ended = host.ended(name)
        if ended is not None:
            lines: list[str] = []
            with suppress(OSError):
                lines = log.read_text(errors="replace").strip().splitlines()[-5:]
            raise TargetError("\n  ".join([f"{name}: it ended {ended.how} before it was ready; log: {log}", *lines]))
        try:
            return connect()
        except TargetError as error:
            if time.monotonic() > deadline:
                raise TargetError(f"{name}: not ready within {_READY_S:g} s: {error.message}; log: {log}") from None
        # A server does not report when it begins to listen.
        time.sleep(_READY_PAUSE_S)


def probe_port(name: str, port: int, address: str = LOOPBACK) -> None:
    """Connects to a port; raises TargetError if no server listens."""
    try:
        socket.create_connection((address, port), timeout=1).close()
    except OSError as error:
        raise TargetError(f"{name}: port {port}: {error.strerror or error}") from None


def build_environment() -> dict[str, str]:
    """Returns the environment of a service, without the user's variables, which could change its settings."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "HOME": "/nonexistent", "TZ": "UTC"}
