"""Tests the recorder that runs inside Locust, with gevent's greenlets and without Locust."""

import gc
import inspect
import sys
import weakref
from pathlib import Path
from time import monotonic_ns
from types import SimpleNamespace
from typing import Any

import gevent
import numpy as np
import pytest
from numpy.typing import NDArray

from weir.generators.scripted.lines import REQUEST
from weir.generators.scripted.locust_plugin import load_recorder
from weir.paths import find_locust_recorder


class Response:
    """Stands in for the response of one of Locust's HTTP clients."""

    def __init__(self, status: int | None) -> None:
        self.status_code = status


class Client:
    """Stands in for one of Locust's HTTP clients."""

    def request(self, seconds: float, *, fails: bool = False) -> float:
        """Answers after a time."""
        gevent.sleep(seconds)
        if fails:
            raise ValueError("no answer")
        return seconds


def build_recorder() -> Any:
    recorder = load_recorder(str(find_locust_recorder())).Recorder((Response,), lambda *facts: f"failed: {facts[1:]}")
    recorder.is_recording = True
    return recorder


@pytest.fixture
def recorder() -> Any:
    return build_recorder()


def record(recorder: Any, **changes: Any) -> None:
    """Calls the recorder as Locust's event `request` does."""
    facts = {
        "request_type": "GET", "name": "/", "response_time": 1.5, "response_length": 12, "response": Response(200),
        "exception": None, "context": {}, "start_time": 1.0, "url": "http://localhost/",
    }  # fmt: skip
    recorder.record_before(lambda **_: None)(**facts | changes)


def take(recorder: Any) -> tuple[NDArray[np.void], NDArray[np.int64], list[Any]]:
    requests, begun, outcomes = recorder.take()
    return np.frombuffer(requests, REQUEST), np.frombuffer(begun, np.int64), outcomes


def test_a_request_has_its_end_its_outcome_and_the_tools_figures(recorder: Any) -> None:
    earliest_ns = monotonic_ns()
    record(recorder)
    (request,), _, outcomes = take(recorder)
    assert earliest_ns <= request["end_ns"] <= monotonic_ns()
    assert (request["outcome"], request["response_time_ms"], request["lag_ns"], request["received_bytes"]) == (
        0,
        1.5,
        0,
        12,
    )
    assert outcomes == [("GET", "/", 200, None, True)]


def test_requests_with_the_same_outcome_share_it_and_it_is_taken_once(recorder: Any) -> None:
    record(recorder)
    record(recorder, name="/other")
    record(recorder)
    requests, _, outcomes = take(recorder)
    assert requests["outcome"].tolist() == [0, 1, 0]
    assert [name for _, name, *_ in outcomes] == ["/", "/other"]
    record(recorder)
    requests, _, outcomes = take(recorder)
    assert requests["outcome"].tolist() == [0]
    assert outcomes == []


def test_a_request_without_response_time_length_and_status_is_recorded(recorder: Any) -> None:
    record(recorder, response_time=None, response_length=None, response=Response(None))
    (request,), _, outcomes = take(recorder)
    assert np.isnan(request["response_time_ms"])
    assert request["received_bytes"] == 0
    assert outcomes == [("GET", "/", 0, None, True)]


def test_a_request_of_another_protocol_has_neither_response_nor_status(recorder: Any) -> None:
    recorder.record_before(lambda **_: None)(
        request_type="grpc", name="call", response_time=1, response_length=0, exception=None, more="facts"
    )
    record(recorder, response=SimpleNamespace(status_code=200))
    _, _, outcomes = take(recorder)
    assert outcomes == [("grpc", "call", 0, None, False), ("GET", "/", 0, None, False)]


def test_a_failed_request_has_the_kind_of_its_failure(recorder: Any) -> None:
    error = ValueError("wrong")
    record(recorder, response=Response(500), exception=error)
    record(recorder, response=SimpleNamespace(), exception=error)
    _, _, outcomes = take(recorder)
    assert [kind for *_, kind, _ in outcomes] == [f"failed: {(500, error)}", f"failed: {(0, error)}"]


def test_nothing_is_recorded_before_the_test_starts() -> None:
    recorder = build_recorder()
    recorder.is_recording = False
    record(recorder)
    assert [len(part) for part in take(recorder)] == [0, 0, 0]


def test_the_event_gets_the_request_and_its_answer_is_returned(recorder: Any) -> None:
    fire = recorder.record_before(lambda *arguments, **facts: (arguments, facts))
    facts = {"request_type": "GET", "name": "/", "response_time": 1, "response_length": 2, "exception": None}
    assert fire(True, **facts) == ((True,), facts)
    assert len(take(recorder)[0]) == 1


def test_an_error_of_the_event_ends_the_request_as_it_would_without_the_recorder(recorder: Any) -> None:
    def stop(**_: Any) -> None:
        raise KeyError("the user stops")

    with pytest.raises(KeyError, match="the user stops"):
        recorder.record_before(stop)(name="/")
    assert len(take(recorder)[0]) == 1


def test_an_error_while_a_request_is_recorded_is_printed_and_does_not_stop_the_user(
    recorder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda error: errors.append(error.exc_value))
    record(recorder, name=["not", "hashable"])
    assert [str(error) for error in errors] == ["unhashable type: 'list'"]
    record(recorder)
    assert len(take(recorder)[0]) == 1


