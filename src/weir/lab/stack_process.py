"""Starts, checks and stops a stack. The host starts the stack, and stops it with all descendants. weir waits until the
stack is ready, and checks its responses. For an external stack, weir only checks the responses."""

import os
import random
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import SystemRandom
from urllib.parse import urlsplit

from weir.host import Ended, Host, Started
from weir.model.errors import NotWrittenError, TargetError
from weir.model.load import Tls
from weir.model.run_types import Placement
from weir.observe.jvm import add_pause_log, build_pause_log_path, find_pause_logs, is_shared_by_jvms
from weir.observe.listening_ports import find_listening_ports
from weir.services.database import LOOPBACK
from weir.stacks.answer_check import CheckAnswers, check_answers
from weir.stacks.build import BuiltStack
from weir.stacks.manifest import Stack
from weir.stacks.readiness import wait_until_ready
from weir.stacks.runtime import add_cpu_environment, count_usable_cpus
from weir.stacks.toolchain import build_base_environment, detect_runtime
from weir.stacks.unmanaged import ExternalStack
from weir.study.study import PlannedCell

_STOP_GRACE_S = 5.0
_EXTERNAL_READY_S = 5.0
_PORTS_OF_CONNECTIONS = Path("/proc/sys/net/ipv4/ip_local_port_range")
_FIRST_PORT = 10_000
"""The lowest port that weir chooses. Well-known services use lower ports."""
_PORTS_TRIED = 100
_SHOWN_LINES = 3
"""Number of a log's last lines in an error."""
CHECK_SPACE = "check the space left on the disk"
APP = "app"
"""The host's name for the stack's first process. The second process is `app-2`."""

Front = Callable[[Sequence[str]], AbstractContextManager[Sequence[str]]]
"""Starts a proxy in front of a stack. Takes the URLs of the stack's processes. Yields the URLs for clients."""


@dataclass(slots=True)
class RunningStack:
    """A stack that is ready and has passed the check of its responses."""

    base_urls: tuple[str, ...]
    """URLs for clients (scheme, host, port): one for each process, or one for the proxy in front."""
    pids: tuple[int, ...]
    ready_s: float | None
    """Time until the last process was ready; None if weir did not start the processes."""
    check_s: float
    runtime: str = ""
    """Version line of the first process's runtime, such as `Python 3.12.3`; empty if unknown."""
    ended: tuple[Ended, ...] = ()
    """The ends of the processes; empty while the stack runs."""

    @property
    def base_url(self) -> str:
        return self.base_urls[0]


def find_free_port(wanted: int = 0) -> int:
    """Returns a port that is free on all addresses of this machine: the wanted port, or for 0 any port. Prefers ports
    below the ephemeral range, because other processes take ephemeral ports at any time. Raises TargetError if the
    wanted port is in use."""
    if wanted:
        try:
            return _bind_port(wanted)
        except OSError as error:
            in_use = f"--port: {wanted}: {error.strerror}; expected a free port"
            raise TargetError(in_use, hint=f"ss -ltnp 'sport = :{wanted}'") from None
    first_of_connections = int(_PORTS_OF_CONNECTIONS.read_text().split()[0])
    below = range(_FIRST_PORT, first_of_connections)
    for port in SystemRandom().sample(below, min(len(below), _PORTS_TRIED)):
        with suppress(OSError):
            return _bind_port(port)
    return _bind_port(0)


def _bind_port(port: int) -> int:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Checks all addresses: a port that is free on loopback may be in use on another address.
        probe.bind(("", port))
        return int(probe.getsockname()[1])


