"""Tests the list of a cluster's missing parts, made from the nodes' reports."""

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from typer.testing import CliRunner

from tests.support.local_ray import LEASE_S, LocalMember, RayError
from weir import __version__
from weir.cli.commands import app
from weir.cluster import diagnostics as check_module
from weir.cluster.agent import Agent
from weir.cluster.diagnostics import ClusterReport, NodeFacts, check_cluster, find_missing
from weir.cluster.ray_cluster import Node, RayCluster, Role, get_resource_name
from weir.model.errors import ExitCode

HERE = f"weir {__version__}"


def node(name: str, *roles: Role, engine: str = "weir-engine 0.1.0", can_run: bool = True) -> NodeFacts:
    return NodeFacts(
        Node(name, name, name, {get_resource_name(role): 1.0 for role in roles}), roles, {}, engine, can_run
    )


def for_stacks(weir: str | None) -> NodeFacts:
    return replace(node("10.0.0.9", "stack"), needs_weir=True, weir=weir)


def test_a_cluster_that_has_all_lacks_nothing() -> None:
    # The second node is this machine, so no check for weir is necessary there.
    assert find_missing([node("10.0.0.1", "load"), node("10.0.0.2", "stack"), for_stacks(HERE)]) == []


def test_nodes_of_which_none_says_what_it_is_for_are_for_everything() -> None:
    assert find_missing([node("10.0.0.1"), node("10.0.0.2")]) == []


def test_a_node_on_which_the_engine_does_not_run_is_named_with_the_reason() -> None:
    said = find_missing([node("10.0.0.1", "load", engine="Exec format error", can_run=False), node("10.0.0.2", "load")])
    assert said == ["10.0.0.1: weir-engine does not run there: Exec format error"]


def test_where_nodes_say_what_they_are_for_one_has_to_be_for_loads() -> None:
    (said,) = find_missing([node("10.0.0.2", "service")])
    assert said.startswith("no node offers weir_load; start a node with: ray start")
    # A node with a problem reports the problem itself.
    assert find_missing([node("10.0.0.2", "service")], [node("10.0.0.3", "load").node]) == []


def test_a_node_for_stacks_needs_weir_and_the_same_as_here() -> None:
    loads = node("10.0.0.1", "load")
    (said,) = find_missing([loads, for_stacks(None)])
    assert said.endswith("expected weir on a node for stacks; install it: pip install 'weirbench[cluster]'")
    (said,) = find_missing([loads, for_stacks("weir 0.0.9")])
    assert said == f"10.0.0.9: found weir 0.0.9, expected {HERE} as here"


# --- Nodes with problems


class Well(Agent):
    """An agent that reads another agent's clock without a network."""

    def __init__(self) -> None:
        super().__init__(LEASE_S)

    def readings(self, other: Any, count: int, within_s: float) -> list[tuple[int, int, int]]:
        try:
            return [(0, other.now_ns.remote().result(within_s), 1)]
        except RayError as error:
            # Ray shows any error of the other agent as this error.
            raise RuntimeError(error) from None


class Full(Well):
    """An agent on a node whose disk is full."""

    def keep(self, content: bytes, name: str) -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def find(self, digest: str, name: str = "") -> str | None:
        return None


class Gone(Well):
    """An agent whose node disappears after the question for its versions."""

    is_gone = False

    def run_command(self, argv: Sequence[str]) -> tuple[str, int]:
        self.is_gone = True
        return "weir-engine 0.1.0", 0

    def now_ns(self) -> int:
        if self.is_gone:
            raise RayError("The actor died.")
        return super().now_ns()


class Apart(Well):
    """An agent on a node that reaches no other node."""

    def readings(self, other: Any, count: int, within_s: float) -> list[tuple[int, int, int]]:
        raise TimeoutError("Get timed out")


def checked(monkeypatch: pytest.MonkeyPatch, **agents: Agent) -> ClusterReport:
    """Checks a cluster of these agents; the first is on this machine."""
    members = [LocalMember(name, agent) for name, agent in agents.items()]

    @contextmanager
    def launch_agents(*_: object) -> Iterator[list[LocalMember]]:
        yield members

    monkeypatch.setattr(check_module, "launch_agents", launch_agents)
    return check_cluster(
        cast(RayCluster, SimpleNamespace(nodes=[member.node for member in members], own_node=members[0].node.id))
    )


@pytest.mark.parametrize(
    ("sick", "is_shown", "told"),
    [
        (Full, False, "sick: [Errno 28] No space left on device"),
        (Gone, True, "agent sick is lost: The actor died."),
    ],
)
def test_a_node_that_is_not_well_is_named_and_the_others_are_shown(
    sick: type[Well], is_shown: bool, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = checked(monkeypatch, one=Well(), other=Well(), sick=sick())
    assert [one.node.name for one in found.nodes] == ["one", "other", *(["sick"] if is_shown else [])]
    assert [(pair.node, pair.other) for pair in found.pairs] == [("one", "other"), ("other", "one")]
    (said,) = found.missing
    assert said.startswith(told)


def test_a_way_between_two_nodes_that_is_closed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = checked(monkeypatch, one=Well(), apart=Apart())
    assert [(pair.node, pair.other) for pair in found.pairs] == [("one", "apart")]
    assert found.missing == ("the clock of one cannot be read from apart: Get timed out",)


def test_versions_are_shown_where_they_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = Agent(LEASE_S).facts()
    here, loads = (replace(node(name, "load"), facts=facts) for name in ("10.0.0.1", "10.0.0.2"))
    stacks = replace(for_stacks("weir 0.0.9"), facts=facts)

    @contextmanager
    def join_cluster(_: str) -> Iterator[None]:
        yield

    monkeypatch.setattr("weir.cluster.ray_cluster.join_cluster", join_cluster)
    monkeypatch.setattr(
        check_module,
        "check_cluster",
        lambda _: ClusterReport((replace(here, weir=HERE), loads, stacks), (), ("10.0.0.9: old",)),
    )
    monkeypatch.setattr("weir.cli.cluster.stdout.width", 200)
    done = CliRunner().invoke(app, ["cluster", "check"])
    assert done.exit_code == ExitCode.TARGET
    header, *rows = done.output.splitlines()
    begins, ends = header.index("weir"), header.index("kernel")
    assert [row[begins:ends].strip() for row in rows[:3]] == [HERE, "-", "weir 0.0.9"]
