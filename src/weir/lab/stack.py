"""A stack that runs: started through the host, awaited, found to answer right, and stopped with everything below it."""

import random
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from weir.lab.host import Host
from weir.model.errors import TargetError
from weir.stacks.build import BuiltStack, base_environment
from weir.stacks.check import check_answers, wait_until_ready
from weir.study.study import PlannedCell

_STOP_GRACE_S = 5.0
APP = "app"
"""What the host calls the stack's process."""


@dataclass(frozen=True, slots=True)
class RunningStack:
    """A stack that is ready and has answered right."""

    base_url: str
    pid: int
    ready_s: float


def free_port(wanted: int = 0) -> int:
    """A loopback port that nothing listens on: the wanted one, or any.

    Raises:
        TargetError: something listens on the wanted one.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError as error:
            raise TargetError(f"--port: {wanted}: {error.strerror}; expected a free port", hint=f"ss -ltnp 'sport = :{wanted}'") from None
        return int(probe.getsockname()[1])


@contextmanager
def running_stack(
    host: Host,
    built: BuiltStack,
    planned: PlannedCell,
    *,
    cpus: tuple[int, ...],
    log: Path,
    inputs: random.Random,
    timeout_s: float,
    port: int = 0,
) -> Iterator[RunningStack]:
    """Starts a stack, waits until it is ready, checks the workload's answers, and stops it in the end.

    Raises:
        TargetError: it did not start, did not become ready or answered wrong; the message names its log.
    """
    manifest, port = built.stack.manifest, free_port(port)
    base_url = f"http://127.0.0.1:{port}"
    log.parent.mkdir(parents=True, exist_ok=True)
    fields = {
        "port": str(port),
        "artifact": str(built.folder / (manifest.build.artifact or "")) if manifest.build else str(built.folder),
        "cpus": str(len(cpus)),
        "python": sys.executable,
    }
    settings = planned.cell.settings
    command = built.stack.command(settings, fields)
    environment = {**base_environment(), **built.stack.environment(settings, fields)}

    def why_dead() -> str | None:
        ended = host.ended(APP)
        return None if ended is None else f"it ended {ended.how} before it was ready"

    def told(error: TargetError) -> TargetError:
        return TargetError(f"{built.stack.label}: {error.message}; log: {log}", hint=error.hint or f"weir stacks check {built.stack.label}")

    started = time.monotonic()
    try:
        pid = host.start(APP, command, tier=manifest.root_tier, cwd=built.folder, env=environment, log=log, cpus=cpus)
    except TargetError as error:
        raise told(error) from None
    try:
        try:
            ready = manifest.run.ready
            wait_until_ready(base_url, ready.path, timeout_s=ready.timeout_s, why_dead=why_dead)
            ready_s = time.monotonic() - started
            path = manifest.serves[planned.workload.id].path
            check_answers(planned.workload, base_url, inputs, path=path, timeout_s=timeout_s)
        except TargetError as error:
            raise told(error) from None
        yield RunningStack(base_url, pid, ready_s)
    finally:
        host.stop(APP, grace_s=_STOP_GRACE_S)
