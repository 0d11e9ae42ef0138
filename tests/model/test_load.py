from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.model.load import (
    ClosedLoad,
    ExponentialThink,
    Load,
    LoadPlan,
    OpenLoad,
    Profile,
    Request,
    Session,
    Think,
    load_from_plan,
    store_load,
)

NUMBERS = st.floats(0.001, 1e6, allow_nan=False)
POINTS = st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=5).map(lambda points: tuple(sorted(points)))
PROFILES = st.one_of(NUMBERS, POINTS)
PAUSES = st.one_of(
    st.none(),
    NUMBERS.map(lambda s: Think(s, s)),
    st.tuples(NUMBERS, NUMBERS).map(lambda pair: Think(min(pair), max(pair))),
    NUMBERS.map(ExponentialThink),
)
COUNTS = st.integers(1, 1000)
LOADS = st.one_of(
    COUNTS.map(ClosedLoad),
    st.builds(ClosedLoad, POINTS, PAUSES, st.none() | COUNTS, st.none() | NUMBERS),
    st.builds(
        OpenLoad,
        PROFILES,
        COUNTS,
        st.sampled_from(["constant", "poisson"]),
        st.none() | st.builds(Session, COUNTS, PAUSES),
    ),
)


@given(LOADS)
def test_a_load_comes_back_from_its_plan(load: Load) -> None:
    assert load_from_plan(load.to_plan()) == load


@pytest.mark.parametrize("load", [ClosedLoad(20, has_pauses=True), ClosedLoad(20.0, Think(1.0, 1.0), has_pauses=True)])
def test_pauses_in_the_requests_are_stored_but_the_engine_does_not_get_them(load: ClosedLoad) -> None:
    found = load_from_plan(store_load(load))
    assert isinstance(found, ClosedLoad)
    assert found.has_pauses
    assert found.limits_throughput
    assert found.label.endswith(", with pauses")
    assert load.to_plan() == replace(load, has_pauses=False).to_plan()


def test_a_number_of_users_and_nothing_else_is_the_plain_form() -> None:
    assert ClosedLoad(20).to_plan() == {"closed": {"connections": 20}}
    assert OpenLoad(100.0, 4).to_plan() == {"open": {"rate_rps": 100.0, "connections": 4}}


def test_the_connections_of_users_are_the_most_there_ever_are() -> None:
    assert ClosedLoad(20).connections == 20
    assert ClosedLoad(((0.0, 0.0), (10.0, 99.5), (20.0, 3.0))).connections == 100


@pytest.mark.parametrize(
    ("load", "label"),
    [
        (ClosedLoad(20), "20 connections"),
        (ClosedLoad(20, requests_per_user=5, pace_s=0.5), "20 users, 5 requests each, one request in 0.5 s each"),
        (ClosedLoad(((0.0, 0.0), (50.0, 2000.0)), Think(1.0, 3.0)), "0 → 2000 users in 50 s, thinking 1 to 3 s"),
        (OpenLoad(100.0, 4), "100 req/s over 4 connections"),
        (
            OpenLoad(((0.0, 10.0), (30.0, 100.0)), 4, "poisson", Session(3, ExponentialThink(2.0))),
            "10 → 100 sessions/s in 30 s over 4 connections, Poisson arrivals, 3 requests each, thinking 2 s on average",
        ),
    ],
)
def test_a_load_is_named_by_what_it_is(load: Load, label: str) -> None:
    assert load.label == label


def test_a_plan_says_what_ends_it_only_where_something_does() -> None:
    request = Request("GET", "http://127.0.0.1/")
    plain = LoadPlan(request, ClosedLoad(1), 10.0).to_json()
    assert not {"requests", "until", "seed", "pipeline"} & plain.keys()
    ended = LoadPlan(request, ClosedLoad(1), 10.0, requests=5, until_first_failure=True, seed=7, pipeline=8).to_json()
    assert (ended["requests"], ended["until"], ended["seed"], ended["pipeline"]) == (5, "first_failure", 7, 8)


