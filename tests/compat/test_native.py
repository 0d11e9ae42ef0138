"""A load in weir's own words says the same load: each plan goes through `weir load`'s own flags, and through a study, and comes back."""

import doctest
import random
import shlex
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weir.compat.conversion
import weir.compat.native
from tests.support.asked import plan_asked_for
from weir.compat.native import arguments_of, as_asked, command_of, duration_text, number_text
from weir.compat.native_study import study_of
from weir.load_values import duration_s
from weir.model.errors import UsageError
from weir.model.load import ClosedLoad, ExponentialThink, Load, LoadPlan, OpenLoad, Request, Session, Think, Tls
from weir.scenario import Check, Pause, Scenario, Step
from weir.study.study import study_from

URL = "http://127.0.0.1:8000/"
GET = Request("GET", URL)

LOADS: list[Load] = [
    ClosedLoad(400),
    ClosedLoad(8, Think(1.0, 1.0)),
    ClosedLoad(8, Think(0.0, 3.0), loops=5),
    ClosedLoad(8, ExponentialThink(0.25), pace_s=0.1),
    ClosedLoad(((0.0, 0.0), (50.0, 2000.0)), loops=5),
    ClosedLoad(((0.0, 1.0), (30.0, 20.0), (30.0, 10.0), (50.5, 0.0))),
    ClosedLoad(((5.0, 20.0),)),
    OpenLoad(1000.0, 64),
    OpenLoad(0.5, 3, "poisson"),
    OpenLoad(((0.0, 0.0), (10.0, 100.0)), 100, session=Session(3, Think(0.1, 0.3))),
]
PLANS = [
    *(LoadPlan(GET, load, 30.0) for load in LOADS),
    LoadPlan(GET, ClosedLoad(20), 3600.0, requests=200, threads=2, timeout_s=20.0),
    LoadPlan(GET, ClosedLoad(20), 0.25, timeout_s=0.0015, seed=7, until_first_failure=True, keep_alive=False),
    LoadPlan(GET, ClosedLoad(20), 1.5, pipeline=16, kernel_timestamps=True),
    LoadPlan(GET, ClosedLoad(20), 10.0, local_addresses=("127.0.0.2", "127.0.0.3"), address="127.0.0.1:81", cpus=(0,)),
    LoadPlan(GET, ClosedLoad(20), 10.0, targets=(URL, "http://127.0.0.1:8001/")),
    LoadPlan(Request("GET", "unix:/run/app.sock:/health"), ClosedLoad(2), 10.0),
    LoadPlan(Request("GET", "https://[::1]:8443/a?b=c"), ClosedLoad(2), 10.0, tls=Tls(insecure=True, server_name="a", resumption=False)),
    LoadPlan(Request("POST", f"{URL}x?y=1&z", (("Content-Type", "application/json"),), b'{"a": "it\'s\\n"}\n'), ClosedLoad(2), 10.0),
    LoadPlan(Request("PUT", f"{URL}x", (("X-A", "1"), ("X-A", "2: 3")), b""), ClosedLoad(2), 10.0),
    LoadPlan(Request("DELETE", f"{URL}x"), ClosedLoad(2), 10.0),
    LoadPlan(Request("GET", f"{URL}x", (), b"a body with GET"), ClosedLoad(2), 10.0),
]
STUDIES = [plan for plan in PLANS if plan.request.method != "PUT" and plan.request.target.startswith("http:")]
STUDIES = [plan for plan in STUDIES if not (plan.targets or plan.address or (plan.request.body or b"").endswith(b"\n"))]


def cell_plan(text: str) -> LoadPlan:
    """The load of the one cell of a study, as its trial makes it."""
    study = study_from(Path("study.toml"), text, tomllib.loads(text), None)
    (cell,) = study.cells(1)
    request = cell.workload.draw(study.file.external["server"].url, random.Random(0))
    return cell.plan(request, targets=(), duration_s=study.file.load.duration_s, interval_s=0.1, cpus=())


