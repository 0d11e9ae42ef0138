"""Tests intervals and summaries made from the reports of Locust's processes."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from weir.generators.scripted.lines import REQUEST, Ended, Line, News, Outcome, Started, Stopped
from weir.generators.scripted.recording import Recording
from weir.generators.scripted.summary import MOST_STEPS, OTHERS, summarize
from weir.model.hdr import bytes_of_text, counts_in
from weir.model.load_records import Interval, LoadEnd

START_NS = 1_000_000_000_000
Row = tuple[Outcome, int, float, int, int]


def at(seconds: float) -> int:
    return START_NS + round(seconds * 1e9)


def started(role: str = "local", at_s: float = 0.0) -> Started:
    return Started.model_validate(
        {"at_ns": at(at_s), "unix_ns": 0, "pid": 1, "role": role, "version": "Locust 2.40.0", "files": []}
    )


def row(
    at_s: float,
    *,
    took_ms: float | None = 1.0,
    lag_ms: float = 0,
    name: str = "/",
    kind: str | None = None,
    has_start: bool = True,
    is_part: bool = False,
) -> Row:
    outcome = Outcome("GET", name, 200 if kind in (None, "check") else 0, kind, has_start, is_part)
    return outcome, at(at_s), math.nan if took_ms is None else took_ms, round(lag_ms * 1e6), 10


def news(at_s: float, *rows: Row, begun: Sequence[int] = (), known: Sequence[Outcome] = (), **state: Any) -> News:
    """Returns a report. `known`: the outcomes that the process has sent before."""
    outcomes = list(dict.fromkeys([*known, *(outcome for outcome, *_ in rows)]))
    requests = np.array([(end_ns, outcomes.index(outcome), *rest) for outcome, end_ns, *rest in rows], REQUEST)
    fields = {
        "at_ns": at(at_s), "in_flight": 0, "cpu_s": 0.0, "peak_rss_bytes": 5, "outcomes": outcomes[len(known) :],
        "requests": requests.tobytes(), "begun": np.array(begun, np.int64).tobytes(),
    }  # fmt: skip
    return News.model_validate({**fields, **state})


def stopped(at_s: float) -> Stopped:
    return Stopped(record="stopped", at_ns=at(at_s))


ENDED = Ended(record="ended")


def take(recording: Recording, *lines: tuple[int, Line | None]) -> list[Interval]:
    return [interval for number, line in lines for interval in recording.take(number, line)]


def begin(roles: Sequence[str] = ("local",), interval_s: float = 1.0, *, measures_lag: bool = True) -> Recording:
    recording = Recording()
    recording.begin(START_NS, interval_s, measures_lag=measures_lag)
    assert take(recording, *((number, started(role)) for number, role in enumerate(roles))) == []
    return recording


def end(recording: Recording) -> LoadEnd:
    list(recording.finish())
    return summarize(recording, started(), target="http://h", stopped="duration", clock="")


def test_an_interval_is_complete_when_every_process_has_reported_beyond_it() -> None:
    recording = begin(("master", "worker", "worker"))
    lines = (0, news(0.1)), (1, news(1.05, row(0.5), row(1.01), begun=[at(0.4), at(1.0)], in_flight=1, oldest_ns=2000))
    assert take(recording, *lines) == []
    (interval,) = take(recording, (2, news(1.0, row(0.2, kind="check"), row(0.3, kind="reset"), in_flight=2)))
    assert (interval.index, interval.start_s, interval.end_s, interval.sent) == (0, 0.0, 1.0, 1)
    assert (interval.completed, interval.ok, interval.failed, interval.errors.reset, interval.errors.check) == (
        2,
        1,
        2,
        1,
        1,
    )
    assert (interval.in_flight, interval.oldest_age_us, interval.bytes_received) == (3, 2.0, 30)
    assert sum(counts_in(bytes_of_text(interval.histogram)).values()) == 2


def test_the_last_interval_ends_with_the_load_and_has_what_a_tear_down_asks() -> None:
    recording = begin()
    assert (
        len(
            take(recording, (0, news(1.3, row(0.9), row(1.2))), (0, stopped(1.5)), (0, news(9.0, row(8.0))), (0, ENDED))
        )
        == 1
    )
    assert [(one.start_s, one.end_s, one.completed) for one in recording.finish()] == [(1.0, 1.5, 2)]
    assert recording.duration_s == 1.5


def test_a_load_that_ends_with_an_interval_has_no_empty_one_behind_it() -> None:
    recording = begin()
    take(recording, (0, news(1.9, row(1.8))), (0, stopped(2.0)), (0, news(2.1, row(2.05))))
    assert [(one.start_s, one.end_s, one.completed) for one in recording.finish()] == [(1.0, 2.0, 2)]


def test_a_master_that_goes_on_after_its_workers_makes_the_load_no_longer() -> None:
    recording = begin(("master", "worker"))
    assert (
        len(
            take(
                recording,
                (0, news(1.4)),
                (1, news(1.4, row(1.1))),
                (1, stopped(1.5)),
                (0, news(1.6)),
                (0, news(4.0, row(3.9))),
            )
        )
        == 1
    )
    assert [(one.start_s, one.end_s, one.completed) for one in recording.finish()] == [(1.0, 1.5, 2)]


def test_a_worker_that_has_no_users_yet_is_waited_for() -> None:
    recording = begin(("master", "worker"))
    assert take(recording, (2, news(0.5)), (1, news(2.5)), (0, news(2.5))) == []
    assert len(take(recording, (2, started("worker", 1.0)), (2, news(1.1)))) == 1


def test_what_comes_late_counts_in_the_interval_that_is_open() -> None:
    recording = begin()
    assert len(take(recording, (0, news(2.0)))) == 2
    take(recording, (0, news(2.2, row(0.5), begun=[at(0.4)])), (0, stopped(2.5)))
    assert [(one.sent, one.completed) for one in recording.finish()] == [(1, 1)]


def test_nobody_waits_for_a_process_that_is_lost_and_its_requests_in_flight_are_unanswered() -> None:
    recording = begin(("master", "worker", "worker"))
    assert take(recording, (0, news(3.1)), (1, news(3.1, row(0.5))), (2, news(0.5, in_flight=2))) == []
    assert [interval.in_flight for interval in take(recording, (2, None))] == [0, 0, 0]
    take(recording, (1, stopped(3.2)), (1, ENDED), (1, None), (0, ENDED), (0, None))
    summary = end(recording).summary
    assert (summary.requests.unanswered, summary.requests.sent, summary.duration_s) == (2, 3, 3.2)
    assert summary.verdict.validity == "invalid"
    assert "1 of 3 processes of Locust died" in summary.verdict.reasons[0]


def test_a_process_in_which_no_test_started_is_no_loss() -> None:
    recording = Recording()
    assert take(recording, (0, news(0.5)), (0, None)) == []
    assert not recording.processes[0].is_lost


def test_response_times_have_the_lag_and_only_whole_answers_have_times() -> None:
    recording = begin()
    rows = (
        row(0.1, took_ms=10, lag_ms=5),
        row(0.2, took_ms=20, kind="check"),
        row(0.3, took_ms=500, kind="timeout"),
        row(0.4, took_ms=None),
    )
    take(recording, (0, news(0.9, *rows, unanswered=1)), (0, stopped(1.0)))
    summary = end(recording).summary
    requests = summary.requests
    assert requests.intended == requests.ok + requests.failed + requests.unanswered + requests.unsent == 5
    assert (requests.ok, requests.completed, summary.errors.timeout, summary.errors.check) == (2, 3, 1, 1)
    assert summary.response_time_us.max == pytest.approx(20_000)
    assert summary.response_time_us.min == pytest.approx(15_000, rel=0.001)
    assert summary.service_time_us.min == pytest.approx(10_000, rel=0.001)
    assert summary.verdict.kinds == ["failed", "lag"]


def test_a_lag_that_is_not_measured_stays_empty() -> None:
    recording = begin(measures_lag=False)
    take(recording, (0, news(0.9, row(0.1))), (0, stopped(1.0)))
    without = end(recording)
    assert without.summary.schedule_lag_us.p50 is None
    assert "schedule_lag_ns" not in without.histograms
    assert without.summary.verdict.validity == "valid"


def test_a_busy_process_makes_a_load_suspect_and_the_busiest_counts() -> None:
    recording = begin(("master", "worker", "worker"))
    take(recording, (0, news(1.0, cpu_s=2.0)), (1, news(1.0, row(0.1), cpu_s=0.9)), (2, news(1.0, cpu_s=0.1)))
    take(recording, *((number, stopped(1.0)) for number in range(3)))
    summary = end(recording).summary
    assert summary.generator.threads == 2
    assert summary.generator.busy_fraction == pytest.approx(0.9)
    assert summary.generator.cpu_fraction == pytest.approx(0.5)
    assert summary.verdict.kinds == ["busy"]
    assert "busy 90% of the time" in summary.verdict.reasons[0]


def test_requests_of_other_clients_are_counted_and_noted() -> None:
    recording = begin()
    take(
        recording, (0, news(0.9, row(0.5, took_ms=200, has_start=False), row(0.6), begun=[at(0.55)])), (0, stopped(1.0))
    )
    (interval,) = recording.finish()
    assert interval.sent == 2
    verdict = end(recording).summary.verdict
    assert (verdict.validity, verdict.kinds) == ("valid", ["clients"])
    assert "1 of 2 requests" in verdict.reasons[0]


def test_a_request_refers_to_an_earlier_outcome_of_its_own_process() -> None:
    recording = begin(("worker", "worker"))
    first, second = row(0.1, name="/first"), row(0.1, name="/second", kind="check")
    take(recording, (0, news(0.2, first, second)), (1, news(0.2, second, row(0.2, name="/first", took_ms=5))))
    take(recording, (0, news(0.4, second, known=[first[0], second[0]])), (0, stopped(1.0)), (1, stopped(1.0)))
    steps = end(recording).summary.steps
    assert steps is not None
    assert {name: (step.ok, step.failed) for name, step in steps.items()} == {
        "GET /first": (2, 0),
        "GET /second": (0, 3),
    }
    assert steps["GET /first"].response_time_us.max == pytest.approx(5000)
    assert steps["GET /second"].response_time_us.max == pytest.approx(1000)


def test_a_part_of_a_request_counts_only_under_its_name() -> None:
    recording = begin(measures_lag=False)
    rows = row(0.5, took_ms=200, has_start=False), row(0.5, took_ms=300, name="page-0", has_start=False, is_part=True)
    take(recording, (0, news(0.9, *rows, in_flight=None)), (0, stopped(1.0)))
    (interval,) = recording.finish()
    assert (interval.sent, interval.completed, interval.bytes_received) == (1, 1, 10)
    summary = end(recording).summary
    assert summary.steps is not None
    assert set(summary.steps) == {"GET /", "GET page-0"}
    assert summary.response_time_us.max == pytest.approx(200_000)
    assert summary.verdict.kinds == []


def test_a_load_without_a_request_is_invalid() -> None:
    recording = begin(("master",))
    take(recording, (0, stopped(1.0)))
    summary = end(recording).summary
    assert summary.verdict.kinds == ["no_response"]
    assert summary.generator.threads == 1


def test_names_without_end_are_one_step_together_from_some_number_on() -> None:
    recording = begin()
    rows = [row(0.1, name=f"/{number}") for number in range(MOST_STEPS + 10)] + [row(0.1, name="/often")] * 2
    take(recording, (0, news(0.9, *rows)), (0, stopped(1.0)))
    steps = end(recording).summary.steps
    assert steps is not None
    assert (len(steps), steps["GET /often"].ok, steps[OTHERS].ok) == (MOST_STEPS + 1, 2, 11)
