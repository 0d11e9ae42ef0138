"""Tests hey's flags as a load, and its numbers at their limits; `tests/end_to_end/test_hey.py` has the real hey."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.load_summary import load_end
from weir.compat.flags import ToolError
from weir.compat.front_end import LoadResult
from weir.compat.hey import HeyFrontEnd, read_command_line
from weir.compat.hey_report import format_csv, format_histogram, format_number, format_summary
from weir.compat.latencies import sort_counts
from weir.model.errors import TargetError, UsageError
from weir.model.load import ClosedLoad
from weir.model.load_records import LoadEvent
from weir.model.request_log import REQUEST_DTYPE

URL = "http://127.0.0.1:8000/"
MS = 1_000_000


def hey(line: str, url: str = URL) -> HeyFrontEnd:
    return read_command_line("hey", [*line.split(), url])


def result(*, events: Sequence[LoadEvent] = (), times_ns: Sequence[int] = (MS,), **given: Any) -> LoadResult:
    return LoadResult(load_end({"response_time": times_ns}, **given), events=events)


@pytest.mark.parametrize(
    ("line", "load", "duration_s", "timeout_s"),
    [
        ("", ClosedLoad(50, requests_per_user=4), 604_800, 20),
        ("-n 20 -c 2", ClosedLoad(2, requests_per_user=10), 604_800, 20),
        ("-n 21 -c 4 -t 5", ClosedLoad(4, requests_per_user=5), 604_800, 5),
        ("-n 2 -c 2 -q 4", ClosedLoad(2, requests_per_user=1, pace_s=0.25), 604_800, 20),
        ("-n 2 -c 2 -t 0", ClosedLoad(2, requests_per_user=1), 604_800, 3_600),
        # hey waits for the responses to all requests sent before the end.
        ("-z 5m -c 20", ClosedLoad(((0.0, 20.0), (300.0, 20.0), (300.0, 0.0))), 320, 20),
        ("-z 5m -c 20 -n 1", ClosedLoad(((0.0, 20.0), (300.0, 20.0), (300.0, 0.0))), 320, 20),
    ],
)
def test_counts_durations_and_rates_become_a_closed_load(
    line: str, load: ClosedLoad, duration_s: float, timeout_s: float
) -> None:
    plan = hey(line).plan
    assert (plan.load, plan.duration_s, plan.timeout_s) == (load, duration_s, timeout_s)


def test_the_other_flags_become_the_rest_of_the_plan() -> None:
    plan = hey("-n 2 -c 2 -disable-keepalive -cpus 1").plan
    assert (plan.keep_alive, plan.threads, plan.tls) == (False, 1, None)
    tls = hey("-host example.org", "https://127.0.0.1/").plan.tls
    assert tls is not None
    assert (tls.insecure, tls.server_name) == (True, "example.org")


@pytest.mark.parametrize(
    ("url", "target", "host"),
    [
        ("http://a.example", "http://a.example/", "a.example"),
        ("http://a.example?b=c#d", "http://a.example/?b=c", "a.example"),
        ("http://[::1]:8080/a b", "http://[::1]:8080/a%20b", "[::1]:8080"),
        ("http://user:word@a.example/", "http://a.example/", "a.example"),
    ],
)
def test_a_url_is_asked_for_as_go_asks_for_it(url: str, target: str, host: str) -> None:
    request = hey("", url).plan.request
    assert (request.target, dict(request.headers)["Host"]) == (target, host)
    assert ("Authorization" in dict(request.headers)) == ("@" in url)


def test_the_native_command_does_the_same() -> None:
    found = hey("-z 90s -c 2 -q 4 -m POST -d hello -disable-keepalive").command
    assert found == (
        "weir load http://127.0.0.1:8000/ -c 2 --pace 250ms -d 90s -H 'User-Agent: hey/0.0.1' -H 'Content-Type: text/html' "
        "-H 'Accept-Encoding: gzip' -b hello --timeout 20s --no-keepalive"
    )


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        (0.0, "0.0000"),
        (0.00004, "0.0000"),
        (0.00006, "0.0001"),
        (0.99994, "0.9999"),
        (0.99996, "1.0000"),
        (12345.67891, "12345.6789"),
        (math.nan, " NaN"),
    ],
)
def test_numbers_have_four_decimals(value: float, printed: str) -> None:
    assert format_number(value) == printed


def bars(times_ns: dict[int, int]) -> list[tuple[str, int, int]]:
    """Returns mark, count and length of the bar for each row."""
    rows = [line.split("|") for line in format_histogram(sort_counts(times_ns)).splitlines()]
    return [(head.split()[0], int(head.split("[")[1].rstrip("]\t")), len(bar)) for head, bar in rows]


def test_the_histogram_has_the_fastest_alone_and_ten_steps_to_the_slowest() -> None:
    found = bars({10 * MS: 1, 15 * MS: 2, 20 * MS: 1, 20 * MS + 1: 1, 110 * MS: 4})
    assert [mark for mark, _, _ in found] == [f"{0.01 * step:.3f}" for step in range(1, 12)]
    # A value on a mark belongs to this mark.
    assert [count for _, count, _ in found] == [1, 3, 1, 0, 0, 0, 0, 0, 0, 0, 4]


def test_the_longest_bar_has_40_characters_and_the_others_are_rounded_half_up() -> None:
    assert [length for _, _, length in bars({10: 80, 20: 1, 30: 2, 40: 3})] == [40, 0, 0, 0, 1, 0, 0, 1, 0, 0, 2]
    assert bars({10: 79, 20: 1})[-1][2] == 1


def test_equal_times_are_all_in_the_first_row() -> None:
    assert [count for _, count, _ in bars({5 * MS: 7})] == [7] + [0] * 10


def test_the_99th_percentile_of_few_answers_is_the_slowest() -> None:
    text = format_summary(load_end({"response_time": [MS * each for each in range(1, 11)]}), {})
    assert "\n  50% in 0.0050 secs" in text
    assert "\n  99% in 0.0100 secs" in text


def test_connections_count_for_all_requests_as_hey_counts_them() -> None:
    end = load_end({"response_time": [MS] * 10, "connect_time": [4 * MS, 2 * MS]})
    assert "\n  DNS+dialup:\t0.0006 secs, 0.0000 secs, 0.0040 secs" in format_summary(end, {})
    each = load_end({"response_time": [MS] * 2, "connect_time": [4 * MS, 2 * MS]})
    assert "\n  DNS+dialup:\t0.0030 secs, 0.0020 secs, 0.0040 secs" in format_summary(each, {})


def test_bytes_are_told_where_there_were_any() -> None:
    with_bytes = format_summary(load_end({"response_time": [MS] * 3}, bytes={"received_body": 40}), {})
    assert "\n  \n  Total data:\t40 bytes\n  Size/request:\t13 bytes\n\nResponse time histogram:" in with_bytes
    assert "\n  \n\nResponse time histogram:" in format_summary(load_end({"response_time": [MS] * 3}), {})


def test_failures_are_told_by_kind_with_the_first_ones_words() -> None:
    text = hey("-m POST").format_report(
        result(
            errors={"connect": 1, "reset": 3, "protocol": 4, "check": 5},
            events=[
                LoadEvent(t_s=0, kind="reset", detail="connection closed without an answer"),
                LoadEvent(t_s=0, kind="connect", detail="connection refused"),
                LoadEvent(t_s=1, kind="reset", detail="connection reset by peer"),
            ],
        )
    )
    assert text.partition("Error distribution:\n")[2].splitlines()[:3] == [
        f'  [1]\tPost "{URL}": connect: connection refused',
        f'  [4]\tPost "{URL}": protocol: failed',
        f'  [3]\tPost "{URL}": reset: connection closed without an answer',
    ]


def test_statuses_are_in_order_and_none_of_them_is_an_error() -> None:
    text = hey("").format_report(result(status={"500": 2, "200": 3}, errors={"check": 2}))
    assert "Status code distribution:\n  [200]\t3 responses\n  [500]\t2 responses\n\n\n" in text


def test_what_differs_is_said_where_it_does() -> None:
    requests = {"intended": 12, "sent": 12, "completed": 8, "ok": 8, "failed": 2, "unanswered": 2, "unsent": 0}
    found = read_command_line("hey", [URL, "-n", "5"]).list_differences(
        result(requests=requests, status={"200": 3, "302": 5}, errors={"reset": 2}, duration_s=2.0)
    )
    assert [note.split(":")[0].split(";")[0].split(",")[0] for note in found] == [
        "DNS-lookup and req write are 0",
        "Requests/sec counts only responses",
        "5 responses were redirects",
        "2 requests were in flight at the end",
        "the words after the URL have no effect",
    ]
    assert "would print 5.0000" in found[1]
    assert len(hey("-disable-redirects").list_differences(result(status={"302": 1}))) == 1


def test_a_load_that_cannot_begin_is_a_report_of_failures_as_heys_is() -> None:
    text, code = hey("-n 8 -c 4").format_failed_start(TargetError("connection refused by 127.0.0.1:8000"))
    assert code == 0
    assert "\n  Average:\t NaN secs\n" in text
    assert f'Error distribution:\n  [4]\tGet "{URL}": connect: connection refused by 127.0.0.1:8000\n' in text
    assert hey("-o csv").format_failed_start(TargetError("connection refused"))[0].count("\n") == 1
    assert hey("").format_failed_start(UsageError("plan, key load: found 900000 connections")) == ("", 1)


@pytest.mark.parametrize(
    ("line", "message", "code"),
    [
        ("-n 1.5", "-n: found '1.5', expected a whole number", 2),
        ("-z 5", "-z: found '5', expected a duration with a unit such as 30s or 1m30s", 2),
        ("-q fast", "-q: found 'fast', expected a number such as 50 or 0.5", 2),
        ("-H bad", "-H: found 'bad', expected 'Name: value'", 2),
        ("-m TRACE", "-m: found 'TRACE', expected one of: GET, POST", 2),
        ("-o json", "-o: found 'json', expected csv; weir load --json FILE URL", 2),
        ("-bogus", "found -bogus, expected a flag of hey", 2),
        ("-h2", "-h2: weir does not support this flag", 2),
        ("-x http://127.0.0.1:1", "-x: weir does not support this flag", 2),
        ("-n 0", "-n: found 0, expected at least 50, one for each worker (-c)", 1),
        ("-n 2 -c 3", "-n: found 2, expected at least 3, one for each worker (-c)", 1),
        ("-z 1s -c 0", "-c: found 0, expected 1 or more", 1),
        ("-D /no/such/file", "-D: /no/such/file: cannot be read: No such file or directory", 1),
    ],
)
def test_a_wrong_command_line_is_told_and_has_heys_exit_code(line: str, message: str, code: int) -> None:
    with pytest.raises(ToolError) as caught:
        hey(line)
    assert caught.value.message.startswith(message)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("text", "seconds"), [("300ms", 0.3), ("1m30s", 90.0), ("1.5h", 5400.0), ("0h0m.8s100ms", 0.9)]
)
def test_a_duration_has_units(text: str, seconds: float) -> None:
    assert hey(f"-z {text}").flags.duration_s == pytest.approx(seconds)


def test_a_row_for_each_answer_and_none_for_what_got_none(tmp_path: Path) -> None:
    log = np.zeros(3, REQUEST_DTYPE)
    log["intended_ns"], log["written_ns"], log["first_byte_ns"], log["last_byte_ns"] = MS, 2 * MS, 5 * MS, 6 * MS
    log["connect_ns"], log["status"] = [MS, 0, 0], [200, 0, 503]
    log["outcome"] = [0, 3, 5]
    (tmp_path / "log").write_bytes(log.tobytes())
    assert format_csv(tmp_path / "log").splitlines() == [
        "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset",
        "0.0050,0.0010,0.0000,0.0000,0.0030,0.0010,200,0.0010",
        "0.0050,0.0000,0.0000,0.0000,0.0030,0.0010,503,0.0010",
    ]


def test_more_than_a_million_answers_all_count() -> None:
    times = sort_counts({MS: 1_500_000, 2 * MS: 500_000})
    assert format_histogram(times).splitlines()[-1] == f"  0.002 [500000]\t|{'■' * 13}"
