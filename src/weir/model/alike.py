"""Whether two runs were measured alike."""

from weir.model.run import RunInfo

_MACHINE = (
    "kernel", "architecture", "cpu_model", "cpus", "cpus_available", "governor", "memory_bytes", "libc", "isolation", "compilers_first",
)  # fmt: skip
"""Of a run's environment, what must be alike: load averages, limits and left-out stacks may differ."""


def differences(base: RunInfo, head: RunInfo) -> list[str]:
    """How the machines of two runs differ, or what measured there: a change between them may be just that."""
    found = [
        f"{key}: {base.environment.get(key)} and {head.environment.get(key)}"
        for key in _MACHINE
        if base.environment.get(key) != head.environment.get(key)
    ]
    if base.weir_version != head.weir_version:
        found.append(f"weir: {base.weir_version} and {head.weir_version}")
    for role in ("load", "stack", "services", "control"):
        mine, theirs = getattr(base.placement, role), getattr(head.placement, role)
        if mine != theirs:
            found.append(f"CPUs of {role}: {list(mine)} and {list(theirs)}")
    if base.placement.limits != head.placement.limits:
        found.append("limits of CPU and memory")
    if base.placement.network != head.placement.network:
        found.append("the stacks' network")
    return found
