"""Which CPUs each role gets, how much of them, and in which network.

Roles are disjoint when there are enough CPUs; what they share is said. Decides only: the host carries it out.
"""

import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from weir.model.errors import UsageError
from weir.model.run import Limits, Network, Placement
from weir.study.cpus import Cpus, Wish, size_bytes
from weir.study.network import Network as NetworkTable

_ROLES = ("stack", "services", "load", "control")
"""In the order in which CPUs are handed out, from the last one down: CPU 0 takes most interrupts, and the stack gets it last."""
_WORDS = {"stack": "the stack", "services": "the services", "load": "the generator", "control": "weir's control"}


def place(
    cpus: Cpus,
    network: NetworkTable | None = None,
    *,
    with_services: bool = False,
    stack_cpus: int | None = None,
    available: Sequence[int] | None = None,
) -> Placement:
    """Where everything runs.

    Lists are taken as they are and counts filled from what they leave; what is `auto` shares the rest: the stack has most of it, control
    one CPU. Where nothing is left control goes beside the generator (its readers run at nice 19 and need little) and the services beside
    the stack (beside the generator they would disturb what measures).

    Args:
        cpus: what the study asks for.
        network: the stack's network.
        with_services: whether any stack of the study needs services.
        stack_cpus: the stack's number of CPUs in place of `cpus.stack`; of a study that varies it the largest.
        available: the CPUs that weir may use; the process's affinity when not given.

    Raises:
        UsageError: a CPU is not available, or there are too few.
    """
    usable = sorted(os.sched_getaffinity(0) if available is None else available)
    wishes: dict[str, Wish | str] = {"stack": cpus.stack, "services": cpus.services, "load": cpus.load, "control": cpus.control}
    if stack_cpus is not None:
        wishes["stack"] = stack_cpus
    if not with_services and wishes.pop("services") != "auto":
        raise UsageError(f"cpus.services: found {cpus.services!r}, but no stack of this study needs a service; leave it out")
    placed = {role: _listed(role, wish, usable) for role, wish in wishes.items() if isinstance(wish, list)}
    free = [cpu for cpu in usable if not any(cpu in cpus_of for cpus_of in placed.values())]
    counts = {role: wish for role, wish in wishes.items() if isinstance(wish, int)}
    if sum(counts.values()) > len(free):
        asked = ", ".join(f"{role} {count}" for role, count in counts.items())
        listed = f" beside those in lists ({len(usable) - len(free)})" if len(free) < len(usable) else ""
        raise UsageError(
            f"cpus: found {asked}, {sum(counts.values())} CPUs altogether{listed}; this machine offers {len(usable)}",
            hint="weir run … --scale quick, or smaller numbers in [cpus]",
        )
    counts |= _automatic([role for role in _ROLES if wishes.get(role) == "auto"], len(free) - sum(counts.values()))
    for role in _ROLES:
        if count := counts.get(role, 0):
            placed[role] = tuple(free[-count:])
            del free[-count:]
    stack = placed.get("stack", tuple(usable))
    load = placed.get("load", tuple(usable[:1]))
    services = placed.get("services", load if wishes.get("services") == "load" else stack) if with_services else ()
    placement = Placement(
        load=load,
        stack=stack,
        services=services,
        control=placed.get("control", load),
        limits=_limits(cpus),
        network=_network(network) if network is not None else None,
    )
    return _with_what_is_shared(placement)


def anywhere(placement: Placement | None = None) -> Placement:
    """Everything on all CPUs, which is fastest where nothing is measured.

    Args:
        placement: its CPUs, with its limits and its network; None: all CPUs that weir may use.
    """
    if placement is None:
        placement = place(Cpus())
    usable = tuple(sorted({cpu for role in _ROLES for cpu in getattr(placement, role)}))
    return replace(placement, load=usable[:1], stack=usable, services=usable, control=usable, shared=())


def placement_lines(placement: Placement) -> list[str]:
    """Where everything runs, in lines for people: CPUs, limits, network, what is shared and what is left out."""
    roles = (("generator", placement.load), ("stack", placement.stack), ("services", placement.services), ("control", placement.control))
    cpus = "; ".join(f"{role} {', '.join(map(str, cpus))}" for role, cpus in roles if cpus)
    elsewhere = [] if placement.services_on is None else [f"services: on {placement.services_on}"]
    limits = [f"limits of {tier}: {limits.words}" for tier, limits in placement.limits.items()]
    network = [] if placement.network is None else [f"network: {placement.network.words}"]
    return [f"CPUs: {cpus}", *elsewhere, *limits, *network, *placement.shared, *placement.left_out]


def _listed(role: str, wish: list[int], usable: Sequence[int]) -> tuple[int, ...]:
    if not set(wish) <= set(usable):
        raise UsageError(f"cpus.{role}: found {wish}, expected some of the CPUs weir may use: {list(usable)}")
    return tuple(wish)


def _automatic(roles: Sequence[str], free: int) -> dict[str, int]:
    """How many of the `free` CPUs each role that left it open gets, 0 for those that have to share. Those that come first get more."""
    for_control = 1 if "control" in roles and free >= len(roles) else 0
    others = [role for role in roles if role != "control"]
    if len(others) > free:
        # Beside the stack rather than on the generator's last CPU.
        others = [role for role in others if role != "services"][:free]
    counts = {"control": for_control} if "control" in roles else {}
    if others:
        each, more = divmod(free - for_control, len(others))
        counts |= {role: each + (index < more) for index, role in enumerate(others)}
    elif "control" in roles:
        counts["control"] = free
    return counts


def _limits(cpus: Cpus) -> dict[str, Limits]:
    return {
        tier: Limits(
            cpus=cpus.quota.get(tier),
            period_ms=cpus.quota_period_ms,
            memory_bytes=size_bytes(cpus.memory[tier]) if tier in cpus.memory else None,
        )
        for tier in sorted({*cpus.quota, *cpus.memory})
    }


def _network(table: NetworkTable) -> Network | None:
    if table.isolation == "none":
        return None
    return Network(port=table.port, published_port=table.publish or table.port, delay_ms=table.delay_ms, loss=table.loss)


def _with_what_is_shared(placement: Placement) -> Placement:
    """What shares a CPU, in sentences, and what else keeps figures from standing for themselves."""
    cpus = {role: set(getattr(placement, role)) for role in _ROLES}
    said = []
    for one, other in combinations(("load", "stack", "services"), 2):
        if cpus[one] & cpus[other]:
            both = f"{_WORDS[one]} and {_WORDS[other]}"
            said.append(f"{both[0].upper()}{both[1:]} share a CPU: neither's figures stand for themselves.")
    for role in ("load", "stack", "services"):
        if cpus["control"] & cpus[role]:
            where = "the generator's CPU" if role == "load" else f"a CPU with {_WORDS[role]}"
            said.append(f"weir's control shares {where}, at nice 19.")
    if not cpus["load"] & cpus["stack"]:
        path = "On loopback" if placement.network is None else "On a veth pair"
        said.append(f"{path} part of the receiver's TCP work is charged to the sender's CPU.")
    return replace(placement, shared=tuple(said))
