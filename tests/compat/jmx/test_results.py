"""Tests JMeter's rows, tables and lines, made from request logs of a plan."""

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.compat.jmx.conftest import Read
from tests.support.jmx import assertion, get, group, plan
from tests.support.load_summary import load_end
from weir.compat.jmx.jtl import JTL_COLUMNS, write_jtl
from weir.compat.jmx.native import list_native_loads
from weir.compat.jmx.samples import GroupLog, Samples, collect_samples, judge_redirects
from weir.compat.jmx.summariser import Summariser
from weir.compat.reports import read_report
from weir.model.hdr import Hdr
from weir.model.load_records import Interval
from weir.model.request_log import NO_STEP, OUTCOMES, REQUEST_DTYPE

BEGAN_NS = 1_700_000_000_000_000_000
MS = 1_000_000


def log(*requests: dict[str, Any]) -> Any:
    """Returns a request log with times in milliseconds. By default a request succeeds and takes 1 ms."""
    found = np.zeros(len(requests), REQUEST_DTYPE)
    for row, given in zip(found, requests, strict=True):
        due = given.get("due", 0)
        moments = {"intended_ns": due, "written_ns": given.get("written", due), "first_byte_ns": given.get("first", due + 1),
                   "last_byte_ns": given.get("last", due + 1), "connect_ns": given.get("connect", 0)}  # fmt: skip
        for name, value in moments.items():
            row[name] = -1 if value is None else value * MS
        row["status"] = given.get("status", 200)
        row["outcome"] = OUTCOMES.index(given.get("outcome", "ok"))
        row["received_bytes"], row["body_bytes"], row["sent_bytes"] = (
            given.get("received", 100),
            given.get("body", 2),
            50,
        )
        row["user"], row["step"] = given.get("user", 0), given.get("step", 0)
    return found


def lost(outcome: str, **moments: Any) -> dict[str, Any]:
    return {"outcome": outcome, "status": 0, "received": 0, "body": 0, "first": None, "last": None} | moments


def jtl(samples: Samples, *, with_header: bool = True) -> list[dict[str, str]]:
    text = io.StringIO()
    write_jtl(samples, text, with_header=with_header)
    return list(csv.DictReader(io.StringIO(text.getvalue())))


def ran(read: Read, *groups: str, logs: list[Any]) -> Samples:
    natives = list_native_loads(read(plan(*groups)))
    return collect_samples(
        [GroupLog(native, BEGAN_NS, requests) for native, requests in zip(natives, logs, strict=True)]
    )


def test_a_row_says_of_a_request_what_jmeter_would(read: Read) -> None:
    samples = ran(
        read,
        group(get("Front page", path="/a?b=${__UUID}"), name="Group, of some"),
        logs=[log({"due": 5, "first": 25, "last": 45, "connect": 10})],
    )
    (row,) = jtl(samples)
    assert tuple(row) == JTL_COLUMNS
    assert row == {
        "timeStamp": "1700000000005", "elapsed": "40", "label": "Front page", "responseCode": "200", "responseMessage": "OK",
        "threadName": "Group, of some 1-1", "dataType": "text", "success": "true", "failureMessage": "", "bytes": "100", "sentBytes": "50",
        "grpThreads": "1", "allThreads": "1", "URL": "http://127.0.0.1:8080/a?b=${__UUID}", "Latency": "20",
        "IdleTime": "0", "Connect": "10",
    }  # fmt: skip


def test_a_connection_that_was_there_before_is_no_part_of_a_requests_time(read: Read) -> None:
    (row,) = jtl(ran(read, group(get()), logs=[log({"last": 1, "connect": 10})]))
    assert (row["elapsed"], row["Connect"]) == ("1", "0")


