"""Tests real reports of the tools, and texts that only resemble reports."""

from contextlib import suppress
from pathlib import Path

import pytest

from weir.audit.laws import find_violations
from weir.compat.reports import ReportError, read_report
from weir.compat.reports.failures import classify_failure
from weir.compat.reports.tables import read_locust_failures
from weir.model.reported_result import ReportedResult

REPORTS = Path(__file__).parent.parent / "data" / "reports"


def only(name: str) -> ReportedResult:
    results = read_report((REPORTS / name).read_text(), name)
    assert results is not None
    (result,) = results
    return result


def test_wrk() -> None:
    result = only("wrk.txt")
    assert (result.tool, result.users, result.requests, result.failed) == ("wrk", 8, 122_265, 0)
    assert result.throughput_rps is not None
    assert result.throughput_rps.value == 122_041.66
    assert result.mean_s is not None
    assert (result.mean_s.value, result.mean_s.rounding) == pytest.approx((189.92e-6, 0.005e-6))
    assert {q: figure.value for q, figure in result.quantiles_s.items()} == pytest.approx(
        {0.5: 33e-6, 0.75: 43e-6, 0.9: 332e-6, 0.99: 2.93e-3}
    )


def test_wrk2_is_told_from_wrk_and_bound_by_no_connections() -> None:
    result = only("wrk2.txt")
    assert (result.tool, result.users, result.requests) == ("wrk2", None, 1968)
    assert result.quantiles_s.keys() == {0.5, 0.75, 0.9, 0.99, 0.999, 0.9999, 0.99999}
    # wrk2 rounds percentiles up, so they may exceed the Max of its table.
    assert result.max_s is not None
    assert result.max_s.value == pytest.approx(23.36e-3)
    assert find_violations(result) == ()


def test_h2load() -> None:
    result = only("h2load.txt")
    assert (result.tool, result.users, result.requests, result.failed) == ("h2load", 8, 34_023, 0)
    assert result.duration_s is not None
    assert result.throughput_rps is not None
    assert (result.duration_s.value, result.throughput_rps.value) == (1.0, 34_023.0)
    assert result.mean_s is not None
    assert result.mean_s.value == pytest.approx(234e-6)
    assert find_violations(result) == ()


def test_h2loads_columns_go_by_their_names() -> None:
    text = (REPORTS / "h2load.txt").read_text()
    head, times = "min         max         mean         sd        +/- sd", "time for request:"
    newer = text.replace(
        head, "min         max         median         p95         p99         mean         sd        +/- sd"
    )
    lines = [
        f"{times} 26us 12.29ms 60us 1.10ms 3.20ms 234us 828us 94.00%" if line.startswith(times) else line
        for line in newer.splitlines()
    ]
    results = read_report("\n".join(lines), "newer")
    assert results is not None
    assert {q: figure.value for q, figure in results[0].quantiles_s.items()} == pytest.approx(
        {0.5: 60e-6, 0.95: 1.1e-3, 0.99: 3.2e-3}
    )
    assert results[0].mean_s is not None
    assert results[0].mean_s.value == pytest.approx(234e-6)


@pytest.mark.parametrize(
    ("name", "requests", "failed", "errors"),
    [
        # wrk counts only requests with a response.
        ("wrk-errors.txt", 0, 0, {"reset": 5537}),
        ("hey-errors.txt", 6, 6, {"reset": 6}),
        ("ab-errors.txt", 9638, 9638, {"reset": 9638}),
        ("oha-errors.json", 20, 20, {"reset": 20}),
        ("k6-errors.json", 100, 100, {"reset": 100}),
        ("h2load-errors.txt", 23_587, 23_587, {"check": 23_587}),
    ],
)
def test_what_failed_is_told_by_kind(name: str, requests: int, failed: int, errors: dict[str, int]) -> None:
    result = only(name)
    assert (result.requests, result.failed, result.errors) == (requests, failed, errors)


def test_a_load_without_an_answer_has_no_times() -> None:
    for name in ("wrk-errors.txt", "hey-errors.txt"):
        result = only(name)
        assert (result.mean_s, result.max_s, result.quantiles_s) == (None, None, {})


def test_wrks_timeouts_are_answers_that_came_too_late() -> None:
    text = (REPORTS / "wrk.txt").read_text().replace(
        "Requests/sec: ", "  Socket errors: connect 1, read 2, write 3, timeout 4\n  Non-2xx or 3xx responses: 5\nRequests/sec: "
    )  # fmt: skip
    results = read_report(text, "wrk")
    assert results is not None
    assert (results[0].requests, results[0].failed) == (122_265, 9)
    assert results[0].errors == {"connect": 1, "reset": 5, "timeout": 4, "check": 5}


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ('Get "http://h/": dial tcp 127.0.0.1:1: connect: connection refused', "connect"),
        ('Get "http://h/": dial tcp 10.0.0.1:1: i/o timeout', "connect"),
        ("Non HTTP response code: org.apache.http.conn.HttpHostConnectException", "connect"),
        ("ConnectionRefusedError(111, 'Connection refused')", "connect"),
        ('Get "http://h/": context deadline exceeded (Client.Timeout exceeded while awaiting headers)', "timeout"),
        ("Non HTTP response code: java.net.SocketTimeoutException", "timeout"),
        ("timeout('timed out')", "timeout"),
        ("connection reset by peer", "reset"),
        ('Get "http://h/": EOF', "reset"),
        ("Non HTTP response code: org.apache.http.NoHttpResponseException", "reset"),
        ("BadStatusCode('http://h/', code=500)", "check"),
        ("HTTPParseError('Expected HTTP/, RTSP/ or ICE/', 8)", "protocol"),
    ],
)
def test_the_kind_of_a_failure_is_seen_from_its_words(said: str, kind: str) -> None:
    assert classify_failure(said) == kind


