"""A stack that runs: started through the host (or there already), awaited, found to answer right, and stopped with all below it."""

import random
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from weir.lab.host import Host
from weir.model.errors import TargetError
from weir.stacks.build import BuiltStack, base_environment
from weir.stacks.check import check_answers, wait_until_ready
from weir.stacks.external import ExternalStack
from weir.study.study import PlannedCell

_STOP_GRACE_S = 5.0
_EXTERNAL_READY_S = 5.0
APP = "app"
"""What the host calls the stack's process; a second one is `app-2`."""


@dataclass(frozen=True, slots=True)
class RunningStack:
    """A stack that is ready and has answered right."""

    base_urls: tuple[str, ...]
    """Scheme, host and port of each process."""
    pids: tuple[int, ...]
    ready_s: float | None
    """Until the last of its processes was ready; None where weir did not start them."""
    check_s: float
    """How long the checking of its answers took."""
    artifact_bytes: int | None = None

    @property
    def base_url(self) -> str:
        """That of the first process."""
        return self.base_urls[0]


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


def process_names(replicas: int) -> list[str]:
    """What the host calls the processes of a stack."""
    return [APP, *(f"{APP}-{number}" for number in range(2, replicas + 1))]


@contextmanager
def running_stack(
    host: Host,
    built: BuiltStack | None,
    planned: PlannedCell,
    *,
    cpus: tuple[int, ...],
    logs: Sequence[Path],
    inputs: random.Random,
    timeout_s: float,
    port: int = 0,
) -> Iterator[RunningStack]:
    """Starts a stack, waits until it is ready, checks the workload's answers, and stops it in the end. An external one is only checked.

    Args:
        host: starts and stops its processes.
        built: the built stack; None of an external one.
        planned: the cell: which workload, which settings, how many processes.
        cpus: the CPUs of all its processes together.
        logs: a file for the output of each process.
        inputs: draws the inputs of the check.
        timeout_s: how long an answer may take.
        port: where the first process listens; 0: any free port.

    Raises:
        TargetError: it did not start, did not become ready or answered wrong; the message names its log.
    """
    if isinstance(planned.stack, ExternalStack):
        yield _external(planned, planned.stack, inputs, timeout_s)
        return
    assert built is not None
    started: list[str] = []
    base_urls: list[str] = []
    pids: list[int] = []
    begun = time.monotonic()
    try:
        for name, log in zip(process_names(planned.cell.replicas), logs, strict=True):
            listening = free_port(port if name == APP else 0)
            pids.append(_start(host, built, planned, name, cpus=cpus, log=log, port=listening))
            started.append(name)
            base_urls.append(f"http://127.0.0.1:{listening}")
        for name, base_url, log in zip(started, base_urls, logs, strict=True):
            ready = built.stack.manifest.run.ready
            with _told(built.stack.label, log):
                wait_until_ready(base_url, ready.path, timeout_s=ready.timeout_s, why_dead=_why_dead(host, name))
        ready_at = time.monotonic()
        for base_url, log in zip(base_urls, logs, strict=True):
            with _told(built.stack.label, log):
                check_answers(planned.workload, base_url, inputs, path=planned.stack.path_of(planned.workload.id), timeout_s=timeout_s)
        checked_at = time.monotonic()
        yield RunningStack(tuple(base_urls), tuple(pids), ready_at - begun, checked_at - ready_at, built.artifact_bytes)
    finally:
        for name in started:
            host.stop(name, grace_s=_STOP_GRACE_S)


def _start(host: Host, built: BuiltStack, planned: PlannedCell, name: str, *, cpus: tuple[int, ...], log: Path, port: int) -> int:
    manifest, settings = built.stack.manifest, planned.cell.settings
    log.parent.mkdir(parents=True, exist_ok=True)
    fields = {
        "port": str(port),
        "artifact": str(built.folder / (manifest.build.artifact or "")) if manifest.build else str(built.folder),
        "cpus": str(len(cpus)),
        "python": sys.executable,
    }
    with _told(built.stack.label, log):
        return host.start(
            name,
            built.stack.command(settings, fields),
            tier=manifest.root_tier,
            cwd=built.folder,
            env={**base_environment(), **built.stack.environment(settings, fields)},
            log=log,
            cpus=cpus,
        )


def _external(planned: PlannedCell, stack: ExternalStack, inputs: random.Random, timeout_s: float) -> RunningStack:
    """An external server that answers, and answers right."""

    def why_dead() -> str | None:
        gone = [pid for pid in stack.pids if not Path(f"/proc/{pid}").is_dir()]
        return f"process {gone[0]} of external.{stack.id}.pids has ended" if gone else None

    begun = time.monotonic()
    try:
        wait_until_ready(stack.url, "/", timeout_s=_EXTERNAL_READY_S, why_dead=why_dead)
        check_answers(planned.workload, stack.url, inputs, path=None, timeout_s=timeout_s)
    except TargetError as error:
        raise TargetError(f"{stack.label} at {stack.url}: {error.message}", hint=error.hint or f"weir load {stack.url}/") from None
    return RunningStack((stack.url,), stack.pids, None, time.monotonic() - begun)


def _why_dead(host: Host, name: str) -> Callable[[], str | None]:
    def why() -> str | None:
        ended = host.ended(name)
        return None if ended is None else f"it ended {ended.how} before it was ready"

    return why


@contextmanager
def _told(label: str, log: Path) -> Iterator[None]:
    """What goes wrong, with the stack's name and its log."""
    try:
        yield
    except TargetError as error:
        raise TargetError(f"{label}: {error.message}; log: {log}", hint=error.hint or f"weir stacks check {label}") from None
