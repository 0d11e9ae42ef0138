"""What a cluster lacks, from what its nodes have said."""

from dataclasses import replace

from weir import __version__
from weir.cluster.check import NodeFacts, missing
from weir.cluster.ray_cluster import Node, Role

HERE = f"weir {__version__}"


def node(name: str, *roles: Role, engine: str = "weir-engine 0.1.0", can_run: bool = True) -> NodeFacts:
    return NodeFacts(Node(name, name, name, {}), roles, {}, engine, can_run)


def for_stacks(weir: str | None) -> NodeFacts:
    return replace(node("10.0.0.9", "stack"), needs_weir=True, weir=weir)


def test_a_cluster_that_has_all_lacks_nothing() -> None:
    # The second is this machine, on which nobody has to look for weir.
    assert missing([node("10.0.0.1", "load"), node("10.0.0.2", "stack"), for_stacks(HERE)]) == []


def test_nodes_of_which_none_says_what_it_is_for_are_for_everything() -> None:
    assert missing([node("10.0.0.1"), node("10.0.0.2")]) == []


def test_a_node_on_which_the_engine_does_not_run_is_named_with_the_reason() -> None:
    said = missing([node("10.0.0.1", "load", engine="Exec format error", can_run=False), node("10.0.0.2", "load")])
    assert said == ["10.0.0.1: weir-engine does not run there: Exec format error"]


def test_where_nodes_say_what_they_are_for_one_has_to_be_for_loads() -> None:
    (said,) = missing([node("10.0.0.2", "service")])
    assert said.startswith("no node offers weir_load: ray start")


def test_a_node_for_stacks_needs_weir_and_the_same_as_here() -> None:
    loads = node("10.0.0.1", "load")
    (said,) = missing([loads, for_stacks(None)])
    assert said == "10.0.0.9: weir is not installed there, expected it where stacks run: pip install 'weirbench[cluster]'"
    (said,) = missing([loads, for_stacks("weir 0.0.9")])
    assert said == f"10.0.0.9: found weir 0.0.9, expected {HERE} as here"
