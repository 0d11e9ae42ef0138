"""Tests the tables of JMeter and k6 as records of a load."""

import json
import os
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from weir.generators.scripted import tables
from weir.generators.scripted.lines import REQUEST, Claims, Ended, Line, News, Outcome, Started, Stopped
from weir.generators.scripted.tables import Jtl, K6Points, K6Requests, Samples, TableSource

JTL = "timeStamp,elapsed,label,responseCode,responseMessage,threadName,success,bytes,allThreads"
NOW_MS = time.time_ns() // 1_000_000
TRANSACTION = "Number of samples in transaction : 1, number of failing samples : 0"


def read_rows(samples: Samples, text: str) -> list[tuple[Outcome, tuple[float, ...]]]:
    """Returns the outcome and the row of each sample."""
    rows, _ = samples.read(text.encode())
    return [(samples.new_outcomes[row[1]], row) for row in rows.tolist()]


def read(table: Jtl, text: str) -> tuple[list[str], list[str]]:
    """Returns the names of requests and of parts."""
    rows = read_rows(table, text)
    requests, parts = ([outcome.name for outcome, _ in rows if outcome.is_part is one] for one in (False, True))
    return requests, parts


def jtl() -> Jtl:
    table = Jtl()
    table.read(f"{JTL}\n".encode())
    return table


def test_redirects_are_parts_of_their_sample_and_a_name_with_a_number_is_a_sample() -> None:
    rows = "100,20,a,200,OK,T 1-1,true,5,1\n100,9,a-0,302,Found,T 1-1,true,5,1\n110,9,a-1,200,OK,T 1-1,true,5,1\n"
    next_rows = "130,1,a-1,200,OK,T 1-1,true,5,1\n130,1,b-1,200,OK,T 1-2,true,5,1\n"
    table = jtl()
    assert read(table, rows) == (["a"], ["a-0", "a-1"])
    assert read(table, next_rows) == (["a-1", "b-1"], [])


def test_a_redirect_is_a_part_of_a_sample_that_was_read_before() -> None:
    table = jtl()
    assert read(table, "100,20,a,200,OK,T 1-1,true,5,1\n") == (["a"], [])
    assert read(table, "100,9,a-0,302,Found,T 1-1,true,5,1\n") == ([], ["a-0"])


def test_transactions_are_parts_and_jmeters_summary_leaves_out_the_requests_of_one_with_a_sample() -> None:
    table = jtl()
    rows = f"100,5,a,200,OK,T 1-1,true,5,2\n100,5,Round,,{TRANSACTION!r},T 1-1,true,5,2\n".replace("'", '"')
    assert read(table, rows) == (["a"], ["Round"])
    assert table.unclaimed == (0, 0)
    rows = f"110,5,Whole,200,{TRANSACTION!r},T 1-1,true,5,2\n110,5,b,500,No,T 1-1,false,5,2\n120,5,c,200,OK,T 1-1,true,5,2\n"
    assert read(table, rows.replace("'", '"')) == (["b", "c"], ["Whole"])
    assert (table.unclaimed, table.users) == ((1, 1), 2)


@pytest.mark.parametrize(
    ("code", "success", "status", "kind"),
    [
        ("404", "false", 404, "check"),
        ("404", "true", 404, None),
        ("200", "false", 200, "check"),
        ("Non HTTP response code: java.net.SocketTimeoutException", "false", 0, "timeout"),
        ("Non HTTP response code: org.apache.http.conn.HttpHostConnectException", "false", 0, "connect"),
        ("", "false", 0, "check"),
    ],
)
def test_jmeter_decides_what_failed(code: str, success: str, status: int, kind: str | None) -> None:
    ((outcome, row),) = read_rows(jtl(), f"100,20,a,{code},x,T 1-1,{success},5,1\n")
    assert outcome == Outcome("", "a", status, kind, has_start=False)
    assert row == (120_000_000, 0, 20, 0, 5)


