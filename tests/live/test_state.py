"""Tests the page's data, made from facts and records: the whole state and the changes."""

import doctest
from pathlib import Path
from typing import Any

import pytest

from tests.support.records import group, interval, sample, started
from weir.live import state as state_module
from weir.live.page_facts import PageInfo, Totals, TrialEnded, TrialStarted
from weir.live.state import MOST_STEPS, MOST_TRIALS, PageState, time_left_s

NOTHING = Totals()
ABOUT = PageInfo("Sync or async", "Which is better?")


def trial(number: int = 1, **more: Any) -> TrialStarted:
    asked: dict[str, Any] = {
        "total": 4,
        "block": 1,
        "blocks": 2,
        "name": "sanic",
        "point": "echo, 20 connections",
        "duration_s": 10.0,
        "planned_s": 15.0,
    }
    return TrialStarted(number=number, **asked | more)


def loading(number: int = 1) -> PageState:
    state = PageState(ABOUT)
    state.begin_trial(trial(number), 0.0)
    state.start_load(started(5_000_000_000), 2.0)
    return state


def test_a_page_that_knows_nothing_yet_says_what_it_is_about() -> None:
    whole = PageState(ABOUT, ["stop"]).snapshot(NOTHING, 0.0)
    assert whole["about"] == {"title": "Sync or async", "question": "Which is better?", "has_trials": True}
    assert (whole["phase"], whole["trial"], whole["now"], whole["processes"]) == ("preparing", None, None, [])
    assert whole["controls"] == ["stop"]


def test_a_trial_goes_from_its_start_over_its_load_to_its_end() -> None:
    state = PageState(ABOUT)
    phases = [state.phase]
    state.begin_trial(trial(), 0.0)
    phases.append(state.phase)
    state.start_load(started(), 0.0)
    phases.append(state.phase)
    state.end_trial(TrialEnded(validity="valid"), 0.0)
    phases.append(state.phase)
    state.end("over", 0.0)
    phases.append(state.phase)
    assert phases == ["preparing", "starting", "load", "between", "ended"]
    assert state.snapshot(NOTHING, 0.0)["ended"] == "over"


def test_the_trial_that_goes_on_is_told_with_its_place_in_the_run() -> None:
    state = loading(3)
    state.add_record(interval(12, [1.0]))
    told = state.snapshot(NOTHING, 3.0)["trial"]
    assert told == {
        "number": 3, "total": 4, "block": 1, "blocks": 2, "name": "sanic", "point": "echo, 20 connections", "duration_s": 10.0,
        "requests": None, "load_s": 1.3,
    }  # fmt: skip


def test_the_last_second_and_the_totals_are_told() -> None:
    state = loading()
    for index in range(10):
        state.add_record(interval(index, [2.0] * 5, queued=index))
    now = state.snapshot(Totals(answered=50, failed=2, errors={"timeout": 2}), 3.0)["now"]
    assert now["rate_rps"] == 50
    assert now["p50_ms"] == pytest.approx(2.0, rel=0.02)
    assert (now["in_flight"], now["queued"], now["oldest_ms"]) == (3, 9, 1.5)
    assert (now["answered"], now["failed"], now["errors"]) == (50, 2, {"timeout": 2})


def test_the_next_trial_begins_with_empty_charts_and_no_logs() -> None:
    state = loading()
    state.show_logs({"app": Path("app.log")}, 2.0)
    state.add_record(interval(0, [1.0]))
    state.add_record(sample(5.1, group()))
    assert state.snapshot(NOTHING, 3.0)["logs"] == ["app"]
    state.begin_trial(trial(2), 9.0)
    whole = state.snapshot(NOTHING, 9.0)
    assert (whole["points"]["time_s"], whole["now"], whole["processes"], whole["logs"]) == ([], None, [], [])


def test_samples_become_cpu_by_tier_on_the_time_axis_of_the_load() -> None:
    state = loading()
    # The load's clock starts at 5 s.
    for at_s, used_s in ((4.9, 0.0), (5.0, 0.1), (5.25, 0.35), (5.5, 0.475)):
        state.add_record(sample(at_s, group(cpu_s=used_s), group("postgres", tier="postgres")))
    assert state.snapshot(NOTHING, 3.0)["points"]["tiers"] == {"app": [0.75], "postgres": [0.0]}


