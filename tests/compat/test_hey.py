"""hey's flags as a load, and its numbers at their boundaries; `tests/end_to_end/test_hey.py` has the real hey beside it."""

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.load_summary import load_end
from weir.compat.front_end import Outcome, ToolExit
from weir.compat.hey import Hey, read
from weir.compat.hey_report import HeySummary, csv_text, histogram_rows, number
from weir.compat.times import Times
from weir.model.errors import TargetError
from weir.model.load import ClosedLoad
from weir.model.records import LoadEvent
from weir.model.request_log import REQUEST_DTYPE

URL = "http://127.0.0.1:8000/"
MS = 1_000_000


def asked(line: str) -> Hey:
    return read([*line.split(), URL])


def outcome(*, events: Sequence[LoadEvent] = (), times_ns: Sequence[int] = (MS,), **given: Any) -> Outcome:
    return Outcome(load_end({"response_time": times_ns}, **given), (), None, interrupted=False, events=events)


@pytest.mark.parametrize(
    ("line", "load", "duration_s", "timeout_s"),
    [
        ("", ClosedLoad(50, loops=4), 604_800, 20),
        ("-n 20 -c 2", ClosedLoad(2, loops=10), 604_800, 20),
        ("-n 21 -c 4 -t 5", ClosedLoad(4, loops=5), 604_800, 5),
        ("-n 2 -c 2 -q 4", ClosedLoad(2, loops=1, pace_s=0.25), 604_800, 20),
        ("-n 2 -c 2 -t 0", ClosedLoad(2, loops=1), 604_800, 3_600),
        # Whoever was asked before the end is waited for.
        ("-z 5m -c 20", ClosedLoad(((0.0, 20.0), (300.0, 20.0), (300.0, 0.0))), 320, 20),
        ("-z 5m -c 20 -n 1", ClosedLoad(((0.0, 20.0), (300.0, 20.0), (300.0, 0.0))), 320, 20),
    ],
)
def test_counts_durations_and_rates_become_a_closed_load(line: str, load: ClosedLoad, duration_s: float, timeout_s: float) -> None:
    plan = asked(line).plan
    assert (plan.load, plan.duration_s, plan.timeout_s) == (load, duration_s, timeout_s)


def test_the_other_flags_become_the_rest_of_the_plan() -> None:
    plan = asked("-n 2 -c 2 -disable-keepalive -cpus 1").plan
    assert (plan.keep_alive, plan.threads, plan.tls) == (False, 1, None)
    tls = read(["-host", "example.org", "https://127.0.0.1/"]).plan.tls
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
    request = read([url]).plan.request
    assert (request.target, dict(request.headers)["Host"]) == (target, host)
    assert ("Authorization" in dict(request.headers)) == ("@" in url)


def test_the_native_command_does_the_same() -> None:
    found = asked("-z 90s -c 2 -q 4 -m POST -d hello -disable-keepalive").native
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
    assert number(value) == printed


def bars(times_ns: dict[int, int]) -> list[tuple[str, int, int]]:
    """Mark, count and length of the bar of each row."""
    rows = [line.split("|") for line in histogram_rows(Times.of(times_ns)).splitlines()]
    return [(head.split()[0], int(head.split("[")[1].rstrip("]\t")), len(bar)) for head, bar in rows]


def test_the_histogram_has_the_fastest_alone_and_ten_steps_to_the_slowest() -> None:
    found = bars({10 * MS: 1, 15 * MS: 2, 20 * MS: 1, 20 * MS + 1: 1, 110 * MS: 4})
    assert [mark for mark, _, _ in found] == [f"{0.01 * step:.3f}" for step in range(1, 12)]
    # What lies on a mark belongs to it.
    assert [count for _, count, _ in found] == [1, 3, 1, 0, 0, 0, 0, 0, 0, 0, 4]


def test_the_longest_bar_has_40_characters_and_the_others_are_rounded_half_up() -> None:
    assert [length for _, _, length in bars({10: 80, 20: 1, 30: 2, 40: 3})] == [40, 0, 0, 0, 1, 0, 0, 1, 0, 0, 2]
    assert bars({10: 79, 20: 1})[-1][2] == 1


def test_equal_times_are_all_in_the_first_row() -> None:
    assert [count for _, count, _ in bars({5 * MS: 7})] == [7] + [0] * 10


def test_the_99th_percentile_of_few_answers_is_the_slowest() -> None:
    text = HeySummary.of(load_end({"response_time": [MS * each for each in range(1, 11)]}), {}).text()
    assert "\n  50% in 0.0050 secs" in text
    assert "\n  99% in 0.0100 secs" in text


