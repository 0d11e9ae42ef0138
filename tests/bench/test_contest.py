"""Ratios, CPU and bars from the rounds of a contest."""

from dataclasses import replace

import pytest

from bench.contest import Contest, Round, contest_table
from bench.latency import PacedRound, latency_bars
from bench.paced import QUANTILES, Paced
from bench.peers import WRK, Job
from bench.throughput import at_least, length_at, user_cpu_bar, weir_plan


def rounds(*throughputs_rps: float) -> list[Round]:
    return [Round(rps, int(rps), 0.5, 2.0, 0.1, 0.2, 5_000_000 + index) for index, rps in enumerate(throughputs_rps)]


CONTEST = Contest("GET, 64 connections", {"weir": rounds(200, 300, 500), "wrk": rounds(100, 300, 400)})


def test_ratios_are_taken_round_by_round() -> None:
    ratio = CONTEST.ratio("weir", "wrk")
    assert ratio is not None
    assert (ratio.median, ratio.low, ratio.high) == (1.25, 1.0, 2.0)


def test_cpu_of_a_request_is_that_of_all_rounds_together() -> None:
    assert CONTEST.cpu_user_us("weir") == 1500
    assert CONTEST.cpu_system_us("wrk") == 7500


def test_a_row_has_throughput_ratio_cpu_and_the_most_memory_of_any_round() -> None:
    assert contest_table([CONTEST]).rows[1] == [
        "GET, 64 connections", "wrk", "300 (100 to 400)", "1.25 (1.00 to 2.00)", "1875.00", "7500.00", "10%", "20%", "5.0",
    ]  # fmt: skip


@pytest.mark.parametrize(("bar", "reached"), [(1.25, True), (1.26, False)])
def test_a_bar_holds_the_median_ratio_against_what_is_asked(bar: float, reached: bool) -> None:
    assert at_least(CONTEST, "weir", WRK, bar).reached is reached


@pytest.mark.parametrize(("asleep_us", "reached"), [(0.57, True), (0.58, False)])
def test_user_cpu_is_held_against_wrks_on_the_same_machine(asleep_us: float, reached: bool) -> None:
    bar = user_cpu_bar("GET", asleep_us, 0.9, 1.0)
    assert bar.reached is reached
    assert bar.found == f"{asleep_us * 0.7:.2f} µs there: {asleep_us} µs where wrk takes 1.00; 0.90 µs with looking"
    assert user_cpu_bar("GET", asleep_us, 0.9, None).reached is None


def test_a_bar_that_is_missed_while_weir_has_time_to_spare_shows_what_those_reached_who_do_least() -> None:
    idle = [replace(one, load_idle=0.2, server_idle=0.03) for one in CONTEST.rounds["weir"]]
    fuller = [replace(one, server_idle=0.06) for one in CONTEST.rounds["wrk"]]
    contest = Contest("GET", {**CONTEST.rounds, "weir": idle, "wrk": fuller, "bare epoll loop": rounds(110, 300, 404)})
    found = at_least(contest, "weir", WRK, 1.3).found
    assert found.endswith(
        "the server is the limit, its CPU 3% idle (6% under wrk), weir's 20%; in the same rounds bare epoll loop 1.010"
    )
    assert at_least(contest, "weir", WRK, 1.2).found == "1.250 (1.000 to 2.000)"


def test_a_generator_that_looks_for_answers_is_free_and_one_that_handles_them_is_not() -> None:
    looking = [replace(one, load_idle=0.0, server_idle=0.03, busy_fraction=0.7) for one in CONTEST.rounds["weir"]]
    contest = Contest("GET", {**CONTEST.rounds, "weir": looking})
    assert (
        "the server is the limit, its CPU 3% idle (20% under wrk), weir's 30%"
        in at_least(contest, "weir", WRK, 1.3).found
    )
    full = [replace(one, busy_fraction=0.98) for one in looking]
    assert (
        at_least(Contest("GET", {**CONTEST.rounds, "weir": full}), "weir", WRK, 1.3).found == "1.250 (1.000 to 2.000)"
    )


def test_a_bar_against_a_generator_that_is_not_there_is_not_measured() -> None:
    assert at_least(Contest("GET", {"weir": rounds(1)}), "weir", WRK, 1.0).reached is None


def test_without_keep_alive_and_over_tls_weir_is_told_so() -> None:
    assert weir_plan(Job("close", 64), "http://h/", 1).keep_alive is False
    tls = weir_plan(Job("tls", 64), "https://h/", 1).tls
    assert tls is not None
    assert tls.insecure


def test_rounds_are_longer_and_fewer_where_many_connections_are_opened_within_them() -> None:
    assert [length_at(count, 15, 1) for count in (64, 1_024, 10_000)] == [(15, 1), (13, 2), (11, 4)]
    assert length_at(10_000, 2, 1) == (2, 4)


def paced(achieved_rps: float, time_us: float, lag_us: float | None = None) -> PacedRound:
    return PacedRound(Paced(achieved_rps, dict.fromkeys(QUANTILES, time_us)), lag_us)


def test_a_fixed_rate_has_bars_for_response_time_rate_and_at_ten_thousand_for_lag() -> None:
    measured = {"weir": [paced(10_000, 130, 40)] * 5, "floor": [paced(10_000, 100)] * 5}
    assert [bar.reached for bar in latency_bars(10_000, 10_000, measured)] == [False, True, True, True]
    assert len(latency_bars(1_000, 1_000, measured)) == 3


def test_a_rate_that_was_not_achieved_misses_its_bar() -> None:
    measured = {"weir": [paced(49_900, 100)] * 5, "floor": [paced(20_000, 100)] * 5}
    p50, p99, rate = latency_bars(50_000, 20_000, measured)
    assert (p50.reached, p99.reached, rate.reached) == (True, True, False)
    assert "the floor's at 20,000/s" in p50.text
