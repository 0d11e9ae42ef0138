"""Tests request logs of real loads: every request is in the log, and together they agree with the summary."""

from collections.abc import Callable
from pathlib import Path

import pytest

from weir.generators.engine import EngineLoad
from weir.generators.null_server import measure_on_null_server
from weir.model.errors import UsageError
from weir.model.load import ClosedLoad, LoadPlan, Request
from weir.model.load_records import FirstResponse, LoadSummary, RequestLogUse
from weir.model.request_log import OUTCOMES, read_requests


def plan(address: str, log: Path, requests: int | None = None) -> LoadPlan:
    return LoadPlan(
        Request("GET", f"http://{address}/"), ClosedLoad(4), 0.5, threads=2, requests=requests, request_log=str(log)
    )


def loaded(asked: LoadPlan) -> LoadSummary:
    with EngineLoad(asked) as load:
        return load.result().summary


def test_the_log_of_a_load_adds_up_to_its_summary(serve: Callable[..., str], tmp_path: Path) -> None:
    summary = loaded(plan(serve("null"), tmp_path / "log"))
    requests = read_requests(tmp_path / "log")
    counts = summary.requests
    assert len(requests) == counts.intended - counts.unsent == counts.ok + counts.unanswered
    assert summary.request_log == RequestLogUse(records=len(requests), lost=0)
    ok = requests[requests["outcome"] == OUTCOMES.index("ok")]
    assert len(ok) == counts.ok
    assert set(ok["status"]) == {200}
    assert int(requests["received_bytes"].sum()) == summary.bytes.received
    assert int(requests["body_bytes"].sum()) == summary.bytes.received_body
    times_us = (ok["last_byte_ns"] - ok["intended_ns"]) / 1e3
    assert times_us.mean() == pytest.approx(summary.response_time_us.mean, rel=2e-3)
    assert summary.read_time_us is not None
    assert ((ok["last_byte_ns"] - ok["first_byte_ns"]) / 1e3).mean() == pytest.approx(
        summary.read_time_us.mean, abs=1e-3
    )
    assert set(requests["user"]) == {0, 1, 2, 3}
    assert (ok["connect_ns"] > 0).sum() == 4


def test_the_first_answer_is_told(serve: Callable[..., str], tmp_path: Path) -> None:
    summary = loaded(plan(serve("null"), tmp_path / "log", requests=10))
    length = summary.bytes.received_body // 10
    assert summary.first_response == FirstResponse(status=200, server="", body_bytes=length)
    assert summary.other_length == 0


def test_the_load_that_finds_the_highest_rate_leaves_the_log_alone(serve: Callable[..., str], tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("kept")
    measure_on_null_server(plan(serve("null"), log), duration_s=0.3)
    assert log.read_text() == "kept"


def test_a_log_that_cannot_be_written_is_wrong_usage(serve: Callable[..., str], tmp_path: Path) -> None:
    nowhere = plan(serve("null"), tmp_path / "no" / "log")
    with EngineLoad(nowhere) as load, pytest.raises(UsageError, match=r"key request_log: .* cannot be written"):
        load.result()
