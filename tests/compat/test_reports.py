"""Reports that the tools really printed, read; and what only looks like one."""

from contextlib import suppress
from pathlib import Path

import pytest

from weir.audit.laws import find_violations
from weir.compat.reports import ReportError, json_reports, read_report
from weir.compat.reports.csv_tables import read_locust_failures
from weir.compat.reports.failures import classify_failure
from weir.model.reported_result import Claim

REPORTS = Path(__file__).parent.parent / "data" / "reports"


def only(name: str) -> Claim:
    claims = read_report((REPORTS / name).read_text(), name)
    assert claims is not None
    (claim,) = claims
    return claim


def test_wrk() -> None:
    claim = only("wrk.txt")
    assert (claim.tool, claim.users, claim.requests, claim.failed) == ("wrk", 8, 122_265, 0)
    assert claim.throughput_rps is not None
    assert claim.throughput_rps.value == 122_041.66
    assert claim.mean_s is not None
    assert (claim.mean_s.value, claim.mean_s.rounding) == pytest.approx((189.92e-6, 0.005e-6))
    assert {q: figure.value for q, figure in claim.quantiles_s.items()} == pytest.approx(
        {0.5: 33e-6, 0.75: 43e-6, 0.9: 332e-6, 0.99: 2.93e-3}
    )


def test_wrk2_is_told_from_wrk_and_bound_by_no_connections() -> None:
    claim = only("wrk2.txt")
    assert (claim.tool, claim.users, claim.requests) == ("wrk2", None, 1968)
    assert claim.quantiles_s.keys() == {0.5, 0.75, 0.9, 0.99, 0.999, 0.9999, 0.99999}
    # Its percentiles are rounded up and reach beyond the Max of its table.
    assert claim.max_s is not None
    assert claim.max_s.value == pytest.approx(23.36e-3)
    assert find_violations(claim) == ()


def test_h2load() -> None:
    claim = only("h2load.txt")
    assert (claim.tool, claim.users, claim.requests, claim.failed) == ("h2load", 8, 34_023, 0)
    assert claim.duration_s is not None
    assert claim.throughput_rps is not None
    assert (claim.duration_s.value, claim.throughput_rps.value) == (1.0, 34_023.0)
    assert claim.mean_s is not None
    assert claim.mean_s.value == pytest.approx(234e-6)
    assert find_violations(claim) == ()


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
    claims = read_report("\n".join(lines), "newer")
    assert claims is not None
    assert {q: figure.value for q, figure in claims[0].quantiles_s.items()} == pytest.approx(
        {0.5: 60e-6, 0.95: 1.1e-3, 0.99: 3.2e-3}
    )
    assert claims[0].mean_s is not None
    assert claims[0].mean_s.value == pytest.approx(234e-6)


@pytest.mark.parametrize(
    ("name", "requests", "failed", "errors"),
    [
        # wrk counts as requests those that were answered alone.
        ("wrk-errors.txt", 0, 0, {"reset": 5537}),
        ("hey-errors.txt", 6, 6, {"reset": 6}),
        ("ab-errors.txt", 9638, 9638, {"reset": 9638}),
        ("oha-errors.json", 20, 20, {"reset": 20}),
        ("k6-errors.json", 100, 100, {"reset": 100}),
        ("h2load-errors.txt", 23_587, 23_587, {"check": 23_587}),
    ],
)
def test_what_failed_is_told_by_kind(name: str, requests: int, failed: int, errors: dict[str, int]) -> None:
    claim = only(name)
    assert (claim.requests, claim.failed, claim.errors) == (requests, failed, errors)


def test_a_load_without_an_answer_has_no_times() -> None:
    for name in ("wrk-errors.txt", "hey-errors.txt"):
        claim = only(name)
        assert (claim.mean_s, claim.max_s, claim.quantiles_s) == (None, None, {})


def test_wrks_timeouts_are_answers_that_came_too_late() -> None:
    text = (REPORTS / "wrk.txt").read_text().replace(
        "Requests/sec: ", "  Socket errors: connect 1, read 2, write 3, timeout 4\n  Non-2xx or 3xx responses: 5\nRequests/sec: "
    )  # fmt: skip
    claims = read_report(text, "wrk")
    assert claims is not None
    assert (claims[0].requests, claims[0].failed) == (122_265, 9)
    assert claims[0].errors == {"connect": 1, "reset": 5, "timeout": 4, "check": 5}


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
    claim = only("hey.txt")
    assert claim.tool == "hey"
    assert claim.statuses.keys() == {"200"}
    assert claim.requests == claim.statuses["200"]
    assert claim.quantiles_s.keys() == {0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99}
    assert find_violations(claim) == ()


def test_ab() -> None:
    claim = only("ab.txt")
    assert (claim.tool, claim.users, claim.requests) == ("ab", 8, 3000)
    assert claim.max_s is not None
    assert claim.max_s.value == 0.002
    assert find_violations(claim) == ()


