"""The process of a service: started through the host in a tier of its own, awaited, and stopped in the end."""

import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from weir.host import Host, User
from weir.model.errors import TargetError
from weir.model.run import Limits, Placement
from weir.services.database import LOOPBACK

T = TypeVar("T")

_READY_S = 30.0
_READY_PAUSE_S = 0.01
_STOP_GRACE_S = 10.0


@dataclass(frozen=True, slots=True)
class Room:
    """What a server may use: the services' CPUs, or the stack's where they have none of their own, and the limits of its tier."""

    cpus: tuple[int, ...]
    limits: Limits | None

    @classmethod
    def of(cls, name: str, placement: Placement) -> "Room":
        """That of the service of this name."""
        return cls(placement.services or placement.stack, placement.limits.get(name))


@contextmanager
def service_process(
    host: Host, name: str, command: Sequence[str], *, cwd: Path, room: Room, log: Path, user: User | None = None
) -> Iterator[None]:
    """A server's process, in a tier of its own."""
    host.start(name, list(command), tier=name, cwd=cwd, env=service_environment(), log=log, cpus=room.cpus, user=user, limits=room.limits)
    try:
        yield
    finally:
        host.stop(name, grace_s=_STOP_GRACE_S)


def awaited(host: Host, name: str, log: Path, reached: Callable[[], T]) -> T:
    """What `reached` gives once the server is so far; `TargetError` of it says that it is not yet.

    Raises:
        TargetError: the server ended, or is not so far in time; the message names its log.
    """
    deadline = time.monotonic() + _READY_S
    while True:
        ended = host.ended(name)
        if ended is not None:
            raise TargetError("\n  ".join([f"{name}: it ended {ended.how} before it was ready; log: {log}", *tail(log)]))
        try:
            return reached()
        except TargetError as error:
            if time.monotonic() > deadline:
                raise TargetError(f"{name}: not ready within {_READY_S:g} s: {error.message}; log: {log}") from None
        # A server does not say when it begins to listen.
        time.sleep(_READY_PAUSE_S)


def listens(name: str, port: int, address: str = LOOPBACK) -> None:
    """Connects to a port, for `awaited`.

    Raises:
        TargetError: nobody listens.
    """
    try:
        socket.create_connection((address, port), timeout=1).close()
    except OSError as error:
        raise TargetError(f"{name}: port {port}: {error.strerror or error}") from None


def service_environment() -> dict[str, str]:
    """What a service is given: nothing of the user's that could tune it."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "HOME": "/nonexistent", "TZ": "UTC"}


def tail(log: Path) -> list[str]:
    """The last lines of a log; none where there is no log."""
    with suppress(OSError):
        return log.read_text(errors="replace").strip().splitlines()[-5:]
    return []
