"""Tests weir's requests to Ray and its handling of the results. A test sets the results of this Ray."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.support.local_ray import LocalRay, RayError
from weir.cluster.ray_cluster import RayCluster, find_node
from weir.model.errors import TargetError

OWN = "id-own"
Placed = Sequence[dict[str, str]] | None
"""Labels of the nodes to which bundles were bound."""


def node(identity: str, **resources: float) -> dict[str, Any]:
    return {"Alive": True, "NodeManagerAddress": f"10.0.0.{len(identity)}", "NodeID": identity, "Resources": resources}


class Told(LocalRay):
    """A Ray with these nodes."""

    def __init__(self, *nodes: dict[str, Any]) -> None:
        super().__init__()
        self.listed = list(nodes)

    def nodes(self) -> list[dict[str, Any]]:
        return self.listed

    def get_runtime_context(self) -> SimpleNamespace:
        return SimpleNamespace(get_node_id=lambda: OWN, gcs_address="10.0.0.1:6379")


class Broken(Told):
    """A Ray on which every call fails."""

    def nodes(self) -> list[dict[str, Any]]:
        raise RayError("the head is gone\nand much more")

    def put(self, content: bytes) -> bytes:
        raise RayError("the store is full\nand much more")


@contextmanager
def placing(
    monkeypatch: pytest.MonkeyPatch, ray: Told, joins: dict[str, Any], goes: bool = False
) -> Iterator[list[Placed]]:
    """While bundles wait for a place, a node with one joins; bundles may be removed at once."""
    asked: list[Placed] = []

    def wait(timeout_seconds: float) -> bool:
        if not goes:
            ray.listed.append(joins)
        return True

    def group(bundles: object, *, strategy: str, bundle_label_selector: Placed) -> SimpleNamespace:
        asked.append(bundle_label_selector)
        return SimpleNamespace(wait=wait)

    module = ModuleType("ray.util.placement_group")
    vars(module).update(
        placement_group=group,
        placement_group_table=lambda _: {"bundles_to_node_id": {0: joins["NodeID"]}},
        remove_placement_group=lambda _: None,
    )
    with monkeypatch.context() as here:
        here.setitem(sys.modules, module.__name__, module)
        yield asked


def test_a_node_that_joins_while_agents_wait_for_their_places_may_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = Told(node("id-1", weir_load=1))
    with (
        placing(monkeypatch, ray, node("id-new", weir_load=1)),
        RayCluster(ray).reserve_nodes("load", 1) as (_, places),
    ):
        assert [place.id for place in places] == ["id-new"]


def test_a_node_that_goes_before_its_agent_begins_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = Told(node("id-1", weir_load=1))
    with (
        placing(monkeypatch, ray, node("id-gone", weir_load=1), goes=True),
        pytest.raises(TargetError, match="a node was lost"),
        RayCluster(ray).reserve_nodes("load", 1),
    ):
        pass


@pytest.mark.parametrize("role", ["stack", "service"])
def test_the_node_for_a_role_is_the_one_that_was_named(role: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ray = Told(node(OWN), node("id-a", **{f"weir_{role}": 1}), node("id-bb", **{f"weir_{role}": 1}))
    cluster = RayCluster(ray)
    named = find_node(cluster, role)
    assert named is not None
    with placing(monkeypatch, ray, ray.listed[1]) as asked, cluster.reserve_nodes(role, 1):
        assert asked == [[{"ray.io/node-id": named.id}]]


def test_loads_are_where_ray_finds_room(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = Told(node("id-1", weir_load=1))
    with placing(monkeypatch, ray, ray.listed[0]) as asked, RayCluster(ray).reserve_nodes("load", 1):
        assert asked == [None]


def test_what_ray_cannot_do_is_told_in_a_line_with_what_helps() -> None:
    cluster = RayCluster(Broken())
    with pytest.raises(TargetError, match=r"Ray reports: the head is gone$") as raised:
        cluster.nodes  # noqa: B018
    assert raised.value.hint == "ray status"
    with pytest.raises(TargetError, match=r"Ray reports: the store is full$"):
        cluster.store(b"an engine")


def test_where_the_node_of_this_machine_is_gone_the_next_step_is_told() -> None:
    with pytest.raises(TargetError, match="found no node of this machine") as raised:
        RayCluster(Told(node("id-1"))).own_address  # noqa: B018
    assert raised.value.hint == "ray start --address 10.0.0.1:6379"
    assert RayCluster(Told(node(OWN))).own_address == "10.0.0.6"