def test_a_table_without_a_necessary_column_is_refused() -> None:
    with pytest.raises(ValueError, match="found no column 'elapsed'"):
        Jtl().read(b"timeStamp,label\n")


def records(source: TableSource) -> list[Line]:
    return [line for _, line in source.read(0) if line is not None]


def requests_in(news: News) -> Any:
    return np.frombuffer(news.requests, REQUEST)


@pytest.fixture
def claims() -> Claims:
    return Claims(requests=2, failed=0, mean_ms=1, min_ms=1, max_ms=1, throughput_rps=1)


@pytest.fixture
def source(tmp_path: Path, claims: Claims) -> Iterator[TableSource]:
    found = TableSource(tmp_path / "a.jtl", Jtl(), "JMeter 5", "plan.jmx", lambda: claims, cpus=2)
    found.begin(os.getpid())
    yield found
    found.close()


def test_a_growing_file_is_read_row_by_row_even_if_a_quoted_text_has_line_breaks(
    source: TableSource, tmp_path: Path, claims: Claims
) -> None:
    assert records(source) == []
    with (tmp_path / "a.jtl").open("w") as file:
        file.write(f'{JTL}\n{NOW_MS},20,a,500,"line one\nline')
        file.flush()
        assert records(source) == []
        file.write(f' ""two"" ",T 1-1,false,5,3\n{NOW_MS + 100},20,b,200,OK,T 1-1,true,5,3\n')
        file.flush()
        started, news = records(source)
        assert isinstance(started, Started)
        assert isinstance(news, News)
        assert [outcome.name for outcome in news.outcomes] == ["a", "b"]
        assert (requests_in(news)["end_ns"] - started.at_ns).tolist() == [20_000_000, 120_000_000]
        assert news.users == 3
        file.write(f"{NOW_MS + 100},30,b,200,OK,T 1-1,true,5,3\n")
        file.flush()
        (later,) = records(source)
        assert isinstance(later, News)
        assert (later.outcomes, requests_in(later)["outcome"].tolist()) == ([], [1])
    assert [line for _, line in source.end()] == [Stopped(at_ns=started.at_ns + 130_000_000), claims, Ended()]


def test_rows_of_an_earlier_run_do_not_count(tmp_path: Path, claims: Claims) -> None:
    path = tmp_path / "a.jtl"
    path.write_text("timeStamp;elapsed;label\n100;20;old\n")
    source = TableSource(path, Jtl(), "JMeter 5", "plan.jmx", lambda: claims, cpus=1)
    source.begin(os.getpid())
    with path.open("a") as file:
        file.write("200;20;new\n")
    news = records(source)[1]
    assert isinstance(news, News)
    assert [outcome.name for outcome in news.outcomes] == ["new"]
    source.close()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("<?xml version='1.0'?>\n", "found no column 'timeStamp' in \"<?xml version='1.0'?>\""),
        (
            f"{JTL}\n2026/01/01 10:00:00,20,a,200,OK,T,true,5,1\n",
            "invalid literal for int() with base 10: '2026/01/01 10:00:00'",
        ),
        (f"{JTL}\n100,20\n", "found a row that does not have 9 columns"),
    ],
)
def test_a_table_that_is_not_readable_has_a_problem(
    text: str, problem: str, source: TableSource, tmp_path: Path
) -> None:
    (tmp_path / "a.jtl").write_text(text)
    assert records(source) == []
    assert source.problem == problem
    assert list(source.end()) == []


