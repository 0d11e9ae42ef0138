"""Tests loads as studies: each load becomes a study file, and the file's only cell has the same load."""

import random
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.compat.study_export import build_study
from weir.load_spec import LoadSpec
from weir.model.errors import UsageError
from weir.model.load import ExponentialThink, LoadPlan, Think
from weir.scenario import Check, Pause, Scenario, Step
from weir.study.study import parse_study

URL = "http://127.0.0.1:8000/"
LOADS = [
    LoadSpec(connections=400),
    LoadSpec(connections=8, think=Think(1.0, 1.0)),
    LoadSpec(connections=8, think=Think(0.0, 3.0), loops=5),
    LoadSpec(connections=8, think=ExponentialThink(0.25), pace_s=0.1),
    LoadSpec(users=2000.0, ramp_s=50.0, loops=5),
    LoadSpec(users=((0.0, 1.0), (30.0, 20.0), (30.0, 10.0), (50.5, 0.0))),
    LoadSpec(users=((5.0, 20.0),)),
    LoadSpec(rate_rps=1000.0, connections=64),
    LoadSpec(rate_rps=0.5, connections=3, arrivals="poisson"),
    LoadSpec(rate_rps=((0.0, 0.0), (10.0, 100.0)), connections=100, loops=3, think=Think(0.1, 0.3)),
    LoadSpec(connections=20, requests=200, threads=2, timeout_s=20.0, duration_s=3600.0),
    LoadSpec(connections=20, timeout_s=0.0015, seed=7, until_first_failure=True, keep_alive=False, duration_s=0.25),
    LoadSpec(connections=20, pipeline=16, kernel_timestamps=True, duration_s=1.5),
    LoadSpec(urls=(f"{URL}x?y=1&z",), connections=2, headers=(("Content-Type", "text/plain"),), body=b"it's"),
    LoadSpec(urls=(f"{URL}x",), connections=2, method="DELETE"),
    LoadSpec(urls=(f"{URL}x",), connections=2, method="GET", body=b"a body with GET"),
]


def complete(spec: LoadSpec) -> LoadSpec:
    return replace(spec, urls=spec.urls or (URL,), duration_s=spec.duration_s or 30.0)


def cell_plan(text: str) -> LoadPlan:
    """Returns the load of a study's only cell, as its trial makes it."""
    study = parse_study(Path("study.toml"), text, tomllib.loads(text), None)
    (cell,) = study.cells(1)
    request = cell.workload.draw(study.file.external["server"].url, random.Random(0))
    return cell.plan(request, targets=(), duration_s=cell.duration_s, interval_s=0.1, cpus=())


@pytest.mark.parametrize("spec", [complete(spec) for spec in LOADS], ids=lambda spec: spec.to_command())
def test_a_study_gives_the_load_back_that_it_was_written_for(spec: LoadSpec) -> None:
    plan, found = spec.to_plan(), cell_plan(build_study(spec, title="A study"))
    # A study sets the generator's CPUs, a seed if none is given, and one expected status.
    chosen = {"threads": plan.threads, "cpus": plan.cpus, "seed": plan.seed, "expected_status": plan.expected_status}
    assert found.expected_status == (200,)
    assert replace(found, **chosen) == plan  # type: ignore[arg-type]
    assert found.seed == (plan.seed or 1)


@settings(max_examples=25)
@given(
    rate=st.floats(1e-3, 1e6),
    users=st.lists(st.tuples(st.integers(0, 3_600_000), st.integers(0, 10_000)), min_size=1, max_size=5),
    duration=st.floats(1e-3, 1e6),
    timeout=st.floats(1e-3, 3600),
)
def test_numbers_survive_exactly(rate: float, users: list[tuple[int, int]], duration: float, timeout: float) -> None:
    points = tuple(sorted((t_ms / 1000, float(count)) for t_ms, count in users))
    specs = [LoadSpec(rate_rps=rate, connections=7)]
    specs += [LoadSpec(users=points)] if max(count for _, count in points) > 0 else []
    for spec in specs:
        plan = replace(spec, urls=(URL,), duration_s=duration, timeout_s=timeout).to_plan()
        found = cell_plan(
            build_study(replace(spec, urls=(URL,), duration_s=duration, timeout_s=timeout), title="A study")
        )
        assert (found.load, found.duration_s, found.timeout_s) == (plan.load, plan.duration_s, plan.timeout_s)


def test_a_scenario_stands_in_the_study_itself() -> None:
    shop = Scenario(
        steps=[
            Step("POST", "/login", body="{{word 8}}", extract={"token": {"json": "/token"}}),
            Step(
                "GET",
                "/item",
                headers={"X": "1"},
                check=Check(status=[204], json={"/a": 1}),
                think=Pause(constant_s=0.5),
            ),
        ],
        cookies="round",
    )
    text = build_study(LoadSpec(urls=("http://h:1",), connections=3, duration_s=10.0), title="Shop", scenario=shop)
    found = cell_plan(text)
    assert found.scenario == shop.to_plan(Path())
    assert found.request.target == "http://h:1/"
    content = tomllib.loads(text)
    assert content["workload"]["asked"] == {
        "request": {"path": "/item", "headers": {"X": "1"}},
        "answer": {"status": 204},
    }


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (LoadSpec(urls=("https://h/",)), "URL: found 'https://h/', expected http://HOST"),
        (LoadSpec(urls=("unix:/a",)), "URL: found 'unix:/a'"),
        (LoadSpec(urls=(URL, URL)), "URL: found 2 URLs, expected one"),
        (LoadSpec(connect_to="127.0.0.1:1"), "found the address 127.0.0.1:1"),
        (LoadSpec(headers=(("A", "1"), ("a", "2"))), "headers: found 'a' twice"),
        (LoadSpec(body=b"\xff"), "body: found b'\\xff'"),
        (LoadSpec(body=b"{{int 1 2}}"), "body: found b'{{int 1 2}}'"),
        (LoadSpec(urls=(f"{URL}?{{{{x",)), "URL: found"),
    ],
)
def test_what_a_study_cannot_hold_is_told_with_the_way_that_can(spec: LoadSpec, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        build_study(complete(spec), title="A study")
    assert problem in caught.value.message
    assert "--command" in caught.value.hint
