"""Which CPUs each role gets. Roles are disjoint when there are enough CPUs; what they share is said."""

import os
from collections.abc import Sequence
from typing import Literal

from weir.model.errors import UsageError
from weir.model.run import Placement

Wish = int | list[int] | Literal["auto"]


def place(load: Wish, stack: Wish, control: Wish, *, available: Sequence[int] | None = None) -> Placement:
    """CPUs for the generator, the stack and weir's own control.

    Explicit lists are taken as they are. Counts and `auto` are filled from what is left, the stack first, then the load, then control,
    which shares the load's CPUs when nothing is left for it: its readers run at nice 19 and need little.

    Args:
        load: CPUs of the generator: a list, how many, or `auto`.
        stack: of the stack.
        control: of lab, host and observer.
        available: the CPUs that weir may use; the process's affinity when not given.

    Raises:
        UsageError: a CPU is not available, or there are too few.
    """
    usable = sorted(os.sched_getaffinity(0) if available is None else available)
    for role, wish in (("load", load), ("stack", stack), ("control", control)):
        if isinstance(wish, list) and (not wish or not set(wish) <= set(usable)):
            raise UsageError(f"cpus.{role}: found {wish}, expected some of the CPUs weir may use: {usable}")
    counts = sum(wish for wish in (load, stack, control) if isinstance(wish, int))
    if counts > len(usable):
        asked = ", ".join(
            f"{role} {wish}" for role, wish in (("load", load), ("stack", stack), ("control", control)) if isinstance(wish, int)
        )
        raise UsageError(
            f"cpus: found {asked}, {counts} CPUs altogether; this machine offers {len(usable)}", hint="weir run … --scale quick"
        )
    taken = {cpu for wish in (load, stack, control) if isinstance(wish, list) for cpu in wish}
    free = [cpu for cpu in usable if cpu not in taken]

    def take(wish: Wish, auto: int) -> tuple[int, ...]:
        """From the end, so that CPU 0, which takes most interrupts, goes to the generator last."""
        if isinstance(wish, list):
            return tuple(wish)
        count = min(wish if isinstance(wish, int) else auto, len(free))
        chosen = tuple(free[len(free) - count :])
        del free[len(free) - count :]
        return chosen

    for_control = 1 if len(usable) >= 3 else 0
    stack_cpus = take(stack, max(1, (len(usable) - for_control + 1) // 2)) or tuple(usable)
    load_cpus = take(load, max(1, len(free) - for_control)) or tuple(usable[:1])
    control_cpus = take(control, len(free)) or load_cpus
    return Placement(
        load=load_cpus, stack=stack_cpus, services=(), control=control_cpus, shared=_shared(load_cpus, stack_cpus, control_cpus)
    )


def _shared(load: tuple[int, ...], stack: tuple[int, ...], control: tuple[int, ...]) -> tuple[str, ...]:
    said = []
    if set(load) & set(stack):
        said.append("The generator and the stack share a CPU: neither's figures stand for themselves.")
    if set(load) & set(control):
        said.append("weir's control shares the generator's CPU, at nice 19.")
    if set(stack) & set(control):
        said.append("weir's control shares a CPU with the stack, at nice 19.")
    if not set(load) & set(stack):
        said.append("On loopback part of the receiver's TCP work is charged to the sender's CPU.")
    return tuple(said)
