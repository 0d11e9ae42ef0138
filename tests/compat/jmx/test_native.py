"""Tests thread groups as loads of weir."""

import csv
import io
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.compat.jmx.conftest import Read
from tests.support.jmx import assertion, constant_timer, data_set, element, get, group, plan, uniform_timer
from weir.compat.jmx.native import NativeLoad, list_native_loads
from weir.compat.jmx.read import read_plan
from weir.compat.study_export import format_scenario
from weir.model.load import ClosedLoad, Profile, Request, Think, value_at
from weir.scenario import read_scenario

SHOP = Path(__file__).parents[2] / "data" / "jmx" / "shop.jmx"
STUDIES = Path(__file__).parents[3] / "studies" / "jmeter"


def only(read: Read, *parts: str, **properties: str) -> NativeLoad:
    (native,) = list_native_loads(read(plan(*parts), **properties))
    return native


def users(native: NativeLoad) -> Profile:
    assert isinstance(native.plan.load, ClosedLoad)
    return native.plan.load.users


def loops(native: NativeLoad) -> int | None:
    assert isinstance(native.plan.load, ClosedLoad)
    return native.plan.load.requests_per_user


@pytest.mark.parametrize(
    ("name", "threads", "ramp_s", "asked"), [("ping", 2000.0, 50.0, 5), ("issue", 3000.0, 1.0, 30)]
)
def test_the_studys_settings_are_what_its_plans_say_unless_properties_say_otherwise(
    name: str, threads: float, ramp_s: float, asked: int
) -> None:
    path = STUDIES / f"mvc-vs-webflux-{name}.jmx"
    (article,) = list_native_loads(read_plan(path, {}))
    assert article.plan.load == ClosedLoad(((0.0, 0.0), (ramp_s, threads)), requests_per_user=asked)
    properties = {"threads": "20", "ramp": "1", "loops": "3", "host": "localhost", "port": "1234"}
    (scaled,) = list_native_loads(read_plan(path, properties))
    assert scaled.plan.load == ClosedLoad(((0.0, 0.0), (1.0, 20.0)), requests_per_user=3)
    assert scaled.plan.request == Request("GET", "http://localhost:1234")


def test_loops_count_all_requests_of_an_iteration(read: Read) -> None:
    assert (
        loops(
            only(
                read,
                group(
                    get(),
                    get(),
                    element(
                        "LoopController", "L", get(), LoopController__continue_forever=True, LoopController__loops=3
                    ),
                    loops=4,
                ),
            )
        )
        == 20
    )
    assert loops(only(read, group(get(), loops=-1))) is None


@pytest.mark.parametrize(
    ("values", "points"),
    [
        ({"threads": 5, "ramp": 0}, 5.0),
        ({"threads": 5, "ramp": 10}, ((0.0, 0.0), (10.0, 5.0))),
        ({"threads": 5, "ramp": 0, "scheduler": True, "delay": "3"}, ((0.0, 0.0), (3.0, 0.0), (3.0, 5.0))),
        ({"threads": 5, "ramp": 10, "scheduler": True, "delay": "3"}, ((0.0, 0.0), (3.0, 0.0), (13.0, 5.0))),
    ],
)
def test_threads_come_evenly_over_the_ramp(read: Read, values: dict[str, Any], points: Profile) -> None:
    assert users(only(read, group(get(), **values))) == points


def test_a_constant_wait_before_the_first_request_puts_all_beginnings_off(read: Read) -> None:
    native = only(read, group(get(), constant_timer("500"), threads=4, ramp=2))
    assert users(native) == ((0.0, 0.0), (0.5, 0.0), (2.5, 4.0))
    assert native.begins_s == 0.5


def test_a_random_wait_before_the_first_request_spreads_the_beginnings(read: Read) -> None:
    at_once = only(read, group(get(), uniform_timer("1000", "2000"), threads=4))
    assert users(at_once) == ((0.0, 0.0), (1.0, 0.0), (3.0, 4.0))
    # With a ramp of 4 s and a wait of up to 2 s, the beginnings have a trapezoidal distribution.
    profile = users(only(read, group(get(), uniform_timer("0", "2000"), threads=800, ramp=4)))
    assert isinstance(profile, tuple)
    assert [value_at(profile, t_s) for t_s in (0.0, 2.0, 3.0, 4.0, 6.0)] == pytest.approx([0, 200, 400, 600, 800])
    assert [t_s for t_s, _ in profile] == sorted(t_s for t_s, _ in profile)


def test_a_timer_waits_before_its_request_so_the_step_before_has_the_pause(read: Read) -> None:
    native = only(
        read, group(get("a"), get("b", below=constant_timer("100")), get("c", below=uniform_timer("10", "10")))
    )
    pauses = [
        None if step.think is None else (step.think.constant_s, step.think.uniform_s) for step in native.scenario.steps
    ]
    assert pauses == [(0.1, None), (None, [0.01, 0.02]), None]


def test_a_duration_ends_with_the_answers_to_what_was_asked_until_then(read: Read, tmp_path: Path) -> None:
    native = only(
        read, group(get(response_timeout="2000"), threads=3, loops=-1, scheduler=True, duration="10", delay="1")
    )
    assert native.plan.duration_s == 11.0
    load_plan = native.load_plan(tmp_path)
    assert load_plan.duration_s == 13.0
    assert isinstance(load_plan.load, ClosedLoad)
    assert value_at(load_plan.load.users, 12.0) == 0


