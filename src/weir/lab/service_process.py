"""Runs the process of a service under a host, in a separate tier."""

import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from weir.host import User
from weir.model.errors import TargetError
from weir.model.run_types import Limits, Placement
from weir.services.database import LOOPBACK
from weir.services.service_host import ServiceHost

T = TypeVar("T")

_READY_S = 30.0
_READY_PAUSE_S = 0.01
_STOP_GRACE_S = 10.0


@dataclass(frozen=True, slots=True)
class ServiceProcess:
    """The process of a service, on the machine `place`."""

    place: ServiceHost
    name: str
    """Common name of the service, its process and its tier."""
    log: Path
    """File for the output of the process, on this machine or on `place` (see `is_log_there`)."""
    cpus: tuple[int, ...]
    """CPUs of the process; empty: all CPUs of the machine."""
    limits: Limits | None
    is_log_there: bool = False
    """Whether `log` is on the machine `place` instead of this machine."""

    @classmethod
    def plan(cls, place: ServiceHost, name: str, placement: Placement, log: Path) -> "ServiceProcess":
        """Returns a service's process with the limits of its tier. The process gets the services' CPUs, or the stack's
        if the services have none. On another machine it gets all CPUs: a placement has only CPUs of this machine."""
        cpus = placement.services or placement.stack if place.node is None else ()
        return cls(place, name, log, cpus, placement.limits.get(name))

    @contextmanager
    def running(
        self, command: Sequence[str], connect: Callable[[], T], *, cwd: Path, user: User | None = None
    ) -> Iterator[T]:
        """Starts the process, waits until it is ready, and yields the result of `connect`. Finally stops the process.
        See `wait` for `connect` and errors. `user` is the user of the process; None: weir's user."""
        with nullcontext(self.log) if self.is_log_there else self.place.logged(self.log) as written:
            self.place.host.start(
                self.name,
                command,
                tier=self.name,
                cwd=cwd,
                env=build_environment(),
                log=written,
                cpus=self.cpus,
                user=user,
                limits=self.limits,
            )
            try:
                yield self.wait(connect)
            finally:
                self.place.host.stop(self.name, grace_s=_STOP_GRACE_S)

    def wait(self, connect: Callable[[], T]) -> T:
        """Calls `connect` again after each TargetError, until it succeeds. Returns the result. Raises TargetError (with
        the log's path) if the server ended, or is not ready in time."""
        deadline = time.monotonic() + _READY_S
        while True:
            ended = self.place.host.ended(self.name)
            if ended is not None:
                why = f"{self.name}: the process ended {ended.how} before it was ready; log: {self.log}"
                lines: list[str] = []
                with suppress(OSError):
                    lines = self.log.read_text(errors="replace").strip().splitlines()[-5:]
                raise TargetError("\n  ".join([why, *lines]))
            try:
                return connect()
            except TargetError as error:
                if time.monotonic() > deadline:
                    late = f"{self.name}: not ready within {_READY_S:g} s: {error.message}; log: {self.log}"
                    raise TargetError(late) from None
            # No event reports that a server listens, so weir tries again after a pause.
            time.sleep(_READY_PAUSE_S)


def probe_port(name: str, port: int, address: str = LOOPBACK) -> None:
    """Connects to a port. Raises TargetError if no server listens on the port."""
    try:
        socket.create_connection((address, port), timeout=1).close()
    except OSError as error:
        raise TargetError(f"{name}: cannot connect to port {port}: {error.strerror or error}") from None


def build_environment() -> dict[str, str]:
    """Returns a service's environment. Leaves out the user's variables, because they could change the service."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "HOME": "/nonexistent", "TZ": "UTC"}