def test_connections_count_for_all_requests_as_hey_counts_them() -> None:
    end = load_end({"response_time": [MS] * 10, "connect_time": [4 * MS, 2 * MS]})
    assert "\n  DNS+dialup:\t0.0006 secs, 0.0000 secs, 0.0040 secs" in HeySummary.of(end, {}).text()
    each = load_end({"response_time": [MS] * 2, "connect_time": [4 * MS, 2 * MS]})
    assert "\n  DNS+dialup:\t0.0030 secs, 0.0020 secs, 0.0040 secs" in HeySummary.of(each, {}).text()


def test_bytes_are_told_where_there_were_any() -> None:
    with_bytes = HeySummary.of(load_end({"response_time": [MS] * 3}, bytes={"received_body": 40}), {}).text()
    assert "\n  \n  Total data:\t40 bytes\n  Size/request:\t13 bytes\n\nResponse time histogram:" in with_bytes
    assert "\n  \n\nResponse time histogram:" in HeySummary.of(load_end({"response_time": [MS] * 3}), {}).text()


def test_failures_are_told_as_go_tells_them_the_first_of_a_kind_for_all() -> None:
    text = asked("-m POST").report(
        outcome(
            errors={"connect": 1, "timeout": 2, "reset": 3, "protocol": 4, "check": 5},
            events=[
                LoadEvent(t_s=0, kind="reset", detail="connection closed without an answer"),
                LoadEvent(t_s=0, kind="connect", detail="connection refused"),
                LoadEvent(t_s=1, kind="reset", detail="connection reset by peer"),
            ],
        )
    )
    said = text.partition("Error distribution:\n")[2].splitlines()[:4]
    assert said == [
        f'  [3]\tPost "{URL}": EOF',
        f'  [2]\tPost "{URL}": context deadline exceeded (Client.Timeout exceeded while awaiting headers)',
        f'  [1]\tPost "{URL}": dial tcp 127.0.0.1:8000: connect: connection refused',
        f'  [4]\tPost "{URL}": net/http: HTTP/1.x transport connection broken: protocol',
    ]


def test_statuses_are_in_order_and_none_of_them_is_an_error() -> None:
    text = asked("").report(outcome(status={"500": 2, "200": 3}, errors={"check": 2}))
    assert "Status code distribution:\n  [200]\t3 responses\n  [500]\t2 responses\n\n\n" in text


def test_what_differs_is_said_where_it_does() -> None:
    requests = {"intended": 12, "sent": 12, "completed": 8, "ok": 8, "failed": 2, "unanswered": 2, "unsent": 0}
    found = read([URL, "-n", "5"]).notes(outcome(requests=requests, status={"200": 3, "302": 5}, errors={"reset": 2}, duration_s=2.0))
    assert [note.split(":")[0].split(";")[0].split(",")[0] for note in found] == [
        "DNS-lookup and req write are 0",
        "Requests/sec counts answers",
        "5 answers were redirects",
        "2 requests were in flight at the end",
        "as by hey",
    ]
    assert "would say 5.0000" in found[1]
    assert len(asked("-disable-redirects").notes(outcome(status={"302": 1}))) == 1


def test_a_load_that_cannot_begin_is_a_report_of_failures_as_heys_is() -> None:
    exit_ = asked("-n 8 -c 4").cannot_begin(TargetError("connection refused by 127.0.0.1:8000", hint="start the server"))
    assert isinstance(exit_, ToolExit)
    assert exit_.code == 0
    assert "\n  Average:\t NaN secs\n" in exit_.out
    assert f'Error distribution:\n  [4]\tGet "{URL}": dial tcp 127.0.0.1:8000: connect: connection refused\n' in exit_.out
    assert "start the server" in exit_.err


def test_a_row_for_each_answer_and_none_for_what_got_none(tmp_path: Path) -> None:
    log = np.zeros(3, REQUEST_DTYPE)
    log["intended_ns"], log["written_ns"], log["first_byte_ns"], log["last_byte_ns"] = MS, 2 * MS, 5 * MS, 6 * MS
    log["connect_ns"], log["status"] = [MS, 0, 0], [200, 0, 503]
    log["outcome"] = [0, 3, 5]
    (tmp_path / "log").write_bytes(log.tobytes())
    assert csv_text(tmp_path / "log").splitlines() == [
        "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset",
        "0.0050,0.0010,0.0000,0.0000,0.0030,0.0010,200,0.0010",
        "0.0050,0.0000,0.0000,0.0000,0.0030,0.0010,503,0.0010",
    ]


def test_more_than_a_million_answers_all_count() -> None:
    times = Times.of(Counter({MS: 1_500_000, 2 * MS: 500_000}))
    assert histogram_rows(times).splitlines()[-1] == f"  0.002 [500000]\t|{'■' * 13}"
