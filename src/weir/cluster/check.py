"""What a cluster is, before anything runs on it: its nodes, what they are for, how far apart their clocks are, and what is missing."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from weir import __version__
from weir.cluster.clock import Clock, clock_of
from weir.cluster.members import Member, members
from weir.cluster.ray_cluster import EXTRA, Node, RayCluster, Role, resource
from weir.model.errors import WeirError

_ROLES: tuple[Role, ...] = ("load", "stack", "service")
_READINGS = 20
_FAR_APART_S = 30.0
_WEIR_WITHIN_S = 15.0
"""How long it may take to start on a node that has never loaded it."""


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """A node that was asked."""

    node: Node
    roles: tuple[Role, ...]
    facts: dict[str, Any]
    """`weir.cluster.agent.Agent.facts`."""
    engine: str
    """The version that the engine names there, or why it does not run."""
    can_run: bool
    needs_weir: bool = False
    """Whether weir would run there: stacks are there, and not here."""
    weir: str | None = None
    """What weir names itself there, or why it does not run; None: it is not installed, or not needed."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One node's clock read from another."""

    node: str
    other: str
    clock: Clock


@dataclass(frozen=True, slots=True)
class Checked:
    """A cluster."""

    nodes: tuple[NodeFacts, ...]
    pairs: tuple[Pair, ...]
    missing: tuple[str, ...]
    """What keeps loads or studies from running, in sentences with what helps; empty if nothing does."""


def check(cluster: RayCluster) -> Checked:
    """Asks every node.

    Raises:
        TargetError: the cluster gives an agent no place, or one does not come up.
    """
    nodes = cluster.nodes
    with members(cluster, None, len(nodes)) as agents:
        # Ray gives them places in any order.
        agents = sorted(agents, key=lambda agent: agent.name)
        found = tuple(_asked(agent, here=agent.node.id == cluster.own_node) for agent in agents)
        pairs = tuple(
            Pair(one.name, other.name, clock_of(one.call("readings", other.actor, _READINGS, timeout_s=_FAR_APART_S)))
            for one, other in permutations(agents, 2)
        )
    return Checked(found, pairs, tuple(missing(found)))


def _asked(agent: Member, *, here: bool) -> NodeFacts:
    roles = tuple(role for role in _ROLES if agent.node.offers(role))
    needs_weir = "stack" in roles and not here
    weir = _weir(agent) if needs_weir else None
    try:
        version, status = agent.call("output_of", [agent.engine_path, "--version"])
    except WeirError as error:
        version, status = error.message, 1
    return NodeFacts(agent.node, roles, agent.facts, version.strip(), status == 0, needs_weir, weir)


def _weir(agent: Member) -> str | None:
    try:
        program = agent.call("weir")
        return None if program is None else str(agent.call("output_of", [program, "--version"], timeout_s=_WEIR_WITHIN_S)[0]).strip()
    except WeirError as error:
        return error.message


def missing(found: Sequence[NodeFacts]) -> list[str]:
    """What keeps loads or studies from running on these nodes, in sentences."""
    sentences = [f"{one.node.name}: weir-engine does not run there: {one.engine}" for one in found if not one.can_run]
    for one in found:
        if one.needs_weir and one.weir is None:
            sentences.append(f"{one.node.name}: weir is not installed there, expected it where stacks run: {EXTRA}")
        elif one.needs_weir and one.weir != f"weir {__version__}":
            sentences.append(f"{one.node.name}: found {one.weir}, expected weir {__version__} as here")
    offered = {role for one in found for role in one.roles}
    # Stacks and services may be on the machine that weir runs on, and where no node says what it is for, each is for everything.
    if offered and "load" not in offered:
        sentences.append(f"no node offers {resource('load')}: ray start … --resources '{{\"{resource('load')}\": 1}}'")
    return sentences
