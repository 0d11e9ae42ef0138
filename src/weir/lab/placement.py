"""Chooses CPUs, limits and network for the generator, the stack, the services and weir's control. Each of these roles
has its own CPUs if there are enough CPUs. Otherwise, `Placement.shared` describes shared CPUs."""

import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from weir.model.errors import UsageError
from weir.model.run_types import Limits, Network, Placement
from weir.study.file import CpuRequest, Cpus, parse_size
from weir.study.file import Network as NetworkTable

_ROLES = ("stack", "services", "load", "control")
"""Roles in the order of their CPUs. The stack gets the last CPUs, because CPU 0 handles most interrupts."""
_WORDS = {"stack": "the stack", "services": "the services", "load": "the generator", "control": "weir's control"}


def place(
    cpus: Cpus,
    network: NetworkTable | None = None,
    *,
    with_services: bool = False,
    stack_cpus: int | None = None,
    available: Sequence[int] | None = None,
) -> Placement:
    """Assigns CPUs to roles. Raises UsageError if a CPU is not available, or if there are too few CPUs.

    Roles with listed CPUs come first, then roles with a count. `auto` roles divide the remaining CPUs: one for control,
    the others equally, with the stack first. If no CPU remains, control shares the generator's CPUs, because control
    runs at nice 19 and needs little time. Services would disturb the generator, so they share the stack's CPUs.

    `stack_cpus`: number of the stack's CPUs, instead of `cpus.stack`. If the study varies the number: the largest one.
    `available`: the CPUs that weir may use; default: the process's affinity.
    """
    usable = sorted(os.sched_getaffinity(0) if available is None else available)
    wishes: dict[str, CpuRequest | str] = {role: getattr(cpus, role) for role in _ROLES}
    if stack_cpus is not None:
        wishes["stack"] = stack_cpus
    if not with_services and wishes.pop("services") != "auto":
        found = f"cpus.services: found {cpus.services!r}"
        raise UsageError(f"{found}, expected none: no stack of this study needs a service")
    placed = {role: _take_listed(role, wish, usable) for role, wish in wishes.items() if isinstance(wish, list)}
    free = [cpu for cpu in usable if not any(cpu in cpus_of for cpus_of in placed.values())]
    counts = {role: wish for role, wish in wishes.items() if isinstance(wish, int)}
    if sum(counts.values()) > len(free):
        asked = ", ".join(f"{role} {count}" for role, count in counts.items())
        listed = f" in addition to listed CPUs ({len(usable) - len(free)})" if len(free) < len(usable) else ""
        found = f"cpus: found {asked}, {sum(counts.values())} CPUs in total{listed}"
        hint = "weir run STUDY --scale quick, or choose smaller numbers in [cpus]"
        raise UsageError(f"{found}, expected at most the {len(usable)} CPUs that weir may use", hint=hint)
    counts |= _share_rest([role for role in _ROLES if wishes.get(role) == "auto"], len(free) - sum(counts.values()))
    for role in _ROLES:
        if count := counts.get(role, 0):
            placed[role] = tuple(free[-count:])
            del free[-count:]
    stack, load = placed.get("stack", tuple(usable)), placed.get("load", tuple(usable[:1]))
    services = placed.get("services", load if wishes.get("services") == "load" else stack) if with_services else ()
    placement = Placement(load=load, stack=stack, services=services, control=placed.get("control", load))
    return _note_shared_cpus(replace(placement, limits=_build_limits(cpus), network=_build_network(network)))


def use_all_cpus(placement: Placement | None = None) -> Placement:
    """Returns a placement for work without a measurement. Every role gets all CPUs of `placement` (None: all CPUs)."""
    placement = placement or place(Cpus())
    usable = tuple(sorted({cpu for role in _ROLES for cpu in getattr(placement, role)}))
    return replace(placement, load=usable[:1], stack=usable, services=usable, control=usable, shared=())


def describe_placement(placement: Placement) -> list[str]:
    """Returns lines for the terminal: CPUs, limits, network, shared CPUs and missing features."""
    roles = {"generator": "load", "stack": "stack", "services": "services", "control": "control"}
    placed = {title: getattr(placement, role) for title, role in roles.items()}
    cpus = "; ".join(f"{title} {', '.join(map(str, of_role))}" for title, of_role in placed.items() if of_role)
    elsewhere = [] if placement.services_on is None else [f"services: on {placement.services_on}"]
    limits = [f"limits of {tier}: {limits.words}" for tier, limits in placement.limits.items()]
    network = [] if placement.network is None else [f"network: {placement.network.words}"]
    return [f"CPUs: {cpus}", *elsewhere, *limits, *network, *placement.shared, *placement.omitted_features]


def _take_listed(role: str, wish: list[int], usable: Sequence[int]) -> tuple[int, ...]:
    if not set(wish) <= set(usable):
        raise UsageError(f"cpus.{role}: found {wish}, expected CPUs that weir may use: {list(usable)}")
    return tuple(wish)


def _share_rest(roles: Sequence[str], free: int) -> dict[str, int]:
    """Divides `free` CPUs among the `auto` roles; the first roles get more. A role with 0 must share CPUs."""
    for_control = 1 if "control" in roles and free >= len(roles) else 0
    others = [role for role in roles if role != "control"]
    if len(others) > free:
        # The services share the stack's CPUs. Otherwise they would take the generator's last CPU.
        others = [role for role in others if role != "services"][:free]
    counts = {"control": for_control} if "control" in roles else {}
    if others:
        each, more = divmod(free - for_control, len(others))
        counts |= {role: each + (index < more) for index, role in enumerate(others)}
    elif "control" in roles:
        counts["control"] = free
    return counts


def _build_limits(cpus: Cpus) -> dict[str, Limits]:
    memory_bytes = {tier: parse_size(size) for tier, size in cpus.memory.items()}
    return {
        tier: Limits(cpus.quota.get(tier), cpus.quota_period_ms, memory_bytes.get(tier))
        for tier in sorted({*cpus.quota, *cpus.memory})
    }


def _build_network(table: NetworkTable | None) -> Network | None:
    if table is None or table.isolation == "none":
        return None
    published_port = table.publish or table.port
    return Network(port=table.port, published_port=published_port, delay_ms=table.delay_ms, loss=table.loss)


def _note_shared_cpus(placement: Placement) -> Placement:
    """Adds a note to the placement for each pair of roles that shares CPUs. If generator and stack share no CPU, adds a
    note about TCP: the kernel still does some work of each side on the CPUs of the other side."""
    cpus = {role: set(getattr(placement, role)) for role in _ROLES}
    notes = []
    for one, other in combinations(("load", "stack", "services"), 2):
        if cpus[one] & cpus[other]:
            both = f"{_WORDS[one]} and {_WORDS[other]}"
            notes.append(f"{both[0].upper()}{both[1:]} share a CPU: the figures of both are mixed.")
    for role in ("load", "stack", "services"):
        if cpus["control"] & cpus[role]:
            where = "the generator's CPU" if role == "load" else f"a CPU with {_WORDS[role]}"
            notes.append(f"weir's control shares {where}, at nice 19.")
    if not cpus["load"] & cpus["stack"]:
        path = "On loopback" if placement.network is None else "On a veth pair"
        notes.append(f"{path}, the kernel does part of the receiver's TCP work on the sender's CPU.")
    return replace(placement, shared=tuple(notes))
