"""What goes on around the load of a trial: its server is watched, phases are timed, and it ends when nobody answers any more."""

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TypeVar

from weir.generators.running import RunningLoad
from weir.host import Ended, Host
from weir.model.errors import GeneratorError, TargetError, UsageError
from weir.model.records import LoadEnd, Sample
from weir.observe.watch import Watch
from weir.stacks.external import ExternalStack
from weir.stacks.manifest import Stack

T = TypeVar("T")


def end_of(load: RunningLoad, hosts: Collection[Host], names: Collection[str]) -> LoadEnd:
    """What a load came to. A generator that was stopped because the server is gone may say nothing: that is the server's failure."""
    try:
        return load.result()
    except GeneratorError:
        gone = ended_by_itself(hosts, names)
        if gone is None:
            raise
        raise TargetError(f"{gone.name} ended {gone.how} during the load") from None


@contextmanager
def entered(phases_s: dict[str, float], phase: str, context: AbstractContextManager[T]) -> Iterator[T]:
    """A context, and how long entering it takes."""
    with ExitStack() as opened:
        with timed(phases_s, phase):
            value = opened.enter_context(context)
        yield value


@contextmanager
def timed(phases_s: dict[str, float], phase: str) -> Iterator[None]:
    """Keeps how long a phase takes."""
    started = time.monotonic()
    try:
        yield
    finally:
        phases_s[phase] = time.monotonic() - started


@contextmanager
def observed(host: Host, stack: Stack | ExternalStack, take_sample: Callable[[Sample], None]) -> Iterator[None]:
    """Samples a stack's processes, once before what goes on inside and once after it as well: its window lies between readings."""
    if isinstance(stack, ExternalStack) and stack.pids:
        try:
            watch = Watch(stack.pids, take_sample)
        except UsageError as error:
            # They ran when the study began.
            raise TargetError(error.message, hint=error.hint) from None
        with watch:
            yield
        return
    with sampled(host, take_sample):
        yield


@contextmanager
def sampled(host: Host, take_sample: Callable[[Sample], None]) -> Iterator[None]:
    """Samples what a host has started, before and after what goes on inside as well."""
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
def stopped_when_dead(hosts: Collection[Host], names: Collection[str], load: RunningLoad) -> Iterator[None]:
    """Ends the load as soon as a process of the stack or of a service has ended, or a machine of theirs: what would follow says nothing
    more.
    """
    for host in hosts:
        host.on_exit, host.on_gone = lambda _: load.stop(), load.stop
    try:
        if ended_by_itself(hosts, names) is not None or any(host.is_gone for host in hosts):
            load.stop()
        yield
    finally:
        for host in hosts:
            host.on_exit, host.on_gone = lambda _: None, lambda: None


def ended_by_itself(hosts: Collection[Host], names: Collection[str]) -> Ended | None:
    """How the first of these processes ended by itself; None while all run."""
    return next((ended for name in names for host in hosts if (ended := host.ended(name)) is not None), None)