def test_oha() -> None:
    claim = only("oha.json")
    assert claim.tool == "oha"
    assert claim.requests == claim.statuses["200"] + (claim.failed or 0)
    assert 0.5 in claim.quantiles_s


def test_k6() -> None:
    claim = only("k6.json")
    assert (claim.tool, claim.users) == ("k6", 8)
    assert claim.quantiles_s.keys() == {0.5, 0.9, 0.95}
    assert (claim.requests, claim.failed, claim.received_bytes) == (13_004, 0, 858_264)
    assert find_violations(claim) == ()


def test_the_summary_that_weirs_script_has_k6_write_says_how_long_it_took() -> None:
    claim = only("k6-errors.json")
    assert claim.duration_s is not None
    assert claim.duration_s.value > 0
    assert claim.quantiles_s.keys() == {0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999}
    assert find_violations(claim) == ()


def test_k6_leaves_out_what_it_has_no_sample_of() -> None:
    claim = json_reports.read_k6('{"metrics": {}}', "k6")
    assert (claim.requests, claim.mean_s, claim.quantiles_s) == (0, None, {})


def test_what_oha_had_no_answer_to_at_the_end_is_no_failure_of_any_kind() -> None:
    claim = only("oha.json")
    assert (claim.failed, claim.errors) == (8, {})


def test_locust() -> None:
    claim = only("locust_stats.csv")
    assert (claim.tool, claim.requests, claim.failed) == ("Locust", 4208, 0)
    assert claim.mean_s is not None
    assert claim.mean_s.value == pytest.approx(1.3752e-3, rel=1e-3)
    assert 0.999 in claim.quantiles_s
    assert find_violations(claim) == ()


def test_jmeters_samples_show_who_came_when_and_how_often_each_asked() -> None:
    rows = ["timeStamp,elapsed,label,responseCode,threadName,success,bytes"]
    for thread in range(10):
        rows += [
            f"{1000 * thread + 50 * loop},50,ping,200,users 1-{thread + 1},{str(loop != 2).lower()},100"
            for loop in range(3)
        ]
    claims = read_report("\n".join(rows) + "\n", "samples.jtl")
    assert claims is not None
    (claim,) = claims
    assert (claim.users, claim.loops, claim.ramp_s, claim.requests, claim.failed) == (10, 3, 9.0, 30, 10)
    assert [violation.kind for violation in find_violations(claim)] == ["capped"]


def test_what_jmeter_wrote_of_every_request_gives_statuses_and_quantiles() -> None:
    claim = only("samples.jtl")
    assert (claim.requests, claim.failed, claim.statuses, claim.received_bytes) == (26, 0, {"200": 26}, 26 * 66)
    assert claim.quantiles_s[0.5].value == 0.031
    assert claim.quantiles_s[0.9999] == claim.max_s
    assert find_violations(claim) == ()


def test_jmeters_failures_have_a_status_or_an_exception() -> None:
    rows = ["timeStamp,elapsed,label,responseCode,threadName,success,bytes"]
    rows += [
        f"{at},5,a,{code},u 1-1,{'true' if code == '200' else 'false'},9"
        for at, code in enumerate(("200", "500", "503"))
    ]
    rows += ["3,5,a,Non HTTP response code: java.net.SocketTimeoutException,u 1-1,false,0"]
    claims = read_report("\n".join(rows) + "\n", "samples.jtl")
    assert claims is not None
    assert claims[0].errors == {"check": 2, "timeout": 1}
    assert claims[0].statuses == {"200": 1, "500": 1, "503": 1}


def test_locusts_failures_are_in_a_table_of_their_own() -> None:
    assert read_locust_failures((REPORTS / "locust_failures.csv").read_text()) == {"protocol": 540}


def test_jmeters_reports_have_a_claim_for_each_label() -> None:
    text = """Label,# Samples,Average,Min,Max,Std. Dev.,Error %,Throughput,Received KB/sec,Sent KB/sec,Avg. Bytes
ping,10000,14377,2010,26000,5000.00,1.00%,75.8,10.0,9.0,300.0
issue,90000,1138,2,9000,700.00,0.00%,2483.2,10.0,9.0,300.0
TOTAL,100000,2461,2,26000,5000.00,0.10%,100.0,10.0,9.0,300.0
"""
    claims = read_report(text, "summary.csv")
    assert claims is not None
    assert [claim.name for claim in claims] == ["summary.csv: ping", "summary.csv: issue"]
    assert claims[0].failed == 100


@pytest.mark.parametrize("name", sorted(path.name for path in REPORTS.iterdir()))
def test_a_report_that_is_cut_off_anywhere_is_an_error_or_no_report_but_never_a_traceback(name: str) -> None:
    text = (REPORTS / name).read_text()
    for end in range(0, len(text), 7):
        with suppress(ReportError):
            claims = read_report(text[:end], name)
            assert claims is None or claims[0].name == name


def test_what_is_no_report_is_none() -> None:
    assert read_report("", "nothing") is None
    assert read_report('{"summary": 1}', "other.json") is None
    assert read_report("a,b\n1,2\n", "other.csv") is None
