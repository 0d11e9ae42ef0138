"""Whether a placement can be carried out, held against what this machine lets the host do and against the stacks.

Pure, and asked before anything starts.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace
from ipaddress import ip_address

from weir.host import Capabilities
from weir.model.errors import UsageError
from weir.model.run import Network, Placement
from weir.services.manifest import FrontService, read_service
from weir.stacks.external import ExternalStack
from weir.stacks.manifest import Stack

_HINT = "weir doctor shows what this machine allows"


def possible(placement: Placement, able: Capabilities, *, fallback: bool) -> Placement:
    """The placement, or with `fallback` what is left of its network here, with what is missing in `left_out`.

    Raises:
        UsageError: something of it cannot be done here.
    """
    if placement.limits and not able.limits.possible:
        raise UsageError(
            f"cpus.quota, cpus.memory: found limits, which this machine does not let weir set: {able.limits.detail}", hint=_HINT
        )
    network = placement.network
    if network is None:
        return placement
    if not able.network.possible:
        missing = f"network of the stack's own ({able.network.detail})"
        return _without(placement, "isolation = 'netns'", missing, fallback, network=None)
    if network.published_port != network.port and not able.port_translation.possible:
        missing = f"translation of port {network.published_port} to {network.port} ({able.port_translation.detail})"
        placement = _without(placement, "publish", missing, fallback, network=replace(network, published_port=network.port))
        network = placement.network or network
    if (network.delay_ms or network.loss) and not able.netem.possible:
        missing = f"delay and loss ({able.netem.detail})"
        placement = _without(placement, "delay_ms, loss", missing, fallback, network=replace(network, delay_ms=0.0, loss=0.0))
    return placement


def _without(placement: Placement, key: str, missing: str, fallback: bool, network: Network | None) -> Placement:
    if not fallback:
        raise UsageError(
            f"network: {key}: this machine has no {missing}", hint=f"{_HINT}; fallback = true in [network] goes on without, and says so"
        )
    said = f"This machine has no {missing}: the study asks for it and ran without."
    return replace(placement, left_out=(*placement.left_out, said), network=network)


def check_stacks(placement: Placement, stacks: Iterable[Stack | ExternalStack], services: Collection[str]) -> None:
    """Holds limits, network and from where loads come against the stacks of a study.

    Args:
        placement: where everything runs.
        stacks: the study's.
        services: what the study's workloads have run beside them.

    Raises:
        UsageError: a limit names a tier that nothing starts, or a stack cannot listen in a network of its own.
    """
    of_study = {stack.label: stack for stack in stacks}.values()
    started = [stack for stack in of_study if isinstance(stack, Stack)]
    tiers = sorted({tier for stack in started for tier in (stack.manifest.root_tier, *_used(stack, services))})
    for tier in placement.limits:
        if tier not in tiers:
            raise UsageError(
                f"cpus.quota, cpus.memory: found tier {tier!r}, expected one that weir starts a process for: {', '.join(tiers) or 'none'}",
                hint="weir stacks list",
            )
    if placement.network is not None:
        if len(started) < len(of_study):
            raise UsageError("network: found external stacks in the study, expected none: weir does not start them")
        for stack in started:
            if used := _used(stack, services):
                raise UsageError(
                    f"network: found {stack.label}, which needs {', '.join(used)}; expected stacks without services: "
                    "these are on loopback, where a network of its own does not reach"
                )
            if not stack.takes_address:
                raise UsageError(
                    f"{stack.folder / 'stack.toml'}: run.command: found no '{{address}}': it listens on loopback alone, which a network of "
                    "its own closes off from its clients; expected '{address}' where it is told where to listen"
                )
    if placement.reached_at is None or ip_address(placement.reached_at).is_loopback:
        return
    for stack in started:
        has_front = any(isinstance(read_service(name), FrontService) for name in _used(stack, services))
        if not (has_front or stack.takes_address):
            raise UsageError(
                f"--cluster: found {stack.label}, which listens on loopback alone ({stack.folder / 'stack.toml'}: no '{{address}}'), "
                "expected '{address}' where it is told where to listen: agents on other machines cannot reach it"
            )


def _used(stack: Stack, services: Collection[str]) -> list[str]:
    return [name for name in stack.services if name in services]