def test_failures_have_jmeters_codes_and_as_much_time_as_is_known(read: Read) -> None:
    requests = log(
        lost("connect", written=None, connect=30, step=NO_STEP),
        lost("timeout", due=1, written=2),
        lost("reset", due=2, written=4),
        lost("protocol", due=3, written=4, first=9),
        {"due": 4, "status": 500, "outcome": "check"},
    )
    rows = {row["timeStamp"][-1]: row for row in jtl(ran(read, group(get(response_timeout="1000")), logs=[requests]))}
    assert [(rows[n]["responseCode"].rpartition(".")[2], rows[n]["elapsed"]) for n in "01234"] == [
        ("HttpHostConnectException", "30"), ("SocketTimeoutException", "1001"), ("NoHttpResponseException", "2"),
        ("ClientProtocolException", "6"), ("500", "1"),
    ]  # fmt: skip
    assert rows["0"]["responseCode"].startswith("Non HTTP response code: ")
    assert rows["1"]["responseMessage"] == "Non HTTP response message: Read timed out"
    assert {row["success"] for row in rows.values()} == {"false"}
    assert {row["dataType"] for number, row in rows.items() if number != "4"} == {""}
    assert rows["4"]["responseMessage"] == "Internal Server Error"


def test_an_assertion_that_is_alone_is_named_where_it_failed(read: Read) -> None:
    wrong = {"outcome": "check"}
    alone, several, denied = (
        group(get(below=below))
        for below in (
            assertion(2, "o+k"),
            assertion(2, "a") + assertion(2, "b"),
            assertion(8 + 4, "200", field="response_code"),
        )
    )
    rows = jtl(ran(read, alone, several, denied, logs=[log(wrong), log(wrong), log(wrong)]))
    assert [row["failureMessage"] for row in rows] == [
        "Test failed: text expected to contain /o+k/", "", "Test failed: code expected not to equal /200/",
    ]  # fmt: skip


def test_what_was_in_flight_at_the_end_is_no_sample(read: Read) -> None:
    assert len(jtl(ran(read, group(get()), logs=[log({}, lost("unanswered", due=1))]))) == 1


def test_a_request_without_a_connection_is_the_step_that_its_user_would_have_done(read: Read) -> None:
    failed = lost("connect", written=None, step=NO_STEP)
    requests = log(
        failed | {"due": 1},
        {"due": 2, "step": 0},
        {"due": 3, "step": 1, "user": 1},
        failed | {"due": 4, "user": 1},
        failed | {"due": 5},
    )
    rows = jtl(ran(read, group(get("a"), get("b"), threads=2), logs=[requests]))
    assert [row["label"] for row in sorted(rows, key=lambda row: row["timeStamp"])] == ["a", "a", "b", "a", "b"]


def test_rows_of_all_groups_come_in_the_order_of_their_ends_and_count_the_threads_that_run(read: Read) -> None:
    first = group(get("a"), threads=2, ramp="${__P(ramp,2)}", name="A")
    second = group(get("b"), name="B", scheduler=True, delay="1")
    logs = [log({"last": 10}, {"due": 1000, "user": 1, "last": 1500}, {"last": 3000}), log({"due": 1000, "last": 1100})]
    rows = jtl(ran(read, first, second, logs=logs))
    assert [(row["label"], row["threadName"], row["grpThreads"], row["allThreads"]) for row in rows] == [
        ("a", "A 1-1", "1", "1"), ("b", "B 2-1", "1", "3"), ("a", "A 1-2", "2", "2"), ("a", "A 1-1", "1", "1"),
    ]  # fmt: skip


def test_no_requests_are_no_rows(read: Read) -> None:
    samples = ran(read, group(get()), logs=[log()])
    assert jtl(samples) == []


def test_what_is_written_is_read_by_the_audit(read: Read) -> None:
    samples = ran(read, group(get()), logs=[log(*({"due": 10 * n, "last": 10 * n + 5} for n in range(20)))])
    text = io.StringIO()
    write_jtl(samples, text, with_header=True)
    results = read_report(text.getvalue(), "weir's")
    assert results is not None
    (result,) = results
    assert (result.tool, result.requests) == ("JMeter", 20)
    assert result.mean_s is not None
    assert result.mean_s.value == pytest.approx(0.005)


