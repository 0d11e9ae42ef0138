from dataclasses import replace
from pathlib import Path

import pytest

from weir.host import Ability, Capabilities
from weir.lab.capabilities import resolve_placement, validate_stacks
from weir.lab.placement import place
from weir.model.errors import UsageError
from weir.stacks.manifest import Needed, Stack, read_manifest
from weir.stacks.unmanaged import ExternalStack
from weir.study.file import Cpus, Network

YES = Ability(True, "as root")
NO = Ability(False, "not root")
CONTAINER = Network(isolation="netns", port=8000, publish=1234, delay_ms=20)


def stack(folder: Path, argument: str) -> Stack:
    path = folder / "thing" / "stack.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        f"""
schema = 1
id = "thing"
title = "Thing"
model = "one process"
run.command = ["serve", "{argument}"]
serves.hello = {{}}
"""
    )
    return read_manifest(path)


def with_service(folder: Path) -> Stack:
    plain = stack(folder, "{host}:{port}")
    return replace(plain, manifest=plain.manifest.model_copy(update={"services": {"postgres": Needed()}}))


def test_limits_without_the_right_to_set_them_are_an_error_that_says_why() -> None:
    placement = place(Cpus(quota={"app": 0.5}), available=[0, 1])
    assert resolve_placement(placement, Capabilities(YES, NO, NO, NO), fallback=False) == placement
    for fallback in (False, True):
        with pytest.raises(
            UsageError,
            match=r"cpus\.quota, cpus\.memory: found limits, expected none: weir cannot set limits on this machine: not root",
        ):
            resolve_placement(placement, Capabilities(NO, YES, YES, YES), fallback=fallback)


@pytest.mark.parametrize(
    ("able", "named"),
    [
        (
            Capabilities(YES, NO, YES, YES),
            "isolation = 'netns': this machine does not support the separate network for the stack",
        ),
        (
            Capabilities(YES, YES, NO, YES),
            "publish: this machine does not support the translation of port 1234 to 8000",
        ),
        (Capabilities(YES, YES, YES, NO), "delay_ms, loss: this machine does not support the delay and loss"),
    ],
)
def test_what_a_network_cannot_have_is_an_error_or_with_fallback_left_out_and_said(
    able: Capabilities, named: str
) -> None:
    placement = place(Cpus(), CONTAINER, available=[0, 1])
    with pytest.raises(UsageError, match=named):
        resolve_placement(placement, able, fallback=False)
    without = resolve_placement(placement, able, fallback=True)
    assert len(without.omitted_features) == 1
    assert "not root" in without.omitted_features[0]
    if not able.network.possible:
        assert without.network is None
    elif not able.port_translation.possible:
        assert without.network is not None
        assert (without.network.published_port, without.network.delay_ms) == (8000, 20)
    else:
        assert without.network is not None
        assert (without.network.published_port, without.network.delay_ms) == (1234, 0)


def test_a_machine_that_can_do_everything_leaves_a_placement_as_it_is() -> None:
    placement = place(Cpus(), CONTAINER, available=[0, 1])
    assert resolve_placement(placement, Capabilities(YES, YES, YES, YES), fallback=True) == placement


def test_a_limit_of_a_tier_that_nothing_starts_is_an_error(tmp_path: Path) -> None:
    placement = place(Cpus(quota={"ap": 0.5}), available=[0, 1])
    with pytest.raises(UsageError, match=r"found tier 'ap', expected a tier whose process weir starts: app, postgres"):
        validate_stacks(placement, [with_service(tmp_path)], ["postgres"])


def test_a_service_may_have_limits_but_its_stack_no_network_of_its_own(tmp_path: Path) -> None:
    validate_stacks(place(Cpus(quota={"postgres": 0.5}), available=[0, 1]), [with_service(tmp_path)], ["postgres"])
    with pytest.raises(UsageError, match="network: found thing, which needs postgres"):
        validate_stacks(place(Cpus(), CONTAINER, available=[0, 1]), [with_service(tmp_path)], ["postgres"])


def test_a_service_that_no_workload_of_the_study_is_about_stands_in_no_ones_way(tmp_path: Path) -> None:
    validate_stacks(place(Cpus(), CONTAINER, available=[0, 1]), [with_service(tmp_path)], [])


def test_an_external_stack_cannot_have_a_network_of_its_own() -> None:
    placement = place(Cpus(), CONTAINER, available=[0, 1])
    external = ExternalStack(id="mine", url="http://127.0.0.1:1", pids=(), serves=("hello",), title="Mine", model="")
    with pytest.raises(UsageError, match="network: found external stacks in the study"):
        validate_stacks(placement, [external], [])
    validate_stacks(place(Cpus(), available=[0, 1]), [external], [])


def test_a_stack_that_listens_on_loopback_alone_cannot_be_asked_from_other_machines_without_a_proxy(
    tmp_path: Path,
) -> None:
    here = place(Cpus(), available=[0, 1])
    there = replace(here, advertised_address="10.0.0.5")
    deaf = stack(tmp_path, "{port}")
    with pytest.raises(UsageError, match="--cluster: found thing, which listens on loopback only"):
        validate_stacks(there, [deaf], [])
    behind = replace(deaf, manifest=deaf.manifest.model_copy(update={"services": {"nginx": Needed()}}))
    validate_stacks(there, [stack(tmp_path, "{host}:{port}"), behind], ["nginx"])
    validate_stacks(replace(here, advertised_address="127.0.0.1"), [deaf], [])


def test_a_stack_that_listens_on_loopback_alone_cannot_have_a_network_of_its_own(tmp_path: Path) -> None:
    placement = place(Cpus(), CONTAINER, available=[0, 1])
    with pytest.raises(UsageError, match=r"stack\.toml: run\.command: found no '{host}'"):
        validate_stacks(placement, [stack(tmp_path, "{port}")], [])
    validate_stacks(placement, [stack(tmp_path, "{host}:{port}")], [])