def list_process_names(replicas: int) -> list[str]:
    """Returns the host's names for the processes of a stack: `app`, `app-2` and so on."""
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
    fields: Mapping[str, str] = {},
    front: Front | None = None,
    port: int = 0,
    check: CheckAnswers = check_answers,
    watch_writes: bool = False,
) -> Iterator[RunningStack]:
    """Starts a stack, waits until it is ready, checks its responses, and finally stops it. Neither starts nor stops an
    external stack. Raises TargetError (with the log's path) if the stack fails or a response is wrong, NotWrittenError
    if the disk is full.

    Args:
        built: the built stack; None for an external stack.
        placement: the CPUs for all processes of the stack together, limits and network.
        logs: a file for the output of each process.
        inputs: generates the random inputs of the check.
        fields: values of the services' fields in the stack's manifest.
        front: starts a proxy in front of the ready stack; weir also checks the proxy's responses. None: no proxy.
        port: port of the first process; 0: any free port.
        watch_writes: whether `RunningStack.ended` lists files that the stack wrote outside its folder. Needs root.
    """
    if isinstance(planned.stack, ExternalStack):
        yield _check_external(planned, planned.stack, inputs, check)
        return
    assert built is not None
    # If clients run on other machines and connect without a proxy, the stack listens on an address for them.
    address = LOOPBACK if front is not None else placement.advertised_address or LOOPBACK
    known = {**fields, "host": address}
    started: dict[str, tuple[Started, str]] = {}
    running: RunningStack | None = None
    begun = time.monotonic()
    try:
        for name, log in zip(list_process_names(planned.cell.replicas), logs, strict=True):
            own_port = port if name == APP else 0
            started[name] = _start(host, built, planned, name, placement, log, known, own_port, watch_writes)
        processes, base_urls = zip(*started.values(), strict=True)
        _wait_until_all_ready(host, built.stack, started, logs, planned.tls)
        ready_at = time.monotonic()
        runtime = detect_runtime(processes[0].pid)
        with nullcontext(base_urls) if front is None else front(base_urls) as asked:
            in_front = [(url, logs[0]) for url in asked if url not in base_urls]
            path, timeout_s = built.stack.find_path(planned.workload.id), planned.load.timeout_s
            for base_url, log in [*zip(base_urls, logs, strict=True), *in_front]:
                with _add_log_to_errors(built.stack, log):
                    check(planned.workload, base_url, inputs, path=path, timeout_s=timeout_s, tls=planned.tls)
            pids, check_s = tuple(process.pid for process in processes), time.monotonic() - ready_at
            running = RunningStack(tuple(asked), pids, ready_at - begun, check_s, runtime)
            yield running
    finally:
        ended = tuple(host.stop(name, grace_s=_STOP_GRACE_S) for name in started)
        if running is not None:
            running.ended = ended


def _wait_until_all_ready(
    host: Host, stack: Stack, started: Mapping[str, tuple[Started, str]], logs: Sequence[Path], tls: Tls | None
) -> None:
    ready = stack.manifest.run.ready
    for (name, (process, base_url)), log in zip(started.items(), logs, strict=True):
        with _add_log_to_errors(stack, log):
            why_dead = partial(_explain_early_end, host, name)
            # A user's own command is ready at its first response. weir checks the content later.
            below = 600 if stack.in_place else 500
            try:
                wait_until_ready(
                    base_url,
                    ready.path,
                    timeout_s=ready.timeout_s,
                    status_below=below,
                    why_dead=why_dead,
                    tls=tls,
                )
            except TargetError as error:
                has_ended = host.ended(name) is not None
                if stack.in_place and not has_ended and (hint := _explain_other_port(process.pid, base_url)):
                    raise TargetError(f"{error.message}; {hint[0]}", hint=hint[1]) from None
                raise


def _explain_other_port(pid: int, base_url: str) -> tuple[str, str] | None:
    """Returns a text about the ports of a process, and a hint. None if the process listens on `base_url`'s port."""
    port, found = urlsplit(base_url).port, find_listening_ports(pid)
    if port in found:
        return None
    hint = "write {port} where the command takes its port; the environment variable PORT has the same value"
    if not found:
        return f"the process listens on no port, expected {port}", hint
    return f"the process listens on {', '.join(map(str, found))}, expected {port}", hint


def find_exit_problems(ended: Ended) -> Iterator[str]:
    """Yields a sentence if a server ignored SIGTERM, or left processes or files behind."""
    if ended.killed:
        yield f"it ignored SIGTERM: weir killed it after {_STOP_GRACE_S:g} s; expected an end on SIGTERM"
    if ended.left_behind:
        names = ", ".join(ended.left_behind)
        yield f"it ended and left processes behind: {names}; expected it to end them, too"
    left = [path for path in ended.written if not is_shared_by_jvms(path)]
    if left:
        yield f"it wrote files outside its folder and left them there: {', '.join(left)}; expected none"


