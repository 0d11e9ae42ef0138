"""Tests real reports of the tools, and texts that only resemble reports."""

import json
import re
from contextlib import suppress
from pathlib import Path

import pytest

from weir.audit.laws import find_violations
from weir.compat.reports import ReportError, read_report
from weir.compat.reports.failures import classify_failure
from weir.compat.reports.tables import read_locust_failures
from weir.compat.reports.values import read_number, read_time
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


READ = {
    # name: tool, users, requests, failed, throughput, mean, longest, number of percentiles
    "artillery-1.txt": ("Artillery", None, 600, None, None, None, 0.1221, 3),
    "artillery.json": ("Artillery", None, 600, 10, None, 0.0094, 0.122, 6),
    "artillery.txt": ("Artillery", None, 600, 10, None, 0.0094, 0.122, 3),
    "autocannon.json": ("autocannon", 4, 13_552, 0, 13_552 / 1.04, 0.00109, 0.191, 15),
    "autocannon.txt": ("autocannon", 4, None, None, 28_000 / 1.03, 0.00003, 0.031, 4),
    "bombardier.json": ("bombardier", 8, 8203, None, 8203 / 2.004120331, 0.00193025, 0.02511, 5),
    "bombardier.txt": ("bombardier", 8, 8203, None, 8199 / 2, 0.00193, 0.02511, 5),
    "drill.txt": ("drill", 4, 200, 2, 285.71, 0.012, None, 3),
    "fortio.json": ("fortio", 4, 2000, 10, 999.2, 0.00195, 0.0121, 3),
    "gatling-table.txt": ("Gatling", None, 3100, 31, 155.0, 0.057, 1.204, 4),
    "gatling.txt": ("Gatling", None, 3100, 31, 155.0, 0.057, 1.204, 4),
    "gatling_stats.json": ("Gatling", None, 3100, 31, 155.0, 0.057, 1.204, 0),
    "k6-dotted.txt": ("k6", 4, 4932, 0, 4928.941, 0.00074431, 0.04138, 3),
    "k6.txt": ("k6", 4, 2796, 0, 2791.955696, 0.00131, 0.09638, 3),
    "locust.txt": ("Locust", None, 12_455, 0, 2806.93, 0.001, 0.089, 10),
    "locust_history.csv": ("Locust", 4, 2231, 0, None, 0.0031128778, 0.089746304, 0),
    "oha.txt": ("oha", None, 4998, 2, 2498.0008, 0.0007994, 0.0314159, 5),
    "plow.txt": ("plow", 20, 100_010, None, 40_004.12, 0.000477, 0.012501, 7),
    "samples-formatted.csv": ("JMeter", 2, 3, 1, 3.0, 0.0733333, 0.1, 7),
    "samples.xml": ("JMeter", 3, 3, 0, 25.2101, 0.1046667, 0.119, 7),
    "siege.json": ("siege", None, 312, None, 321.65, 0.01, 0.05, 0),
    "siege.txt": ("siege", 4, 2194, None, 1755.2, 0.0, 0.04, 0),
    "summariser.log": ("JMeter", 3, 9464, 0, 730.9, 0.003, 0.13, 0),
    "vegeta.json": ("vegeta", None, 200, 0, 200.951266, 0.000265019, 0.001297514, 4),
    "vegeta.txt": ("vegeta", None, 200, 0, 200.95, 0.000265019, 0.001298, 4),
}


@pytest.mark.parametrize("name", READ)
def test_the_figures_of_each_format_are_read_and_obey_the_laws(name: str) -> None:
    result = only(name)
    tool, users, requests, failed, rate, mean, longest, quantiles = READ[name]
    assert (result.tool, result.users, result.requests, result.failed) == (tool, users, requests, failed)
    for figure, expected in ((result.throughput_rps, rate), (result.mean_s, mean), (result.max_s, longest)):
        if expected is not None:
            assert figure is not None
            assert figure.value == pytest.approx(expected, rel=0.001)
    assert len(result.quantiles_s) == quantiles
    assert [found for found in find_violations(result) if found.kind != "capped"] == []


