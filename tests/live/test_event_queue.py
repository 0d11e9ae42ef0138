"""Tests the queue between measurement and page: no call blocks, no list grows without limit, and data of past trials is
dropped."""

from dataclasses import replace
from typing import Any

import pytest

from tests.support.records import group, interval, sample, started
from weir.live import EventQueue, PageInfo, TrialEnded, TrialStarted
from weir.live.event_queue import MOST_RECORDS
from weir.model.load_records import LoadEvent


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def board(clock: Clock) -> EventQueue:
    return EventQueue(PageInfo("A load"), clock=clock)


def begin(board: EventQueue, number: int = 1) -> None:
    board.begin_trial(TrialStarted(number=number, name=f"stack {number}", point="hello", duration_s=10.0))
    board.on_start(started())


def told(board: EventQueue) -> dict[str, Any]:
    news = board.changes()
    assert news is not None
    return news


def test_what_was_put_is_told_once(board: EventQueue) -> None:
    begin(board)
    board.on_interval(interval(0, [1.0]))
    assert told(board)["points"]["rate_rps"] == [10]
    assert board.changes() is None


def test_something_is_told_every_second_so_that_times_go_on(board: EventQueue, clock: Clock) -> None:
    begin(board)
    told(board)
    clock.now_s += 0.9
    assert board.changes() is None
    clock.now_s += 0.1
    assert told(board)["elapsed_s"] == 1.0


def test_after_the_end_nothing_is_told_any_more(board: EventQueue, clock: Clock) -> None:
    board.end("over")
    assert told(board)["ended"] == "over"
    clock.now_s += 10
    assert board.changes() is None


def test_the_end_is_told_to_all_though_somebody_came_just_before(board: EventQueue) -> None:
    told_at_first = board.changes()
    board.end("over")
    assert board.snapshot()["ended"] == "over"
    assert told(board)["ended"] == "over"
    assert told_at_first is None


def test_a_load_that_nobody_looks_at_keeps_its_last_records_and_counts_all_requests(board: EventQueue) -> None:
    begin(board)
    one = interval(0, [1.0, 1.0], errors={"timeout": 1})
    intervals = 3 * MOST_RECORDS
    for index in range(intervals):
        board.on_interval(replace(one, index=index, start_s=index / 10, end_s=(index + 1) / 10))
    whole = board.snapshot()
    assert (whole["now"]["answered"], whole["now"]["failed"], whole["now"]["errors"]) == (
        2 * intervals,
        intervals,
        {"timeout": intervals},
    )
    known = [rate for rate in whole["points"]["rate_rps"] if rate is not None]
    assert len(known) * whole["points"]["step_s"] == pytest.approx(MOST_RECORDS / 10, abs=1)
    assert whole["points"]["rate_rps"][0] is None
    assert whole["trial"]["load_s"] == intervals / 10


def test_records_of_a_trial_that_is_over_do_not_reach_the_next_one(board: EventQueue) -> None:
    begin(board, 1)
    board.on_interval(interval(0, [1.0]))
    board.on_sample(sample(0.0, group()))
    board.end_trial(TrialEnded(validity="valid"))
    begin(board, 2)
    whole = board.snapshot()
    assert whole["trial"]["name"] == "stack 2"
    assert (whole["points"]["time_s"], whole["processes"], whole["now"]) == ([], [], None)
    assert [row["name"] for row in whole["trials"]] == ["stack 1"]


def test_records_that_come_before_their_trial_is_known_wait_for_it(board: EventQueue) -> None:
    """The page's thread may read the facts just before the trial begins, and the records just after."""
    begin(board, 1)
    board.snapshot()
    begin(board, 2)
    board.on_interval(interval(0, [1.0]))
    late = list(board._facts)
    board._facts.clear()
    assert board.snapshot()["now"] is None
    board._facts.extend(late)
    assert board.snapshot()["now"]["rate_rps"] == 10


def test_totals_begin_anew_with_each_trial(board: EventQueue) -> None:
    begin(board, 1)
    board.on_interval(interval(0, [1.0], errors={"reset": 3}))
    begin(board, 2)
    board.on_interval(interval(0, [1.0, 2.0]))
    now = board.snapshot()["now"]
    assert (now["answered"], now["failed"], now["errors"]) == (2, 0, {})


def test_events_of_a_load_are_told_as_steps(board: EventQueue) -> None:
    board.on_event(LoadEvent(t_s=1.25, kind="stalled", detail="0.3 s"))
    assert [step["text"] for step in board.snapshot()["steps"]] == ["at 1.2 s: stalled: 0.3 s"]


def test_a_load_is_being_measured_from_the_start_of_its_server_to_its_end(board: EventQueue) -> None:
    found = [board.is_measuring]
    begin(board)
    found.append(board.is_measuring)
    board.end_trial(TrialEnded(validity="valid"))
    found.append(board.is_measuring)
    assert found == [False, True, False]
