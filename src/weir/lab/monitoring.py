"""Context managers for a trial's load: sample the server, time phases, and end the load if the server ends."""

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

from weir.generators.handle import LoadHandle
from weir.host import Ended, Host
from weir.model.errors import GeneratorError, TargetError, UsageError
from weir.model.load_records import LoadEnd
from weir.model.observer_records import Sample
from weir.observe.watch import Watch
from weir.stacks.manifest import Stack
from weir.stacks.unmanaged import ExternalStack

_EXIT_S = 3.0
"""Maximum time from a server's first missing response to its end, in seconds. A server that ends refuses connections
first: the kernel closes its sockets before it frees its memory, and a runtime may close them itself."""
_EXIT_PAUSE_S = 0.05

_Found = TypeVar("_Found")


def wait_for_end(load: LoadHandle, hosts: Collection[Host], names: Collection[str]) -> LoadEnd:
    """Returns the result of a load after its end. Raises TargetError if a server ended and there is no result."""
    try:
        return load.result()
    except GeneratorError:
        gone = wait_for_exit(lambda: find_exit(hosts, names))
        if gone is None:
            raise
        raise TargetError(f"{gone.name} ended {gone.how} during the load") from None


@contextmanager
def timed(phases_s: dict[str, float], phase: str) -> Iterator[None]:
    """Context manager: stores the duration of the `with` block, in seconds, as `phases_s[phase]`."""
    started = time.monotonic()
    try:
        yield
    finally:
        phases_s[phase] = time.monotonic() - started


def sample_stack(
    host: Host, stack: Stack | ExternalStack, take_sample: Callable[[Sample], None]
) -> AbstractContextManager[object]:
    """Returns a context manager that samples the processes of a stack. See `sample_host`."""
    if not isinstance(stack, ExternalStack) or not stack.pids:
        return sample_host(host, take_sample)
    try:
        return Watch(stack.pids, take_sample)
    except UsageError as error:
        # This is no mistake of the user: the processes existed at the start of the study, so the server has failed.
        raise TargetError(error.message, hint=error.hint) from None


@contextmanager
def sample_host(host: Host, take_sample: Callable[[Sample], None]) -> Iterator[None]:
    """Context manager: samples the processes of a host, first at the start and last at the end of the `with` block."""
    host.on_sample = take_sample
    host.observe()
    try:
        take_sample(host.sample())
        yield
        take_sample(host.sample())
    finally:
        host.unobserve()
        host.on_sample = lambda _: None


@contextmanager
def stop_load_on_exit(hosts: Collection[Host], names: Collection[str], load: LoadHandle) -> Iterator[None]:
    """Context manager: ends the load if a process in `names`, or a host, ends during the `with` block."""
    for host in hosts:
        host.on_exit, host.on_gone = lambda _: load.stop(), load.stop
    try:
        if find_exit(hosts, names) is not None or any(host.is_gone for host in hosts):
            load.stop()
        yield
    finally:
        for host in hosts:
            host.on_exit, host.on_gone = lambda _: None, lambda: None


def find_exit(hosts: Collection[Host], names: Collection[str]) -> Ended | None:
    """Returns how a process in `names` ended; None while all of these processes run."""
    return next((ended for name in names for host in hosts if (ended := host.ended(name)) is not None), None)


def wait_for_exit(find_end: Callable[[], _Found | None]) -> _Found | None:
    """Waits for the end of a server that no longer responds. Returns the first result of `find_end`; None if there is
    no result within a few seconds, so the server still runs."""
    given_up = time.monotonic() + _EXIT_S
    while (found := find_end()) is None and time.monotonic() < given_up:
        # No event reports the end of an external server, so weir looks again.
        time.sleep(_EXIT_PAUSE_S)
    return found