def test_processes_are_told_with_their_threads_and_what_they_do() -> None:
    state = loading()
    state.add_record(sample(5.0, group(cpu_s=1.0, threads=8, pools={"worker": 3.0})))
    state.add_record(sample(6.0, group(cpu_s=1.5, threads=9, pools={"worker": 3.75})))
    (row,) = state.snapshot(NOTHING, 3.0)["processes"]
    assert (row["name"], row["tier"], row["processes"], row["threads"], row["cpus"]) == ("app", "app", 1, 9, 0.5)
    assert row["pools"] == [{"pool": "worker", "threads": 1, "doing": {"event_wait": 0.75}}]


def test_a_reading_that_comes_late_is_left_out() -> None:
    state = loading()
    for at_s, used_s in ((5.0, 0.0), (5.2, 0.2), (5.1, 0.1), (5.4, 0.4)):
        state.add_record(sample(at_s, group(cpu_s=used_s)))
    assert state.snapshot(NOTHING, 3.0)["points"]["tiers"] == {"app": [1.0]}


def test_what_trials_came_to_is_told_with_their_names() -> None:
    state = loading()
    state.end_trial(
        TrialEnded(
            validity="invalid", reasons=("skipped by the viewer",), throughput_rps=9.0, p50_us=1500.0, p99_us=2500.0
        ),
        12.0,
    )
    (row,) = state.snapshot(NOTHING, 12.0)["trials"]
    assert row == {
        "number": 1, "block": 1, "name": "sanic", "point": "echo, 20 connections", "validity": "invalid",
        "reasons": ("skipped by the viewer",), "throughput_rps": 9.0, "p50_ms": 1.5, "p99_ms": 2.5, "failed": None, "run": None,
    }  # fmt: skip


def test_news_carry_lists_only_when_something_came_to_them() -> None:
    state = loading()
    state.add_step("building", 3.0)
    assert state.changes(NOTHING, 3.0)["steps"] == [{"at_s": 3.0, "text": "building"}]
    assert "steps" not in state.changes(NOTHING, 4.0)
    state.end_trial(TrialEnded(validity="valid"), 5.0)
    assert len(state.changes(NOTHING, 5.0)["trials"]) == 1


def test_a_viewer_who_comes_takes_no_news_from_the_others() -> None:
    state = loading()
    state.add_record(interval(0, [1.0]))
    state.add_step("an event", 3.0)
    state.snapshot(NOTHING, 3.0)
    news = state.changes(NOTHING, 3.0)
    assert news["points"]["rate_rps"] == [10]
    assert news["steps"]


def test_lists_are_bounded() -> None:
    state = PageState(ABOUT)
    for number in range(1, 2 * MOST_TRIALS):
        state.begin_trial(trial(number), float(number))
        state.end_trial(TrialEnded(validity="valid"), float(number))
        state.add_step(str(number), float(number))
    whole = state.snapshot(NOTHING, 0.0)
    assert len(whole["trials"]) == MOST_TRIALS
    assert len(whole["steps"]) == MOST_STEPS
    assert whole["trials"][-1]["number"] == 2 * MOST_TRIALS - 1


@pytest.mark.parametrize(
    ("number", "total", "lengths_s", "in_trial_s", "left_s"),
    [
        # The first trial takes its planned time.
        (1, 4, [], 5.0, 55.0),
        (2, 4, [20.0], 5.0, 55.0),
        (2, 4, [20.0, 10.0], None, 30.0),
        # A trial that takes longer than the others has no negative remaining time.
        (4, 4, [10.0], 12.0, 0.0),
        (4, 4, [10.0], None, 0.0),
        (2, None, [10.0], 1.0, None),
    ],
)
def test_the_time_left_follows_from_the_trials_so_far(
    number: int, total: int | None, lengths_s: list[float], in_trial_s: float | None, left_s: float | None
) -> None:
    assert time_left_s(trial(number, total=total), lengths_s, in_trial_s) == left_s


def test_the_example_in_the_docstring_holds() -> None:
    found = doctest.testmod(state_module)
    assert (found.failed, found.attempted) == (0, 1)