def test_a_watched_method_answers_as_before_and_its_starts_are_recorded(recorder: Any) -> None:
    class Watched(Client):
        pass

    recorder.watch(Watched)
    assert Watched().request(0) == 0
    with pytest.raises(ValueError, match="no answer"):
        Watched().request(0, fails=True)
    _, begun, _ = take(recorder)
    assert begun[0] < begun[1]
    assert recorder.in_flight() == (0, None)
    assert recorder.unanswered == 0


def test_a_watched_method_keeps_its_name_signature_and_description(recorder: Any) -> None:
    class Watched(Client):
        pass

    recorder.watch(Watched)
    assert Watched().request.__name__ == "request"
    assert list(inspect.signature(Watched().request).parameters) == ["seconds", "fails"]
    assert Watched.request.__qualname__ == "Client.request"


def test_a_client_with_a_request_of_its_own_keeps_it_and_each_call_of_the_watched_one_is_recorded(
    recorder: Any,
) -> None:
    class Watched(Client):
        pass

    class Twice(Watched):
        def request(self, seconds: float, *, fails: bool = False) -> float:
            return super().request(seconds) + super().request(seconds, fails=fails) + 1

    recorder.watch(Watched)
    client = Twice()
    assert [client.request(0), client.request(0)] == [1, 1]
    assert Watched.request(client, 0) == 0
    assert len(take(recorder)[1]) == 5


def test_a_client_that_has_ended_is_collected(recorder: Any) -> None:
    class Watched(Client):
        pass

    recorder.watch(Watched)
    client = Watched()
    client.request(0)
    reference = weakref.ref(client)
    del client
    gc.collect()
    assert reference() is None


def test_the_requests_of_waiting_greenlets_are_in_flight_and_unanswered_if_they_are_stopped(recorder: Any) -> None:
    class Watched(Client):
        pass

    recorder.watch(Watched)
    users = [gevent.spawn(Watched().request, 60) for _ in range(3)]
    gevent.sleep(0)
    _, begun, _ = take(recorder)
    assert recorder.in_flight() == (3, begun[0])
    users[0].kill()
    assert recorder.in_flight() == (2, begun[1])
    assert recorder.unanswered == 1
    recorder.is_recording = False
    gevent.killall(users)
    assert recorder.in_flight() == (0, None)
    assert recorder.unanswered == 1


def test_the_lag_of_pauses_goes_to_the_next_request_of_the_same_greenlet(recorder: Any) -> None:
    class TaskSet:
        def _sleep(self, seconds: float) -> None:
            gevent.sleep(seconds)

    assert recorder.time_pauses(TaskSet)

    def pause_and_ask(name: str, pauses: int) -> None:
        for _ in range(pauses):
            TaskSet()._sleep(0)
        record(recorder, name=name)
        record(recorder, name=name)

    gevent.joinall(
        [gevent.spawn(pause_and_ask, "late", 2), gevent.spawn(pause_and_ask, "on time", 0)], raise_error=True
    )
    requests, _, outcomes = take(recorder)
    lags = {name: requests["lag_ns"][requests["outcome"] == number] for number, (_, name, *_) in enumerate(outcomes)}
    assert lags["late"][0] > 0
    assert lags["late"][1] == 0
    assert lags["on time"].tolist() == [0, 0]


def test_the_lag_of_a_user_that_has_ended_keeps_no_reference_to_it(recorder: Any) -> None:
    class TaskSet:
        def _sleep(self, seconds: float) -> None:
            gevent.sleep(seconds)

    recorder.time_pauses(TaskSet)
    user = gevent.spawn(TaskSet()._sleep, 0)
    user.join()
    references = sys.getrefcount(user)
    recorder.take()
    assert sys.getrefcount(user) == references - 1


def test_a_pause_that_ends_on_time_has_no_lag(recorder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class TaskSet:
        def _sleep(self, seconds: float) -> None:
            gevent.sleep(seconds)

    pauses: list[float] = []
    # The pause of 60 s ends at once, and so before it was due.
    monkeypatch.setattr(gevent, "sleep", pauses.append)
    recorder.time_pauses(TaskSet)
    TaskSet()._sleep(60)
    record(recorder)
    assert pauses == [60]
    assert take(recorder)[0]["lag_ns"].tolist() == [0]


def test_a_locust_that_pauses_in_another_way_is_recorded_without_lag(recorder: Any) -> None:
    class TaskSet:
        def _sleep(self, seconds: float) -> str:
            return f"slept {seconds}"

    assert not recorder.time_pauses(TaskSet)
    assert TaskSet()._sleep(60) == "slept 60"


def test_a_locust_without_its_private_pause_is_recorded_without_lag(recorder: Any) -> None:
    assert not recorder.time_pauses(Client)
    record(recorder)
    assert take(recorder)[0]["lag_ns"].tolist() == [0]


def test_a_python_that_cannot_load_the_recorder_is_named_with_what_is_expected(tmp_path: Path) -> None:
    library = tmp_path / "recorder.so"
    library.write_bytes(b"not a library")
    with pytest.raises(SystemExit, match=f"{sys.executable}: cannot load weir's recorder, expected CPython 3.10"):
        load_recorder(str(library))
