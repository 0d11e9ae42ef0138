"""A stack that runs: started through the host (or there already), awaited, found to answer right, and stopped with all below it."""

import os
import random
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from random import SystemRandom

from weir.host import Ended, Host, Started
from weir.model.errors import NotWrittenError, TargetError
from weir.model.run import Placement
from weir.observe.jvm import is_shared_by_jvms, pause_log, pause_logs, with_pause_log
from weir.services.database import LOOPBACK
from weir.stacks.build import BuiltStack
from weir.stacks.check import CheckAnswers, check_answers, wait_until_ready
from weir.stacks.external import ExternalStack
from weir.stacks.runtime import usable_cpus, with_told_cpus
from weir.stacks.tools import base_environment, runtime_of
from weir.study.study import PlannedCell

_STOP_GRACE_S = 5.0
_EXTERNAL_READY_S = 5.0
_PORTS_OF_CONNECTIONS = Path("/proc/sys/net/ipv4/ip_local_port_range")
_FIRST_PORT = 10_000
"""Below lie those that servers are known by."""
_PORTS_TRIED = 100
_SPACE = "check the space left on the disk"
APP = "app"
"""What the host calls the stack's process; a second one is `app-2`."""


Front = Callable[[Sequence[str]], AbstractContextManager[Sequence[str]]]
"""Puts something between the clients and a stack that is ready: from the URLs of its processes to those that clients ask."""


@dataclass(slots=True)
class RunningStack:
    """A stack that is ready and has answered right."""

    base_urls: tuple[str, ...]
    """Scheme, host and port that clients ask: of each process, or of what is in front of them all."""
    pids: tuple[int, ...]
    ready_s: float | None
    """Until the last of its processes was ready; None where weir did not start them."""
    check_s: float
    """How long the checking of its answers took."""
    artifact_bytes: int | None = None
    runtime: str = ""
    """What runs its first process, in its own words."""
    ended: tuple[Ended, ...] = ()
    """How its processes ended, once it was stopped."""

    @property
    def base_url(self) -> str:
        """The first of them."""
        return self.base_urls[0]


def free_port(wanted: int = 0) -> int:
    """A port that nothing listens on, on no address of this machine: the wanted one, or any that no connection gets either. Seconds may
    pass before a server listens on it, in which its neighbours connect to their database.

    Raises:
        TargetError: something listens on the wanted one.
    """
    if not wanted:
        return _any_port()
    try:
        return _bound(wanted)
    except OSError as error:
        raise TargetError(f"--port: {wanted}: {error.strerror}; expected a free port", hint=f"ss -ltnp 'sport = :{wanted}'") from None


def _any_port() -> int:
    first_of_connections = int(_PORTS_OF_CONNECTIONS.read_text().split()[0])
    below = range(_FIRST_PORT, first_of_connections)
    for port in SystemRandom().sample(below, min(len(below), _PORTS_TRIED)):
        with suppress(OSError):
            return _bound(port)
    return _bound(0)


def _bound(port: int) -> int:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # On all addresses: a stack may be told to listen on all, and what is free on loopback need not be.
        probe.bind(("", port))
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
    placement: Placement,
    logs: Sequence[Path],
    inputs: random.Random,
    timeout_s: float,
    fields: Mapping[str, str] = {},
    front: Front | None = None,
    port: int = 0,
    check: CheckAnswers = check_answers,
    watch_writes: bool = False,
) -> Iterator[RunningStack]:
    """Starts a stack, waits until it is ready, checks the workload's answers, and stops it in the end. An external one is only checked.

    Args:
        host: starts and stops its processes.
        built: the built stack; None of an external one.
        planned: the cell: which workload, which settings, how many processes.
        placement: where it runs; its CPUs are those of all its processes together.
        logs: a file for the output of each process.
        inputs: draws the inputs of the check.
        timeout_s: how long an answer may take.
        fields: what its manifest may ask of its services.
        front: what is put in front of it once it is ready; its answers are checked through that. None: clients ask the processes.
        port: where the first process listens; 0: any free port.
        check: how its answers are checked; an external one's are with few requests always.
        watch_writes: whether `RunningStack.ended` is to tell which files it wrote outside its folder. It takes root.

    Raises:
        TargetError: it did not start, did not become ready or answered wrong; the message names its log.
        NotWrittenError: there is no space for its log.
    """
    if isinstance(planned.stack, ExternalStack):
        yield _external(planned, planned.stack, inputs, timeout_s)
        return
    assert built is not None
    # Whatever other machines ask, and nothing else, is where they reach it.
    address = LOOPBACK if placement.reached_at is None or front is not None else placement.reached_at
    started: list[str] = []
    base_urls: list[str] = []
    pids: list[int] = []
    running: RunningStack | None = None
    begun = time.monotonic()
    try:
        for name, log in zip(process_names(planned.cell.replicas), logs, strict=True):
            wanted = port if name == APP else 0
            process, base_url = _start(
                host,
                built,
                planned,
                name,
                placement=placement,
                log=log,
                address=address,
                port=wanted,
                fields=fields,
                watch_writes=watch_writes,
            )
            started.append(name)
            pids.append(process.pid)
            base_urls.append(base_url)
        for name, base_url, log in zip(started, base_urls, logs, strict=True):
            ready = built.stack.manifest.run.ready
            with _told(built.stack.label, log):
                wait_until_ready(base_url, ready.path, timeout_s=ready.timeout_s, why_dead=_why_dead(host, name))
        ready_at = time.monotonic()
        runtime = runtime_of(pids[0])
        with nullcontext(base_urls) if front is None else front(base_urls) as asked:
            in_front = [url for url in asked if url not in base_urls]
            for base_url, log in [*zip(base_urls, logs, strict=True), *((url, logs[0]) for url in in_front)]:
                with _told(built.stack.label, log):
                    check(planned.workload, base_url, inputs, path=planned.stack.path_of(planned.workload.id), timeout_s=timeout_s)
            checked_at = time.monotonic()
            running = RunningStack(tuple(asked), tuple(pids), ready_at - begun, checked_at - ready_at, built.artifact_bytes, runtime)
            yield running
    finally:
        ended = tuple(host.stop(name, grace_s=_STOP_GRACE_S) for name in started)
        if running is not None:
            running.ended = ended