def _start(
    host: Host,
    built: BuiltStack,
    planned: PlannedCell,
    name: str,
    placement: Placement,
    log: Path,
    fields: Mapping[str, str],
    port: int,
    watch_writes: bool,
) -> tuple[Started, str]:
    """Starts one process of a stack. Returns the process and its base URL."""
    stack, settings, network = built.stack, planned.cell.settings, placement.network
    known = {
        **fields,
        "port": str(network.port if network else find_free_port(port)),
        "artifact": str(built.folder / ((stack.build and stack.build.artifact) or "")),
        "cpus": str(len(placement.stack)),
        "python": sys.executable,
    }
    if network:
        # In a separate network, the stack can use every port, and only this machine can reach the stack.
        known["host"] = "0.0.0.0"
    tier = stack.manifest.root_tier
    limits = placement.limits.get(tier)
    _create_log(log)
    cpus = count_usable_cpus(len(placement.stack), limits.cpus if limits else None)
    environment = add_cpu_environment(stack.environment(settings, known), stack.runtime, cpus)
    if stack.runtime == "jvm":
        for old in find_pause_logs(log):
            old.unlink()
        environment = add_pause_log(environment, build_pause_log_path(log.absolute()))
    with _add_log_to_errors(stack, log):
        process = host.start(
            name,
            stack.command(settings, known),
            tier=tier,
            cwd=built.folder,
            env={**(os.environ if stack.in_place else build_base_environment(stack.needs)), **environment},
            log=log,
            cpus=placement.stack,
            limits=limits,
            network=network,
            watch_writes=watch_writes,
        )
    if network:
        return process, f"{stack.scheme}://{process.address}:{network.published_port}"
    return process, f"{stack.scheme}://{known['host']}:{known['port']}"


def _check_external(
    planned: PlannedCell, stack: ExternalStack, inputs: random.Random, check: CheckAnswers
) -> RunningStack:
    def why_dead() -> str | None:
        gone = stack.find_ended_pids()
        return f"the process {gone[0]} has ended" if gone else None

    begun = time.monotonic()
    try:
        # The check of the workload's own path judges the status.
        wait_until_ready(
            stack.url, "/", timeout_s=_EXTERNAL_READY_S, status_below=600, why_dead=why_dead, tls=planned.tls
        )
        check(planned.workload, stack.url, inputs, path=None, timeout_s=planned.load.timeout_s, tls=planned.tls)
    except TargetError as error:
        hint = error.hint or f"weir load {stack.url}/"
        raise TargetError(f"{stack.title} at {stack.url}: {error.message}", hint=hint) from None
    return RunningStack((stack.url,), stack.pids, None, time.monotonic() - begun)


def _explain_early_end(host: Host, name: str) -> str | None:
    ended = host.ended(name)
    return None if ended is None else f"the process ended {ended.how} before it was ready"


@contextmanager
def _add_log_to_errors(stack: Stack, log: Path) -> Iterator[None]:
    """Adds the stack's name and the log's path to a TargetError. For a user's command, adds the log's last lines."""
    try:
        yield
    except TargetError as error:
        text = f"{stack.title if stack.in_place else stack.label}: {error.message}"
        if not os.statvfs(log.parent).f_bavail:
            # A full disk can end a server that writes its log. The server is not the cause: a retry would fail, too.
            raise NotWrittenError(f"{text}; no space is left for the log {log}", hint=CHECK_SPACE) from None
        printed = log.read_text(errors="replace").strip()
        if not stack.in_place:
            raise type(error)(f"{text}; log: {log}", hint=error.hint or f"weir stacks check {stack.label}") from None
        lines = [f"{text}; log: {log}", *printed.splitlines()[-_SHOWN_LINES:]] if printed else [text]
        raise type(error)("\n  ".join(lines), hint=error.hint or f"tail {log}") from None


def _create_log(log: Path) -> None:
    """Creates an empty log, or empties an earlier log. Raises NotWrittenError if weir cannot write to the log."""
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_bytes(b"")
    except OSError as error:
        raise NotWrittenError(f"{log}: cannot be written: {error.strerror}", hint=CHECK_SPACE) from error
