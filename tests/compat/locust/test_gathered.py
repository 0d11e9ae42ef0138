"""What workers report becomes intervals and figures: nothing is lost, and nobody is waited for who is gone."""

from typing import Any

import pytest

from weir.compat.locust.gathered import Gathered
from weir.compat.locust.recorder import MOST_TEXTS, OTHERS, Recorder
from weir.compat.locust.summary import MOST_STEPS, load_end
from weir.compat.locust.tally import Measured
from weir.model.histogram import bytes_of_text, counts_in
from weir.model.records import Interval

SECOND_NS = 1_000_000_000


class Clock:
    """A time that the test sets."""

    def __init__(self) -> None:
        self.ns = 0

    def __call__(self) -> int:
        return self.ns


def worker(clock: Clock) -> Recorder:
    recorder = Recorder(clock)
    recorder.start(0, SECOND_NS)
    return recorder


def news(recorder: Recorder, **more: Any) -> dict[str, Any]:
    return recorder.flushed() | {"users": 1, "cpu_s": 0.0} | more


def one(recorder: Recorder, clock: Clock, at_s: float, *, took_ms: float = 10, lag_ms: float = 0, error: str | None = None) -> None:
    clock.ns = int(at_s * SECOND_NS)
    number = recorder.begin(clock.ns)
    recorder.end(number, is_answered=True)
    status = 0 if error not in (None, "check") else 200
    measured = Measured(service_ns=int(took_ms * 1e6), lag_ns=int(lag_ms * 1e6), error=error, status=status, received_bytes=7)
    recorder.record("GET", "/", measured, error or "", clock.ns)


def test_an_interval_comes_when_every_worker_has_passed_it() -> None:
    clock = Clock()
    first, second = worker(clock), worker(clock)
    gathered = Gathered(2, 1.0)
    one(first, clock, 0.5)
    one(second, clock, 0.6)
    one(first, clock, 1.2)
    assert list(gathered.take(0, news(first))) == []
    clock.ns = 2 * SECOND_NS
    found = list(gathered.take(1, news(second)))
    assert [(interval.index, interval.completed) for interval in found] == [(0, 2)]
    clock.ns = 2 * SECOND_NS
    found += gathered.take(0, news(first))
    assert [(interval.index, interval.completed) for interval in found] == [(0, 2), (1, 1)]


def test_nobody_waits_for_a_worker_that_died_and_its_open_requests_are_unanswered() -> None:
    clock = Clock()
    first, second = worker(clock), worker(clock)
    gathered = Gathered(2, 1.0)
    second.begin(0)
    list(gathered.take(1, news(second)))
    one(first, clock, 0.5)
    clock.ns = 3 * SECOND_NS
    assert list(gathered.take(0, news(first))) == []
    assert [interval.completed for interval in gathered.lose(1)] == [1, 0, 0]
    end = load_end(gathered, target="http://h", duration_s=3.0, stopped="duration")
    assert end.summary.requests.unanswered == 1
    assert end.summary.verdict.validity == "invalid"
    assert "1 of 2 workers died" in end.summary.verdict.reasons[0]


def test_the_rest_of_a_load_is_told_with_its_true_end() -> None:
    clock = Clock()
    recorder = worker(clock)
    gathered = Gathered(1, 1.0)
    one(recorder, clock, 1.3)
    told: list[Interval] = [*gathered.take(0, news(recorder)), *gathered.rest(1.5)]
    assert [(interval.start_s, interval.end_s, interval.completed) for interval in told] == [(0, 1, 0), (1, 1.5, 1)]


def test_what_came_late_counts_in_the_interval_that_is_open() -> None:
    clock = Clock()
    recorder = worker(clock)
    gathered = Gathered(1, 1.0)
    clock.ns = 2 * SECOND_NS
    list(gathered.take(0, news(recorder)))
    recorder.record("GET", "/", Measured(5, status=200), at_ns=SECOND_NS // 2)
    assert [interval.completed for interval in [*gathered.take(0, news(recorder)), *gathered.rest(2.5)]] == [1]


def test_a_request_is_counted_once_and_by_what_came_of_it() -> None:
    clock = Clock()
    recorder = worker(clock)
    gathered = Gathered(1, 1.0)
    one(recorder, clock, 0.1, took_ms=10, lag_ms=5)
    one(recorder, clock, 0.2, took_ms=20, error="check")
    one(recorder, clock, 0.3, took_ms=500, error="timeout")
    intervals = [*gathered.take(0, news(recorder)), *gathered.rest(1.0)]
    (interval,) = intervals
    assert (interval.completed, interval.ok, interval.failed, interval.errors.timeout) == (2, 1, 2, 1)
    assert sum(counts_in(bytes_of_text(interval.histogram)).values()) == 2
    end = load_end(gathered, target="http://h", duration_s=1.0, stopped="duration")
    requests = end.summary.requests
    assert requests.intended == requests.ok + requests.failed + requests.unanswered + requests.unsent == 3
    assert end.summary.response_time_us.max == pytest.approx(20_000)
    assert end.summary.response_time_us.min == pytest.approx(15_000, rel=0.001)
    assert end.summary.service_time_us.min == pytest.approx(10_000, rel=0.001)
    figures = gathered.figures(1.0)
    # Locust counts what was never answered among the times as well.
    assert figures.total.max_response_time == 500
    assert (figures.num_requests, figures.num_failures) == (3, 2)
    assert figures.total.avg_response_time == pytest.approx((15 + 20 + 500) / 3)
    assert [(failure.error, failure.count) for failure in figures.failures] == [("check", 1), ("timeout", 1)]


def test_a_busy_worker_and_a_late_one_make_a_load_suspect() -> None:
    clock = Clock()
    recorder = worker(clock)
    gathered = Gathered(1, 1.0)
    one(recorder, clock, 0.1, took_ms=10, lag_ms=2)
    assert len([*gathered.take(0, news(recorder, cpu_s=0.9)), *gathered.rest(1.0)]) == 1
    verdict = load_end(gathered, target="http://h", duration_s=1.0, stopped="duration").summary.verdict
    assert verdict.validity == "suspect"
    assert verdict.kinds == ["busy", "lag"]
    assert "busy 90% of the time" in verdict.reasons[0]


def test_names_without_end_are_one_step_together_from_some_number_on() -> None:
    recorder = worker(Clock())
    gathered = Gathered(1, 1.0)
    for number in range(MOST_STEPS + 10):
        recorder.record("GET", f"/{number}", Measured(1, status=200), at_ns=0)
        recorder.record("GET", "/often", Measured(1, status=200), at_ns=0)
    assert [*gathered.take(0, news(recorder)), *gathered.rest(1.0)]
    steps = load_end(gathered, target="http://h", duration_s=1.0, stopped="duration").summary.steps
    assert steps is not None
    assert (len(steps), steps["GET /often"].ok, steps[OTHERS].ok) == (MOST_STEPS + 1, MOST_STEPS + 10, 11)


def test_messages_without_end_are_counted_together() -> None:
    recorder = worker(Clock())
    for number in range(MOST_TEXTS + 5):
        recorder.record("GET", "/", Measured(1, error="check", status=500), f"number {number}", at_ns=0)
        recorder.record_exception(f"number {number}", "trace")
    told = recorder.flushed()
    assert len(told["failures"]) == len(told["exceptions"]) == MOST_TEXTS + 1
    assert told["failures"][-1][2:4] == (OTHERS, 5)
