"""What a cluster is, before anything runs on it: its nodes, what they are for, how far apart their clocks are, and what is missing."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from weir import __version__
from weir.cluster.clock import Clock, clock_of
from weir.cluster.members import Member, begun
from weir.cluster.ray_cluster import EXTRA, Node, RayCluster, Role, resource
from weir.model.errors import WeirError

_ROLES: tuple[Role, ...] = ("load", "stack", "service")
_READINGS = 20
_READ_WITHIN_S = 10.0
_FAR_APART_S = 30.0
"""Longer, so that whoever reads the clock of one that says nothing is not taken for silent himself."""
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
    """What weir names itself there, or why it does not run; None: it is not installed, or nobody needs it there."""


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
    """Asks every node. What one that is not well says, or that it says nothing, is among what is missing.

    Raises:
        TargetError: the cluster gives an agent no place.
    """
    found: list[NodeFacts] = []
    well: list[Member] = []
    unwell: list[Node] = []
    troubles: list[str] = []
    with begun(cluster, None, len(cluster.nodes)) as (agents, _):
        # Ray gives them places in any order.
        for agent in sorted(agents, key=lambda agent: agent.name):
            try:
                agent.prepare()
            except WeirError as error:
                unwell.append(agent.node)
                troubles.append(error.message)
            else:
                found.append(_asked(agent, here=agent.node.id == cluster.own_node))
                well.append(agent)
        pairs, apart = _pairs(well)
    return Checked(tuple(found), tuple(pairs), (*missing(found, unwell), *troubles, *apart))


def _pairs(agents: Sequence[Member]) -> tuple[list[Pair], list[str]]:
    """Their clocks, each read from each other, and why one could not be."""
    pairs, troubles = [], []
    for one, other in permutations(agents, 2):
        if one.lost is not None or other.lost is not None:
            continue
        try:
            readings = one.call("readings", other.actor, _READINGS, _READ_WITHIN_S, timeout_s=_FAR_APART_S)
        except WeirError as error:
            # It may be the other one that is gone.
            with suppress(WeirError):
                other.call("now_ns")
            if one.lost is None and other.lost is None:
                troubles.append(f"{other.name} cannot be asked from {error.message}")
        else:
            pairs.append(Pair(one.name, other.name, clock_of(readings)))
    return pairs, troubles + [agent.error().message for agent in agents if agent.lost is not None]


def _asked(agent: Member, *, here: bool) -> NodeFacts:
    roles = _roles(agent.node)
    needs_weir = "stack" in roles and not here
    weir = f"weir {__version__}" if here else _weir(agent) if needs_weir else None
    try:
        version, status = agent.call("output_of", [agent.engine_path, "--version"])
    except WeirError as error:
        version, status = error.message, 1
    return NodeFacts(agent.node, roles, agent.facts, version.strip(), status == 0, needs_weir, weir)


def _roles(node: Node) -> tuple[Role, ...]:
    return tuple(role for role in _ROLES if node.offers(role))


def _weir(agent: Member) -> str | None:
    try:
        program = agent.call("weir")
        return None if program is None else str(agent.call("output_of", [program, "--version"], timeout_s=_WEIR_WITHIN_S)[0]).strip()
    except WeirError as error:
        return error.message


def missing(found: Sequence[NodeFacts], unwell: Sequence[Node] = ()) -> list[str]:
    """What keeps loads or studies from running on these nodes, in sentences, beside what some say for themselves that are not well."""
    sentences = [f"{one.node.name}: weir-engine does not run there: {one.engine}" for one in found if not one.can_run]
    for one in found:
        if one.needs_weir and one.weir is None:
            sentences.append(f"{one.node.name}: weir is not installed there, expected it where stacks run: {EXTRA}")
        elif one.needs_weir and one.weir != f"weir {__version__}":
            sentences.append(f"{one.node.name}: found {one.weir}, expected weir {__version__} as here")
    offered = {role for node in (*(one.node for one in found), *unwell) for role in _roles(node)}
    # Stacks and services may be on the machine that weir runs on, and where no node says what it is for, each is for everything.
    if offered and "load" not in offered:
        sentences.append(f"no node offers {resource('load')}: ray start … --resources '{{\"{resource('load')}\": 1}}'")
    return sentences