def how_not_to_end(ended: Ended) -> Iterator[str]:
    """What is wrong with how a server ended after it was told to, and with what it left."""
    if ended.killed:
        yield f"it ignored SIGTERM: after {_STOP_GRACE_S:g} s it had to be killed; expected it to end"
    if ended.left_behind:
        yield f"it ended and left processes behind: {', '.join(ended.left_behind)}; expected it to end what it had started"
    left = [path for path in ended.written if not is_shared_by_jvms(path)]
    if left:
        yield f"it wrote files outside its folder and left them there: {', '.join(left)}; expected none"


def _start(
    host: Host,
    built: BuiltStack,
    planned: PlannedCell,
    name: str,
    *,
    placement: Placement,
    log: Path,
    address: str,
    port: int,
    fields: Mapping[str, str],
    watch_writes: bool,
) -> tuple[Started, str]:
    """Starts one process of a stack and gives where it will answer."""
    manifest, settings, network = built.stack.manifest, planned.cell.settings, placement.network
    # A network of its own has every port free, and nobody but this machine can reach it.
    listening_on = "0.0.0.0" if network else address
    listening_port = network.port if network else free_port(port)
    limits = placement.limits.get(manifest.root_tier)
    _begin_log(log)
    known = {
        **fields,
        "address": listening_on,
        "port": str(listening_port),
        "artifact": str(built.folder / ((built.stack.build and built.stack.build.artifact) or "")),
        "cpus": str(len(placement.stack)),
        "python": sys.executable,
    }
    cpus = usable_cpus(len(placement.stack), limits.cpus if limits else None)
    own_environment = with_told_cpus(built.stack.environment(settings, known), built.stack.runtime, cpus)
    if built.stack.runtime == "jvm":
        for old in pause_logs(log):
            old.unlink()
        own_environment = with_pause_log(own_environment, pause_log(log.absolute()))
    with _told(built.stack.label, log):
        process = host.start(
            name,
            built.stack.command(settings, known),
            tier=manifest.root_tier,
            cwd=built.folder,
            env={**base_environment(built.stack.needs), **own_environment},
            log=log,
            cpus=placement.stack,
            limits=limits,
            network=network,
            watch_writes=watch_writes,
        )
    return process, f"http://{process.address}:{network.published_port}" if network else f"http://{address}:{listening_port}"


def _external(planned: PlannedCell, stack: ExternalStack, inputs: random.Random, timeout_s: float) -> RunningStack:
    """An external server that answers, and answers right."""

    def why_dead() -> str | None:
        gone = stack.gone()
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
        if not os.statvfs(log.parent).f_bavail:
            # A server that cannot write its log may well end by it; that is not its fault, and no other trial would go better.
            raise NotWrittenError(f"{label}: {error.message}; no space is left for its log {log}", hint=_SPACE) from None
        raise type(error)(f"{label}: {error.message}; log: {log}", hint=error.hint or f"weir stacks check {label}") from None


def _begin_log(log: Path) -> None:
    """An empty log: what a killed weir left of a trial with the same number is not of this one.

    Raises:
        NotWrittenError: it cannot be made.
    """
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_bytes(b"")
    except OSError as error:
        raise NotWrittenError(f"{log}: cannot be written: {error.strerror}", hint=_SPACE) from error
