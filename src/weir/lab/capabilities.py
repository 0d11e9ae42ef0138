"""Checks before a run whether this machine and the stacks support a placement."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from ipaddress import ip_address

from weir.host import Capabilities
from weir.model.errors import UsageError
from weir.model.run_types import Network, Placement
from weir.services.manifest import FrontService, read_service
from weir.stacks.manifest import Stack
from weir.stacks.unmanaged import ExternalStack

_HINT = "weir doctor shows what this machine allows"


def resolve_placement(placement: Placement, able: Capabilities, *, fallback: bool) -> Placement:
    """Returns the placement without unsupported network features if `fallback` is true. Otherwise raises UsageError for
    an unsupported feature. Always raises UsageError if this machine does not support the limits."""
    if placement.limits and not able.limits.possible:
        why = f"weir cannot set limits on this machine: {able.limits.detail}"
        raise UsageError(f"cpus.quota, cpus.memory: found limits, expected none: {why}", hint=_HINT)
    network = placement.network
    if network is None:
        return placement
    if not able.network.possible:
        missing = f"separate network for the stack ({able.network.detail})"
        return _degrade(placement, "isolation = 'netns'", missing, fallback, network=None)
    if network.published_port != network.port and not able.port_translation.possible:
        missing = f"translation of port {network.published_port} to {network.port} ({able.port_translation.detail})"
        network = replace(network, published_port=network.port)
        placement = _degrade(placement, "publish", missing, fallback, network)
    if (network.delay_ms or network.loss) and not able.netem.possible:
        missing, without = f"delay and loss ({able.netem.detail})", replace(network, delay_ms=0.0, loss=0.0)
        placement = _degrade(placement, "delay_ms, loss", missing, fallback, without)
    return placement


def _degrade(placement: Placement, key: str, missing: str, fallback: bool, network: Network | None) -> Placement:
    if not fallback:
        hint = f"{_HINT}; set fallback = true in [network] to run without this feature"
        raise UsageError(f"network: {key}: this machine does not support the {missing}", hint=hint)
    omitted = f"This machine does not support the {missing}, so the study ran without it."
    return replace(placement, omitted_features=(*placement.omitted_features, omitted), network=network)


def validate_stacks(placement: Placement, stacks: Iterable[Stack | ExternalStack], services: Collection[str]) -> None:
    """Raises UsageError if a tier with a limit has no process, or if clients cannot reach a stack. `services`: names of
    the services for the study's workloads."""
    of_study = {stack.label: stack for stack in stacks}.values()
    started = [stack for stack in of_study if isinstance(stack, Stack)]
    tiers = sorted({tier for stack in started for tier in (stack.manifest.root_tier, *_list_services(stack, services))})
    for tier in placement.limits:
        if tier not in tiers:
            expected = f"expected a tier whose process weir starts: {', '.join(tiers) or 'none'}"
            raise UsageError(f"cpus.quota, cpus.memory: found tier {tier!r}, {expected}", hint="weir stacks list")
    if placement.network is not None:
        if len(started) < len(of_study):
            raise UsageError("network: found external stacks in the study, expected only stacks that weir starts")
        for stack in started:
            if used := _list_services(stack, services):
                why = "services listen on loopback, which a stack in a separate network cannot reach"
                found = f"network: found {stack.label}, which needs {', '.join(used)}"
                raise UsageError(f"{found}; expected stacks without services: {why}")
            if not stack.takes_address:
                found = f"{stack.folder / 'stack.toml'}: run.command: found no '{{host}}'"
                why = "clients cannot reach the loopback address of a stack in a separate network"
                raise UsageError(f"{found}, expected '{{host}}' as the listening address: {why}")
    if placement.advertised_address is None or ip_address(placement.advertised_address).is_loopback:
        return
    for stack in started:
        has_front = any(isinstance(read_service(name), FrontService) for name in _list_services(stack, services))
        if not (has_front or stack.takes_address):
            found = f"{stack.label}, which listens on loopback only ({stack.folder / 'stack.toml'}: no '{{host}}')"
            expected = "'{host}' as its listening address: agents on other machines cannot reach loopback"
            raise UsageError(f"--cluster: found {found}, expected {expected}")


def _list_services(stack: Stack, services: Collection[str]) -> list[str]:
    return [name for name in stack.services if name in services]