def test_hey() -> None:
    result = only("hey.txt")
    assert result.tool == "hey"
    assert result.statuses.keys() == {"200"}
    assert result.requests == result.statuses["200"]
    assert result.quantiles_s.keys() == {0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99}
    assert find_violations(result) == ()


def test_ab() -> None:
    result = only("ab.txt")
    assert (result.tool, result.users, result.requests) == ("ab", 8, 3000)
    assert result.max_s is not None
    assert result.max_s.value == 0.002
    assert find_violations(result) == ()


def test_oha() -> None:
    result = only("oha.json")
    assert result.tool == "oha"
    assert result.requests == result.statuses["200"] + (result.failed or 0)
    assert 0.5 in result.quantiles_s


def test_k6() -> None:
    result = only("k6.json")
    assert (result.tool, result.users) == ("k6", 8)
    assert result.quantiles_s.keys() == {0.5, 0.9, 0.95}
    assert (result.requests, result.failed, result.received_bytes) == (13_004, 0, 858_264)
    assert find_violations(result) == ()


def test_the_summary_that_weirs_script_has_k6_write_says_how_long_it_took() -> None:
    result = only("k6-errors.json")
    assert result.duration_s is not None
    assert result.duration_s.value > 0
    assert result.quantiles_s.keys() == {0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999}
    assert find_violations(result) == ()


def test_k6_leaves_out_what_it_has_no_sample_of() -> None:
    results = read_report('{"root_group": {}, "metrics": {}}', "k6")
    assert results is not None
    (result,) = results
    assert (result.requests, result.mean_s, result.quantiles_s) == (0, None, {})


def test_what_oha_had_no_answer_to_at_the_end_is_no_failure_of_any_kind() -> None:
    result = only("oha.json")
    assert (result.failed, result.errors) == (8, {})


def test_locust() -> None:
    result = only("locust_stats.csv")
    assert (result.tool, result.requests, result.failed) == ("Locust", 4208, 0)
    assert result.mean_s is not None
    assert result.mean_s.value == pytest.approx(1.3752e-3, rel=1e-3)
    assert 0.999 in result.quantiles_s
    assert find_violations(result) == ()


def test_jmeters_samples_show_who_came_when_and_how_often_each_asked() -> None:
    rows = ["timeStamp,elapsed,label,responseCode,threadName,success,bytes"]
    for thread in range(10):
        rows += [
            f"{1000 * thread + 50 * loop},50,ping,200,users 1-{thread + 1},{str(loop != 2).lower()},100"
            for loop in range(3)
        ]
    results = read_report("\n".join(rows) + "\n", "samples.jtl")
    assert results is not None
    (result,) = results
    assert (result.users, result.loops, result.ramp_s, result.requests, result.failed) == (10, 3, 9.0, 30, 10)
    assert [violation.kind for violation in find_violations(result)] == ["capped"]


def test_what_jmeter_wrote_of_every_request_gives_statuses_and_quantiles() -> None:
    result = only("samples.jtl")
    assert (result.requests, result.failed, result.statuses, result.received_bytes) == (26, 0, {"200": 26}, 26 * 66)
    assert result.quantiles_s[0.5].value == 0.031
    assert result.quantiles_s[0.9999] == result.max_s
    assert find_violations(result) == ()


def test_jmeters_failures_have_a_status_or_an_exception() -> None:
    rows = ["timeStamp,elapsed,label,responseCode,threadName,success,bytes"]
    rows += [
        f"{at},5,a,{code},u 1-1,{'true' if code == '200' else 'false'},9"
        for at, code in enumerate(("200", "500", "503"))
    ]
    rows += ["3,5,a,Non HTTP response code: java.net.SocketTimeoutException,u 1-1,false,0"]
    results = read_report("\n".join(rows) + "\n", "samples.jtl")
    assert results is not None
    assert results[0].errors == {"check": 2, "timeout": 1}
    assert results[0].statuses == {"200": 1, "500": 1, "503": 1}


def test_locusts_failures_are_in_a_table_of_their_own() -> None:
    assert read_locust_failures((REPORTS / "locust_failures.csv").read_text()) == {"protocol": 540}


def test_jmeters_reports_have_a_claim_for_each_label() -> None:
    text = """Label,# Samples,Average,Min,Max,Std. Dev.,Error %,Throughput,Received KB/sec,Sent KB/sec,Avg. Bytes
ping,10000,14377,2010,26000,5000.00,1.00%,75.8,10.0,9.0,300.0
issue,90000,1138,2,9000,700.00,0.00%,2483.2,10.0,9.0,300.0
TOTAL,100000,2461,2,26000,5000.00,0.10%,100.0,10.0,9.0,300.0
"""
    results = read_report(text, "summary.csv")
    assert results is not None
    assert [result.name for result in results] == ["summary.csv: ping", "summary.csv: issue"]
    assert results[0].failed == 100


@pytest.mark.parametrize("name", sorted(path.name for path in REPORTS.iterdir()))
def test_a_report_that_is_cut_off_anywhere_is_an_error_or_no_report_but_never_a_traceback(name: str) -> None:
    text = (REPORTS / name).read_text()
    for end in range(0, len(text), 7):
        with suppress(ReportError):
            results = read_report(text[:end], name)
            assert results is None or results[0].name == name


def test_what_is_no_report_is_none() -> None:
    assert read_report("", "nothing") is None
    assert read_report('{"summary": 1}', "other.json") is None
    assert read_report("a,b\n1,2\n", "other.csv") is None
