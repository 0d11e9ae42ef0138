import pytest

from weir.asked_load import FLAGS, pipelining
from weir.cli.load_model import LoadFlags, chosen_load, default_duration_s
from weir.model.errors import UsageError
from weir.model.load import ClosedLoad, ExponentialThink, Load, OpenLoad, Session, Think

RAMP = ((0.0, 0.0), (50.0, 2000.0))


@pytest.mark.parametrize(
    ("flags", "load"),
    [
        (LoadFlags(), ClosedLoad(64)),
        (LoadFlags(connections=8), ClosedLoad(8)),
        (LoadFlags(users="200", loops=5), ClosedLoad(200, loops=5)),
        (LoadFlags(users="2000", ramp="50s", loops=5), ClosedLoad(RAMP, loops=5)),
        (LoadFlags(users="0s:0,50s:2000"), ClosedLoad(RAMP)),
        (LoadFlags(connections=3, think="1s", pace="100ms"), ClosedLoad(3, Think(1.0, 1.0), pace_s=0.1)),
        (LoadFlags(users="3", think="uniform:1s..3s"), ClosedLoad(3, Think(1.0, 3.0))),
        (LoadFlags(users="3", think="exp:500ms"), ClosedLoad(3, ExponentialThink(0.5))),
        (LoadFlags(rate="100"), OpenLoad(100.0, 64)),
        (LoadFlags(rate="0s:100,30s:1000", connections=5, poisson=True), OpenLoad(((0.0, 100.0), (30.0, 1000.0)), 5, "poisson")),
        (LoadFlags(rate="10", loops=3, think="1s"), OpenLoad(10.0, 64, session=Session(3, Think(1.0, 1.0)))),
    ],
)
def test_flags_make_the_load_they_name(flags: LoadFlags, load: Load) -> None:
    assert chosen_load(flags) == load


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (LoadFlags(rate="fast"), "-R/--rate: found fast, expected a number above 0, or points such as 0s:100,30s:1000"),
        (LoadFlags(rate="0"), "-R/--rate: found 0, expected a value above 0"),
        (LoadFlags(rate="30s:1,10s:2"), "-R/--rate: found 30s:1,10s:2, expected points in the order of their times"),
        (LoadFlags(rate="0s:1,5"), "expected a time before each value"),
        (LoadFlags(rate="0:1,5:2"), "-R/--rate: found 0:1,5:2"),
        (LoadFlags(rate="1", users="5"), "--users: found beside --rate"),
        (LoadFlags(rate="1", pace="1s"), "--pace: found beside --rate"),
        (LoadFlags(rate="1", think="1s"), "--think: found beside --rate without --loops"),
        (LoadFlags(poisson=True), "--poisson: found without --rate"),
        (LoadFlags(users="1.5"), "--users: found 1.5, expected a whole number"),
        (LoadFlags(users="5", connections=5), "--users: found beside -c/--connections"),
        (LoadFlags(ramp="5s"), "--ramp: found without --users"),
        (LoadFlags(users="0s:1,5s:2", ramp="5s"), "--ramp: found beside --users 0s:1,5s:2"),
        (LoadFlags(users="5", ramp="soon"), "--ramp: found 'soon'"),
        (LoadFlags(pace="0"), "--pace: found '0'"),
        (LoadFlags(think="long"), "--think: found 'long'"),
        (LoadFlags(think="uniform:3s..1s"), "--think: found 'uniform:3s..1s'"),
        (LoadFlags(think="uniform:3s"), "--think: found 'uniform:3s'"),
        (LoadFlags(think="normal:3s..4s"), "--think: found 'normal:3s..4s'"),
    ],
)
def test_flags_that_cannot_be_used_are_named(flags: LoadFlags, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        chosen_load(flags)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("load", "ramp", "requests", "until_failure", "lasts_s"),
    [
        (ClosedLoad(5), None, None, False, 10),
        (ClosedLoad(5), None, 100, False, 3600),
        (ClosedLoad(5, loops=2), None, None, False, 3600),
        (ClosedLoad(5), None, None, True, 3600),
        (ClosedLoad(RAMP), None, None, False, 50),
        (ClosedLoad(RAMP), None, None, True, 50),
        (ClosedLoad(RAMP), "50s", None, False, 60),
        (OpenLoad(10.0, 5, session=Session(2)), None, None, False, 10),
        (OpenLoad(((0.0, 5.0),), 5), None, None, False, 10),
    ],
)
def test_a_load_lasts_as_long_as_its_profile_or_until_it_is_over(
    load: Load, ramp: str | None, requests: int | None, until_failure: bool, lasts_s: float
) -> None:
    assert default_duration_s(load, ramp, requests, until_failure) == lasts_s


def test_requests_that_wait_for_no_answer_are_pipelined() -> None:
    assert pipelining(1024, ClosedLoad(900), FLAGS, keep_alive=True, has_scenario=False) == 1024
    assert pipelining(2, OpenLoad(10.0, 5), FLAGS, keep_alive=True, has_scenario=False) == 2
    assert pipelining(1, ClosedLoad(RAMP, loops=2), FLAGS, keep_alive=False, has_scenario=True) == 1


@pytest.mark.parametrize(
    ("depth", "load", "keep_alive", "has_scenario", "problem"),
    [
        (0, ClosedLoad(5), True, False, "--pipeline: found 0, expected a number from 1 to 1024"),
        (1025, ClosedLoad(5), True, False, "--pipeline: found 1025, expected a number from 1 to 1024"),
        (2, ClosedLoad(5), False, False, "--pipeline: found 2 beside --no-keepalive"),
        (2, ClosedLoad(5), True, True, "--pipeline: found 2 beside --scenario"),
        (2, ClosedLoad(5, Think(1.0, 1.0)), True, False, "--pipeline: found 2 beside users over time, --think, --loops or --pace"),
        (2, ClosedLoad(RAMP), True, False, "--pipeline: found 2 beside users over time"),
        (2, OpenLoad(10.0, 5, session=Session(2)), True, False, "--pipeline: found 2 beside --loops"),
        (1000, ClosedLoad(1001), True, False, "--pipeline: found 1000 on each of 1001 connections, expected at most 1,000,000 requests"),
    ],
)
def test_pipelining_beside_what_waits_is_refused(depth: int, load: Load, keep_alive: bool, has_scenario: bool, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        pipelining(depth, load, FLAGS, keep_alive=keep_alive, has_scenario=has_scenario)
    assert problem in str(caught.value)