def test_a_pipe_takes_many_requests_at_once_and_several_reads_make_one_report(
    tmp_path: Path, claims: Claims, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe")
    source = TableSource(tmp_path / "pipe", K6Points(), "k6", "a.js", lambda: claims, cpus=1)
    source.begin(os.getpid())
    text = "".join(point("http_req_duration", f"00.{number:06}", 1, status="200") for number in range(7000))
    with (tmp_path / "pipe").open("wb") as pipe:
        os.set_blocking(pipe.fileno(), False)
        assert os.write(pipe.fileno(), text.encode()) == len(text) > 500_000
        monkeypatch.setattr(tables, "_READ_BYTES", 100_000)
        _, news = records(source)
    assert isinstance(news, News)
    assert len(requests_in(news)) == 7000
    source.close()


FAILED = {"error": "request timeout", "expected_response": "false"}


def point(metric: str, time: str, value: float, **tags: str) -> str:
    data = {"time": f"2026-01-01T01:00:{time}+01:00", "value": value, "tags": tags}
    return json.dumps({"metric": metric, "type": "Point", "data": data}, separators=(",", ":")) + "\n"


def test_k6s_metrics_other_than_requests_are_no_requests() -> None:
    points = K6Points()
    text = (
        '{"type":"Metric","data":{"name":"http_reqs"},"metric":"http_reqs"}\n'
        + point("http_req_duration", "00.005", 2.5, method="GET", name="/", status="200", expected_response="true")
        + point("http_req_waiting", "00.005", 2.0, method="GET", name="/", status="200")
        + point("http_req_duration", "00.009000123", 2, method="GET", url="/slow", status="0", **FAILED)
        + point("vus", "00.009", 3)
        + point("dropped_iterations", "00.009", 2)
    )  # fmt: skip
    rows, left = points.read(f'{text}{{"metric":"http_req_dur'.encode())
    start_ns = 1_767_225_600_000_000_000
    assert rows.tolist() == [(start_ns + 5_000_000, 0, 2.5, 0, 0), (start_ns + 9_000_000, 1, 2, 0, 0)]
    assert points.new_outcomes == [
        Outcome("GET", "/", 200, None, has_start=False),
        Outcome("GET", "/slow", 0, "timeout", has_start=False),
    ]
    assert left == b'{"metric":"http_req_dur'
    assert (points.users, points.unsent) == (3, 2)


def report(rows: list[tuple[int, int, float]], **news: Any) -> bytes:
    """Returns a report of weir's own output of k6. A row: end time, number of the set of tags, response time."""
    text = json.dumps({"outcomes": None, "users": 0, "unsent": 0} | news).encode()
    packed = np.array([(end_ns, number, ms, 0, 0) for end_ns, number, ms in rows], REQUEST).tobytes()
    return struct.pack("=2I", len(text), len(packed)) + text + packed


def test_reports_of_k6_are_read_whole_wherever_the_pipe_cuts_them() -> None:
    get = ["http_req_duration", "GET", "/", "", "200", "true", "", ""]
    grouped = ["http_req_duration", "GET", "/", "", "200", "true", "", ""]
    slow = ["http_req_duration", "GET", "", "/slow", "0", "false", "request timeout", "1050"]
    call = ["grpc_req_duration", "", "Say", "", "14", "false", "", ""]
    text = report([(10, 0, 1.5)], outcomes=[get]) + report([], users=3, unsent=2)
    text += report([(20, 1, 2.5), (30, 2, 60.0), (40, 3, 4.0)], outcomes=[grouped, slow, call], users=3, unsent=2)
    for cut in range(len(text) + 1):
        requests = K6Requests()
        first, unread = requests.read(text[:cut])
        rest, unread = requests.read(unread + text[cut:])
        assert not unread
        # Two sets of tags with the same outcome are one outcome.
        assert [*first.tolist(), *rest.tolist()] == [
            (10, 0, 1.5, 0, 0), (20, 0, 2.5, 0, 0), (30, 1, 60.0, 0, 0), (40, 2, 4.0, 0, 0)
        ]  # fmt: skip
        assert requests.new_outcomes == [
            Outcome("GET", "/", 200, None, has_start=False),
            Outcome("GET", "/slow", 0, "timeout", has_start=False),
            Outcome("", "Say", 0, "check", has_start=False),
        ]
        assert (requests.users, requests.unsent, requests.unclaimed) == (3, 2, (1, 0))
