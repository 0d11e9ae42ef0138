"""Checks a cluster: its nodes, their roles and clocks, and problems that prevent loads or studies."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from weir import __version__
from weir.cluster.agent import find_weir
from weir.cluster.agents import AgentHandle, launch_agents
from weir.cluster.clock import Clock, estimate_clock
from weir.cluster.ray_cluster import EXTRA, Node, RayCluster, Role, get_resource_name
from weir.model.errors import WeirError

_ROLES: tuple[Role, ...] = ("load", "stack", "service")
_READINGS = 20
_READ_WITHIN_S = 10.0
_FAR_APART_S = 30.0
"""Timeout for an agent that reads another agent's clock: longer than the timeout of a reading. So weir marks the silent
agent as lost, and not the reading agent."""
_WEIR_WITHIN_S = 15.0
"""Time limit for the first start of weir on a node."""


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """A node, and the programs that loads and studies need on this node."""

    node: Node
    roles: tuple[Role, ...]
    facts: dict[str, Any]
    """Result of `weir.cluster.agent.Agent.facts`."""
    engine: str
    """Version of the engine, or the reason why the engine does not run on the node."""
    can_run: bool
    needs_weir: bool = False
    """Whether studies need weir on the node: the node runs stacks, and is not this machine."""
    weir: str | None = None
    """Version of weir, or the reason why weir does not run on the node. None: not installed or not needed."""


@dataclass(frozen=True, slots=True)
class Pair:
    """The clock of the node `other`, as the node `node` read it."""

    node: str
    other: str
    clock: Clock


@dataclass(frozen=True, slots=True)
class ClusterReport:
    """The result of a check of a cluster."""

    nodes: tuple[NodeFacts, ...]
    pairs: tuple[Pair, ...]
    missing: tuple[str, ...]
    """Sentences about problems that prevent loads or studies, some with a remedy."""


def check_cluster(cluster: RayCluster) -> ClusterReport:
    """Checks every node. `missing` includes nodes that do not reply. Raises TargetError if an agent fits on no node."""
    found: dict[AgentHandle, NodeFacts] = {}
    unwell: dict[AgentHandle, str] = {}
    with launch_agents(cluster, None, len(cluster.nodes)) as agents:
        # Ray returns agents in any order.
        for agent in sorted(agents, key=lambda agent: agent.name):
            try:
                agent.prepare()
            except WeirError as error:
                unwell[agent] = error.message
            else:
                found[agent] = _collect_facts(agent, here=agent.node.id == cluster.own_node)
        pairs, apart = _read_clocks(list(found))
    nodes = tuple(found.values())
    missing = find_missing(nodes, [agent.node for agent in unwell])
    return ClusterReport(nodes, tuple(pairs), (*missing, *unwell.values(), *apart))


def _read_clocks(agents: Sequence[AgentHandle]) -> tuple[list[Pair], list[str]]:
    """Makes each agent read the clock of every other agent. Returns the clocks, and sentences about failures."""
    pairs, troubles = [], []
    for one, other in permutations(agents, 2):
        if one.lost is not None or other.lost is not None:
            continue
        try:
            readings = one.call("readings", other.actor, _READINGS, _READ_WITHIN_S, timeout_s=_FAR_APART_S)
        except WeirError as error:
            # The lost agent may be the other one.
            with suppress(WeirError):
                other.call("now_ns")
            if one.lost is None and other.lost is None:
                troubles.append(f"the clock of {other.name} cannot be read from {error.message}")
        else:
            pairs.append(Pair(one.name, other.name, estimate_clock(readings)))
    return pairs, troubles + [agent.error().message for agent in agents if agent.lost is not None]


def _collect_facts(agent: AgentHandle, *, here: bool) -> NodeFacts:
    roles = tuple(role for role in _ROLES if agent.node.offers(role))
    needs_weir = "stack" in roles and not here
    weir = f"weir {__version__}" if here else _find_weir_version(agent) if needs_weir else None
    try:
        version, status = agent.call("run_command", [agent.engine_path, "--version"])
    except WeirError as error:
        version, status = error.message, 1
    return NodeFacts(agent.node, roles, agent.facts, version.strip(), status == 0, needs_weir, weir)


def _find_weir_version(agent: AgentHandle) -> str | None:
    try:
        if (program := agent.apply(find_weir)) is None:
            return None
        printed, _ = agent.call("run_command", [program, "--version"], timeout_s=_WEIR_WITHIN_S)
        return str(printed).strip()
    except WeirError as error:
        return error.message


def find_missing(found: Sequence[NodeFacts], unwell: Sequence[Node] = ()) -> list[str]:
    """Returns sentences about problems that prevent loads or studies. `unwell`: nodes with failed agents."""
    sentences = [f"{one.node.name}: weir-engine does not run there: {one.engine}" for one in found if not one.can_run]
    for one in found:
        if one.needs_weir and one.weir is None:
            sentences.append(f"{one.node.name}: found no weir, expected weir on a node for stacks; install it: {EXTRA}")
        elif one.needs_weir and one.weir != f"weir {__version__}":
            sentences.append(f"{one.node.name}: found {one.weir}, expected weir {__version__} as here")
    offered = {role for role in _ROLES if any(node.offers(role) for node in (*(one.node for one in found), *unwell))}
    # Stacks and services may run on this machine. If no node offers any role, each node can have every role.
    if offered and "load" not in offered:
        name = get_resource_name("load")
        sentences.append(f"no node offers {name}; start a node with: ray start … --resources '{{\"{name}\": 1}}'")
    return sentences