SURROUNDINGS = {
    "a fence and a prompt": ("Here is my run:\n```\nme@host:~$ tool http://h/\n{}\n```\nWhat does it mean?\n", ""),
    "a quote": ("", "> "),
    "an indent": ("", "    "),
    "docker compose": ("", "load-1  | "),
    "time stamps": ("", "2024-01-31T10:00:00.123Z "),
    "a log": ("", "[2024-01-31 10:00:00,123] INFO: "),
}


@pytest.mark.parametrize("surroundings", SURROUNDINGS)
@pytest.mark.parametrize(
    "name",
    [path.name for path in sorted(REPORTS.iterdir()) if path.suffix in (".txt", ".json") or "stats.csv" in path.name],
)
def test_text_around_a_report_does_no_harm(name: str, surroundings: str) -> None:
    text = (REPORTS / name).read_text()
    around, prefix = SURROUNDINGS[surroundings]
    changed = "".join(f"{prefix}{line}\n" for line in text.splitlines())
    changed = (
        around.format(changed.replace("{", "{{").replace("}", "}}")).replace("{{", "{").replace("}}", "}") or changed
    )
    assert read_report(changed, name) == read_report(text, name)


def test_a_paste_of_several_runs_has_a_result_for_each_in_order() -> None:
    names = (
        "wrk.txt",
        "hey.txt",
        "oha.json",
        "wrk.txt",
        "k6.txt",
        "vegeta.txt",
        "samples.jtl",
        "autocannon.txt",
        "ab.txt",
    )
    texts = [(REPORTS / name).read_text().rstrip("\n") for name in names]
    results = read_report("\n\n$ next run\n".join(texts), "paste")
    assert results is not None
    assert [result.tool for result in results] == [only(name).tool for name in names]
    assert [result.mean_s for result in results] == [only(name).mean_s for name in names]
    assert [result.requests for result in results] == [only(name).requests for name in names]
    assert results[0].name == "paste, line 1"


def test_an_interim_table_is_no_report_of_its_own() -> None:
    assert (REPORTS / "locust.txt").read_text().count("# fails") == 4
    assert only("locust.txt").requests == 12_455
    again = (REPORTS / "summariser.log").read_text() * 2
    results = read_report(again, "two runs")
    assert results is not None
    assert [result.requests for result in results] == [9464, 9464]


@pytest.mark.parametrize(
    ("name", "line", "problem"),
    [
        ("wrk.txt", "requests in", "wrk without the line '… requests in …, … read'"),
        ("hey.txt", "Average:", "hey without the line 'Average: …'"),
        ("oha.txt", "Status code distribution", "oha without the line 'Status code distribution:'"),
        ("ab.txt", "Failed requests", "ab without the line 'Failed requests: …'"),
        ("k6.txt", "http_reqs", "k6 without the line 'http_reqs…: …/s'"),
        ("vegeta.txt", "Latencies", "vegeta without the line 'Latencies […] …'"),
        ("autocannon.txt", "requests in", "autocannon without the line '… requests in …, … read'"),
        ("gatling.txt", "mean requests/sec", "Gatling without the line 'mean requests/sec …'"),
        ("plow.txt", "P50", "plow without the line 'P50 … = …'"),
        ("locust.txt", "Aggregated", "Locust without the line 'Aggregated …"),
        ("artillery.txt", "Summary report", "only interim reports by Artillery"),
        ("summariser.log", "summary =", "only interim reports by JMeter (summariser)"),
        ("samples.xml", "</testResults>", "JMeter (JTL in XML) without its end, </testResults>"),
    ],
)
def test_a_cut_report_is_refused_with_the_name_of_the_missing_line(name: str, line: str, problem: str) -> None:
    lines = (REPORTS / name).read_text().splitlines()
    kept = "\n".join(one for one in lines if line not in one)
    with pytest.raises(ReportError, match=f"line \\d+: found .*{re.escape(problem)}"):
        read_report(kept, name)