def interval(end_s: float, times_ms: list[float], failed: int = 0) -> Interval:

    histogram = Hdr()
    for time_ms in times_ms:
        histogram.add(int(time_ms * MS))
    times = {"mean": sum(times_ms) / len(times_ms) * 1000, "max": max(times_ms) * 1000} if times_ms else {}
    return Interval.from_json({
            "index": 0, "start_s": end_s - 1, "end_s": end_s, "due": 0, "sent": 0, "completed": len(times_ms), "ok": len(times_ms),
            "failed": failed, "errors": {}, "in_flight": 0, "oldest_age_us": 0, "response_time_us": times,
            "histogram": histogram.to_text(),
        })  # fmt: skip


@pytest.mark.parametrize(
    ("length_s", "length"),
    [(2, "00:00:02 =    2.0"), (59.4, "00:00:59 =    0.1"), (3661, "01:01:01 =    0.0"), (0, "00:00:00 = ******")],
)
def test_a_summary_line_has_jmeters_columns(length_s: float, length: str) -> None:
    summariser = Summariser(1000.0)
    summariser.add(interval(1, [16, 460, 150.4], failed=1), 1001.0)
    (line,) = summariser.end(1000.0 + length_s)
    assert line == f"summary =      4 in {length}/s Avg:   209 Min:    16 Max:   460 Err:     1 (25.00%)"


def test_a_run_without_a_request_has_a_line_of_zeros() -> None:
    zeros = "summary =      0 in 00:00:00 = ******/s Avg:     0 Min:     0 Max:     0 Err:     0 (0.00%)"
    assert Summariser(1000.0).end(1000.0) == [zeros]


def test_a_short_run_has_one_line_and_a_long_one_has_one_every_half_minute_of_the_day() -> None:
    short = Summariser(1000.0)
    assert short.add(interval(1, [5]), 1001.0) == []
    assert [line[:16] for line in short.end(1002.0)] == ["summary =      1"]

    long = Summariser(1010.0)
    assert long.add(interval(1, [5]), 1011.0) == []
    assert [line[:16] for line in long.add(interval(10, [5, 7]), 1020.0)] == ["summary +      3"]
    assert long.add(interval(20, [5]), 1030.0) == []
    assert [line[:32] for line in long.add(interval(40, [5]), 1050.0)] == [
        "summary +      2 in 00:00:30 =  ", "summary =      5 in 00:00:40 =  ",
    ]  # fmt: skip
    assert [line[:16] for line in long.end(1055.0)] == ["summary =      5"]
    assert long.add(interval(47, []), 1085.0) == []


def test_a_file_that_rows_are_added_to_has_one_header(read: Read, tmp_path: Path) -> None:
    samples = ran(read, group(get()), logs=[log({})])
    path = tmp_path / "a.jtl"
    for with_header in (True, False):
        with path.open("a") as file:
            write_jtl(samples, file, with_header=with_header)
    assert [line[:9] for line in path.read_text().splitlines()] == ["timeStamp", "170000000", "170000000"]


@pytest.mark.parametrize(
    ("follows", "redirected", "validity", "count"),
    [
        ((True, True), 2, "suspect", "2"),
        ((True, False), 2, "suspect", "1"),
        ((False, False), 2, "valid", ""),
        ((True, True), 0, "valid", ""),
    ],
)
def test_a_load_in_which_jmeter_would_have_followed_redirects_is_suspect(
    read: Read, follows: tuple[bool, bool], redirected: int, validity: str, count: str
) -> None:
    samplers = [get(str(number), follow_redirects=one) for number, one in enumerate(follows)]
    (native,) = list_native_loads(read(plan(group(*samplers))))
    statuses = [302] * redirected + [200] * (2 - redirected)
    requests = log(*({"step": step, "status": status} for step, status in enumerate(statuses)))
    end = load_end({}, status={str(status): statuses.count(status) for status in set(statuses)})
    verdict = judge_redirects(native, end, requests if native.mixes_redirects else None).summary.verdict
    assert verdict.validity == validity
    expected = [f"{count} responses are redirects; JMeter would have followed them with further requests"]
    assert verdict.reasons == (expected if count else [])