def test_several_targets_are_in_the_place_of_one() -> None:
    request = Request("GET", "http://a/")
    one = LoadPlan(request, ClosedLoad(2), 10.0)
    assert (one.title, one.to_json()["target"]) == ("http://a/", "http://a/")
    assert "targets" not in one.to_json()
    two = LoadPlan(request, ClosedLoad(2), 10.0, targets=("http://a/", "http://b/"))
    assert (two.title, two.to_json()["targets"]) == ("http://a/ http://b/", ["http://a/", "http://b/"])
    assert "target" not in two.to_json()


def test_a_plan_asks_for_kernel_timestamps_only_where_they_are_wanted() -> None:
    request = Request("GET", "http://127.0.0.1/")
    assert "kernel_timestamps" not in LoadPlan(request, ClosedLoad(1), 10.0).to_json()
    assert LoadPlan(request, ClosedLoad(1), 10.0, kernel_timestamps=True).to_json()["kernel_timestamps"] is True


def test_a_plan_asks_for_a_request_log_only_where_one_is_wanted() -> None:
    request = Request("GET", "http://127.0.0.1/")
    assert "request_log" not in LoadPlan(request, ClosedLoad(1), 10.0).to_json()
    assert LoadPlan(request, ClosedLoad(1), 10.0, request_log="/tmp/log").to_json()["request_log"] == "/tmp/log"


@pytest.mark.parametrize("value", [{}, {"bursty": {}}, {"closed": {"users": 1, "think": {"forever": 1}}}])
def test_what_is_no_load_is_refused(value: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"expected a closed or an open load|expected a think time"):
        load_from_plan(value)


def test_a_profile_is_a_number_or_points() -> None:
    points: Profile = ((0.0, 1.0), (1.0, 2.0))
    assert ClosedLoad(points).to_plan() == {"closed": {"users": [[0.0, 1.0], [1.0, 2.0]]}}


@pytest.mark.parametrize(
    ("load", "asks"),
    [
        (ClosedLoad(20), ClosedLoad(((0.0, 20.0), (4.0, 20.0), (4.0, 0.0)))),
        (ClosedLoad(20, requests_per_user=3), ClosedLoad(((0.0, 20.0), (4.0, 20.0), (4.0, 0.0)), requests_per_user=3)),
        (ClosedLoad(((0.0, 0.0), (8.0, 80.0))), ClosedLoad(((0.0, 0.0), (4.0, 40.0), (4.0, 0.0)))),
        (ClosedLoad(((2.0, 5.0), (4.0, 5.0), (4.0, 9.0))), ClosedLoad(((2.0, 5.0), (4.0, 5.0), (4.0, 0.0)))),
    ],
)
def test_users_of_a_load_that_is_answered_to_the_end_leave_at_its_time(load: ClosedLoad, asks: ClosedLoad) -> None:
    ending = LoadPlan(Request("GET", "http://127.0.0.1/"), load, 4.0, timeout_s=3.0).answered_to_the_end()
    assert ending.load == asks
    assert ending.duration_s == 7


@pytest.mark.parametrize(
    ("load", "asked", "due"),
    [
        (OpenLoad(100.0, 4), None, 400),
        (OpenLoad(100.0, 4), 50, 50),
        (OpenLoad(100.0, 4, session=Session(3)), None, 1200),
        (OpenLoad(((0.0, 0.0), (2.0, 100.0), (2.0, 10.0)), 4), None, 120),
    ],
)
def test_an_open_load_that_is_answered_to_the_end_has_as_many_requests_as_arrive_in_its_time(
    load: OpenLoad, asked: int | None, due: int
) -> None:
    ending = LoadPlan(Request("GET", "http://127.0.0.1/"), load, 4.0, requests=asked).answered_to_the_end()
    assert (ending.load, ending.requests) == (load, due)


def test_a_pipelined_load_ends_at_its_time() -> None:
    plan = LoadPlan(Request("GET", "http://127.0.0.1/"), ClosedLoad(20), 4.0, pipeline=8)
    assert plan.answered_to_the_end() == plan


@given(LOADS, NUMBERS)
def test_a_load_that_is_answered_to_the_end_has_no_more_users_than_before(load: Load, duration_s: float) -> None:
    ending = LoadPlan(Request("GET", "http://127.0.0.1/"), load, duration_s).answered_to_the_end()
    assert ending.load.connections <= load.connections