@pytest.mark.parametrize("module", [weir.compat.native, weir.compat.conversion])
def test_the_examples_in_docstrings_hold(module: object) -> None:
    found = doctest.testmod(module)  # type: ignore[arg-type]
    assert found.attempted > 0
    assert found.failed == 0


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.load.label)
def test_weir_load_reads_a_plan_back_from_its_command_line(plan: LoadPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    words = shlex.split(command_of(plan))
    assert words[:2] == ["weir", "load"]
    assert plan_asked_for(words[2:], monkeypatch) == plan


@pytest.mark.parametrize("plan", STUDIES, ids=lambda plan: plan.load.label)
def test_a_study_reads_a_plan_back_from_its_file(plan: LoadPlan) -> None:
    found = cell_plan(study_of(plan, title="A study"))
    # What a study says by itself: the generator's CPUs, the seed where none is given, and one right status.
    said = {"threads": plan.threads, "cpus": plan.cpus, "seed": plan.seed, "expected_status": plan.expected_status}
    assert found.expected_status == (200,)
    assert replace(found, **said) == plan  # type: ignore[arg-type]
    assert found.seed == (plan.seed or 1)


@settings(max_examples=25)
@given(
    rate=st.floats(1e-3, 1e6),
    users=st.lists(st.tuples(st.integers(0, 3_600_000), st.integers(0, 10_000)), min_size=1, max_size=5),
    duration=st.floats(1e-3, 1e6),
    timeout=st.floats(1e-3, 3600),
)
def test_numbers_survive_both_ways_exactly(rate: float, users: list[tuple[int, int]], duration: float, timeout: float) -> None:
    points = tuple(sorted((t_ms / 1000, float(count)) for t_ms, count in users))
    loads: list[Load] = [OpenLoad(rate, 7)]
    loads += [ClosedLoad(points)] if max(count for _, count in points) > 0 else []
    for load in loads:
        plan = LoadPlan(GET, load, duration, timeout)
        with pytest.MonkeyPatch.context() as patch:
            assert plan_asked_for(arguments_of(plan), patch) == plan
        found = cell_plan(study_of(plan, title="A study"))
        assert (found.load, found.duration_s, found.timeout_s) == (plan.load, plan.duration_s, plan.timeout_s)


@given(st.floats(1e-9, 1e9))
def test_a_duration_is_written_exactly(length_s: float) -> None:
    assert duration_s(duration_text(length_s), "") == length_s


@pytest.mark.parametrize(
    ("length_s", "text"), [(10.0, "10s"), (60.0, "1m"), (90.0, "90s"), (7200.0, "2h"), (0.5, "500ms"), (1.5, "1.5s"), (1e-7, "0.0000001s")]
)
def test_a_duration_reads_as_people_write_it(length_s: float, text: str) -> None:
    assert duration_text(length_s) == text


def test_a_number_has_no_exponent() -> None:
    assert [number_text(value) for value in (1e6, 1e-5, 0.1, 3)] == ["1000000", "0.00001", "0.1", "3"]


def test_what_the_engine_writes_by_itself_is_no_flag() -> None:
    headers = (("Host", "127.0.0.1:8000"), ("Content-Length", "3"), ("Connection", "close"), ("X-A", "1"))
    plan = LoadPlan(Request("POST", URL, headers, b"abc"), ClosedLoad(1), 10.0)
    assert arguments_of(plan) == [URL, "-c", "1", "-d", "10s", "-H", "Connection: close", "-H", "X-A: 1", "-b", "abc"]
    closing = replace(plan, keep_alive=False)
    assert "Connection: close" in arguments_of(plan)
    assert "Connection: close" not in arguments_of(closing)
    other = replace(plan, request=Request("GET", URL, (("Host", "elsewhere"),)))
    assert "Host: elsewhere" in arguments_of(other)


@pytest.mark.parametrize("load", LOADS[:6], ids=lambda load: load.label)
def test_a_load_that_waits_for_the_last_answers_is_asked_for_without_that(load: Load) -> None:
    plan = LoadPlan(GET, load, 60.0)
    assert plan.answered_to_the_end() != plan
    assert as_asked(plan.answered_to_the_end()) == plan


@pytest.mark.parametrize("body", [b"@file", b"\xff\xfe", b"a\0b", b"x" * 200_000])
def test_a_body_that_is_no_argument_is_said_to_be_in_a_file(body: bytes) -> None:
    plan = LoadPlan(Request("POST", URL, (), body), ClosedLoad(1), 10.0)
    assert arguments_of(plan)[-1] == "@body"
    assert arguments_of(plan, body_file="some/request.json")[-1] == "@some/request.json"


def test_a_command_line_is_quoted_for_a_shell() -> None:
    plan = LoadPlan(Request("POST", f"{URL}?a=1&b=2", (("X", "it's"),), b"$HOME `id`"), ClosedLoad(1), 10.0)
    assert "'http://127.0.0.1:8000/?a=1&b=2'" in command_of(plan)
    assert shlex.split(command_of(plan))[-1] == "$HOME `id`"


def test_a_scenario_stands_in_the_study_itself() -> None:
    shop = Scenario(
        steps=[
            Step("POST", "/login", body="{{word 8}}", extract={"token": {"json": "/token"}}),
            Step("GET", "/item", headers={"X": "1"}, check=Check(status=[204], json={"/a": 1}), think=Pause(constant_s=0.5)),
        ],
        cookies="round",
    )
    text = study_of(LoadPlan(Request("GET", "http://h:1"), ClosedLoad(3), 10.0), title="Shop", scenario=shop, objectives=["p99<50ms"])
    found = cell_plan(text)
    assert found.scenario == shop.to_plan(Path())
    assert found.request.target == "http://h:1/"
    content = tomllib.loads(text)
    assert content["objective"] == {"hold": ["p99<50ms"]}
    assert content["workload"]["asked"] == {"request": {"path": "/item", "headers": {"X": "1"}}, "answer": {"status": 204}}


@pytest.mark.parametrize(
    ("plan", "problem"),
    [
        (LoadPlan(Request("GET", "https://h/"), ClosedLoad(1), 1.0), "URL: found 'https://h/', expected http://HOST"),
        (LoadPlan(Request("GET", "unix:/a"), ClosedLoad(1), 1.0), "URL: found 'unix:/a'"),
        (LoadPlan(GET, ClosedLoad(2), 1.0, targets=(URL, URL)), "URL: found 2, expected one"),
        (LoadPlan(GET, ClosedLoad(2), 1.0, address="127.0.0.1:1"), "found the address 127.0.0.1:1"),
        (LoadPlan(Request("GET", URL, (("A", "1"), ("a", "2"))), ClosedLoad(1), 1.0), "headers: found 'a' twice"),
        (LoadPlan(Request("POST", URL, (), b"\xff"), ClosedLoad(1), 1.0), "body: found b'\\xff'"),
        (LoadPlan(Request("POST", URL, (), b" a"), ClosedLoad(1), 1.0), "body: found b' a'"),
        (LoadPlan(Request("POST", URL, (), b"{{int 1 2}}"), ClosedLoad(1), 1.0), "body: found b'{{int 1 2}}'"),
        (LoadPlan(Request("GET", f"{URL}?{{{{x"), ClosedLoad(1), 1.0), "URL: found"),
    ],
)
def test_what_a_study_cannot_ask_is_told_with_the_way_that_can(plan: LoadPlan, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        study_of(plan, title="A study")
    assert problem in caught.value.message
    assert "--command" in caught.value.hint