def test_steps_of_one_name_are_told_apart(read: Read) -> None:
    native = only(read, group(get("a"), get("a"), get("b"), get("a")))
    assert [step.name for step in native.scenario.steps] == ["a", "a #2", "b", "a #3"]
    many = only(
        read,
        group(
            get("a"),
            get("a #3"),
            element("LoopController", "L", get("a"), LoopController__continue_forever=True, LoopController__loops=5000),
        ),
    )
    names = [step.name for step in many.scenario.steps]
    assert names[:4] == ["a", "a #3", "a #2", "a #4"]
    assert len(set(names)) == 5002


@pytest.mark.parametrize(
    ("given", "check"),
    [
        (assertion(16, "a.b"), {"body_matches": [r"a\.b"]}),
        (assertion(16 + 4, "a", "b"), {"body_lacks": ["a", "b"]}),
        (assertion(2, "a.b", "c"), {"body_matches": ["a.b", "c"]}),
        (assertion(2 + 32, "a", "b|c"), {"body_matches": ["(?:a)|(?:b|c)"]}),
        (assertion(2, r"^a[$]\$$"), {"body_matches": [r"^a[$]\$\n?\z"]}),
        (assertion(1, "a$|b"), {"body_matches": [r"\A(?:a\z|b)\z"]}),
        (assertion(1, "a|b"), {"body_matches": [r"\A(?:a|b)\z"]}),
        (assertion(8, "[]"), {"body_matches": [r"\A(?:\[\])\z"]}),
        (assertion(8, "201", field="response_code"), {"status": [201]}),
        (assertion(2 + 32, "^20[0-2]", "304", field="response_code"), {"status": [200, 201, 202, 304]}),
        (assertion(8, "404", field="response_code", Assertion__assume_success=True), {"status": [404]}),
        (
            assertion(16 + 4, "5", field="response_code"),
            {"status": [code for code in range(200, 400) if "5" not in str(code)]},
        ),
        (assertion(16, "x", Assertion__assume_success=True), {"body_matches": ["x"], "status": list(range(200, 600))}),
    ],
)
def test_an_assertion_is_a_check_that_holds_for_the_same_answers(
    read: Read, given: str, check: dict[str, object]
) -> None:
    native = only(read, group(get(below=given)))
    assert native.scenario.to_plan()["steps"][0]["check"] == check


def test_who_stops_on_an_error_leaves(read: Read) -> None:
    assert only(read, group(get(), on_sample_error="stopthread")).scenario.on_failure == "leave"
    assert only(read, group(get(), on_sample_error="continue")).scenario.on_failure == "continue"


def test_a_servers_certificate_is_not_looked_at(read: Read) -> None:
    native = only(read, group(get(protocol="https", port="")))
    assert native.plan.request.target == "https://127.0.0.1"
    assert native.plan.tls is not None
    assert native.plan.tls.insecure


def test_a_feeders_file_has_the_columns_that_requests_use(read: Read, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('id,text,unused\n12,"x ""y"", ü&",z\n')
    form = get("post", method="POST", given=[("t", "${text}", True)])
    again = get("again", method="PUT", given=[("i", "${id}", False)])
    native = only(read, group(get(path="/${id}"), form, again, data_set("a.csv")))
    rows = list(csv.DictReader(io.StringIO(native.files["a.csv"])))
    assert rows == [{"id": "12", "text encoded": "x+%22y%22%2C+%C3%BC%26", "id encoded again": "12"}]
    assert native.scenario.feeders["a"].at_end == "wrap"


def test_the_scenario_and_the_command_line_say_the_same_load(tmp_path: Path) -> None:
    (native,) = list_native_loads(read_plan(SHOP, {"threads": "7", "port": "8123"}))
    assert native.scenario_file == "customers.toml"
    (tmp_path / native.scenario_file).write_text(format_scenario(native.scenario))
    for name, content in native.files.items():
        (tmp_path / name).write_text(content)
    assert read_scenario(tmp_path / native.scenario_file) == native.scenario.to_plan(tmp_path)
    words = shlex.split(native.command)
    assert words[:3] == ["weir", "load", "http://127.0.0.1:8123"]
    assert words[3:7] == ["-c", "7", "--loops", "8"]
    assert words[-5:] == ["--scenario", "customers.toml", "--timeout", "5s", "--no-retry"]


def test_thread_groups_of_one_name_have_scenarios_of_their_own(read: Read) -> None:
    natives = list_native_loads(read(plan(group(get()), group(get()), group(get(), name="../é"))))
    assert [native.scenario_file for native in natives] == ["users.toml", "users2.toml", "é.toml"]


def test_a_pause_in_a_scenario_is_not_that_of_the_load(read: Read) -> None:
    native = only(read, group(get(), constant_timer("1")))
    assert isinstance(native.plan.load, ClosedLoad)
    assert native.plan.load.think is None
    assert Think(0.001, 0.001).to_plan() == native.scenario.to_plan()["steps"][0]["think"]