@pytest.mark.parametrize(
    ("name", "old", "new", "problem"),
    [
        ("hey.txt", "Average:\t0.0002 secs", "Average:\tNaN secs", "with nan as the mean response time"),
        ("vegeta.txt", "265.019µs", "inf", "with inf as the mean response time"),
        ("autocannon.json", '"max":191,"p0', '"max":9007199254740991,"p0', "with inf as the longest response time"),
        (
            "ab.txt",
            "Complete requests:      3000",
            "Complete requests:      many",
            "found 'many', expected a whole number",
        ),
        ("wrk.txt", "5.35ms", "5.35parsec", "found '5.35parsec', expected a time such as 12.3ms or 10 sec"),
        ("siege.json", "321.65", "true", "found True, expected a number"),
        ("samples-formatted.csv", "2024/01/31 10:00:01.000", "31.01.2024", "with the time stamp '31.01.2024'"),
    ],
)
def test_a_wrong_value_is_named(name: str, old: str, new: str, problem: str) -> None:
    text = (REPORTS / name).read_text()
    assert old in text
    with pytest.raises(ReportError, match=re.escape(problem)):
        read_report(text.replace(old, new), name)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10 sec", 10.0), ("12.3ms", 0.0123), ("1m30.5s", 90.5), ("4 minutes, 30 seconds", 270.0), ("00:01:30", 90.0),
        ("0.5 secs.", 0.5), ("250µs", 250e-6), ("1h2m3s", 3723.0), ("7", 7.0),
    ],
)  # fmt: skip
def test_a_time_is_read_in_the_units_of_all_tools(text: str, seconds: float) -> None:
    assert read_time(text).value == pytest.approx(seconds)


def test_thousands_and_decimal_commas_are_told_apart() -> None:
    assert [read_number(text).value for text in ("1,234.5", "2,531", "5,8", "1,234,567")] == [
        1234.5,
        2531,
        5.8,
        1234567,
    ]


def test_h2load_adds_the_clients_of_all_threads_and_may_lack_its_first_lines() -> None:
    text = (REPORTS / "h2load.txt").read_text()
    thread = next(line for line in text.splitlines() if line.startswith("spawning"))
    two_threads = read_report(text.replace(thread, f"{thread}\n{thread.replace('#0', '#1')}"), "two threads")
    assert two_threads is not None
    assert two_threads[0].users == 16
    without_head = read_report(text[text.index("finished in") :], "without head")
    assert without_head is not None
    assert (without_head[0].users, without_head[0].requests) == (None, 34_023)


def test_a_transaction_of_jmeter_is_not_counted_beside_its_samples() -> None:
    assert "Number of samples in transaction" in (REPORTS / "samples.xml").read_text()
    assert only("samples.xml").requests == 3


def test_what_follows_a_report_of_wrk_is_not_taken_for_its_percentiles() -> None:
    lines = (REPORTS / "wrk.txt").read_text().splitlines()
    plain = "\n".join(line for line in lines if not re.match(r" +\d+% |  Latency Dist", line))
    results = read_report(f"{plain}\n\nanother tool\n  50%  7.00ms\n", "wrk")
    assert results is not None
    assert results[0].quantiles_s == {}


def test_braces_before_a_report_do_no_harm_and_a_cut_object_is_refused() -> None:
    text = (REPORTS / "fortio.json").read_text()
    pretty = json.dumps(json.loads(text), indent=2)
    assert read_report("{ not json\n}\n" + pretty, "fortio") == read_report(text, "fortio")
    with pytest.raises(ReportError, match=r"line 2: found a report by fortio \(JSON\) that is no valid JSON"):
        read_report("cut:\n" + pretty[:-20] + "\n", "fortio")
    # k6 writes an object for each sample.
    assert read_report('{"type":"Point","metric":"http_reqs"}\n' * 20_000, "samples") is None


def test_other_programs_with_heys_summary_are_not_taken_for_hey() -> None:
    text = (REPORTS / "hey.txt").read_text()
    assert read_report(text.replace("Summary:", "Summary:\n  Count:\t5"), "ghz") is None


@pytest.mark.parametrize("name", sorted(path.name for path in REPORTS.iterdir()))
def test_a_report_that_is_cut_off_anywhere_is_an_error_or_no_report_but_never_a_traceback(name: str) -> None:
    text = (REPORTS / name).read_text()
    for end in range(0, len(text), 7):
        with suppress(ReportError):
            results = read_report(text[:end], name)
            assert results is None or results[0].name.startswith(name)


def test_what_is_no_report_is_none() -> None:
    assert read_report("", "nothing") is None
    assert read_report('{"summary": 1}', "other.json") is None
    assert read_report("a,b\n1,2\n", "other.csv") is None
