"""ab's flags as a load, and its roundings, warnings and tables at their boundaries; the real ab is in `tests/end_to_end/test_ab.py`."""

import doctest
import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.load_summary import load_end
from weir.compat import ab_report
from weir.compat.ab import Ab, read
from weir.compat.ab_report import Clocks, gnuplot_lines, percentages_csv, short_table, times_table, whole_ms
from weir.compat.front_end import Outcome
from weir.compat.times import Times
from weir.model.errors import TargetError, UsageError
from weir.model.load import ClosedLoad
from weir.model.records import LoadEvent
from weir.model.request_log import REQUEST_DTYPE

URL = "http://127.0.0.1:8000/"
US, MS = 1_000, 1_000_000


def asked(line: str) -> Ab:
    return read([*line.split(), URL])


def outcome(*, events: Sequence[LoadEvent] = (), times_ns: Sequence[int] = (MS,), interrupted: bool = False, **given: Any) -> Outcome:
    return Outcome(load_end({"response_time": times_ns}, **given), (), None, interrupted, events)


def times(*values_ns: int) -> Times:
    return Times.of(Counter(values_ns))


def clocks(total: Times) -> Clocks:
    return Clocks(times(*[0] * total.count), total, total, total)


@pytest.mark.parametrize(
    ("line", "load", "requests", "duration_s", "timeout_s"),
    [
        ("", ClosedLoad(1), 1, 604_800, 30),
        ("-n100 -c10", ClosedLoad(10), 100, 604_800, 30),
        ("-t 5", ClosedLoad(1), 50_000, 5, 30),
        ("-n 10 -t 5", ClosedLoad(1), 50_000, 5, 30),
        ("-t 5 -n 10 -s 7", ClosedLoad(1), 10, 5, 7),
        ("-s 0", ClosedLoad(1), 1, 604_800, 3_600),
    ],
)
def test_counts_and_limits_become_a_closed_load(line: str, load: ClosedLoad, requests: int, duration_s: float, timeout_s: float) -> None:
    plan = asked(line).plan
    assert (plan.load, plan.requests, plan.duration_s, plan.timeout_s) == (load, requests, duration_s, timeout_s)


def test_the_other_flags_become_the_rest_of_the_plan() -> None:
    plan = asked("-B 127.0.0.2 -k").plan
    assert (plan.keep_alive, plan.local_addresses, plan.tls) == (True, ("127.0.0.2",), None)
    tls = read(["https://127.0.0.1/"]).plan.tls
    assert tls is not None
    assert (tls.insecure, tls.resumption) == (True, False)
    assert asked("").plan.keep_alive is False


@pytest.mark.parametrize(
    ("url", "target", "host", "told"),
    [
        ("localhost/", "http://localhost/", "localhost", ("localhost", "80", "/")),
        ("http://LocalHost:80/a?b=c", "http://LocalHost/a?b=c", "LocalHost", ("LocalHost", "80", "/a?b=c")),
        ("http://[::1]:8080/", "http://[::1]:8080/", "[::1]:8080", ("::1", "8080", "/")),
        ("https://a.example:443/", "https://a.example/", "a.example", ("a.example", "443", "/")),
        ("https://a.example:80/", "https://a.example:80/", "a.example:80", ("a.example", "80", "/")),
    ],
)
def test_a_url_is_taken_apart_as_ab_does(url: str, target: str, host: str, told: tuple[str, str, str]) -> None:
    found = read([url])
    assert (found.plan.request.target, dict(found.plan.request.headers)["Host"]) == (target, host)
    lines = dict(line.split(":", 1) for line in found.report(outcome()).splitlines() if ":" in line)
    assert tuple(lines[label].strip() for label in ("Server Hostname", "Server Port", "Document Path")) == told


def test_the_native_command_does_the_same() -> None:
    assert asked("-n 100 -c 10 -k -C a=b").native == (
        "weir load http://127.0.0.1:8000/ -c 10 -d 168h -n 100 -H 'Cookie: a=b' -H 'User-Agent: ApacheBench/2.3' -H 'Accept: */*' "
        "--timeout 30s"
    )
    assert "--no-keepalive" in asked("").native


def test_the_examples_of_the_docstrings_are_true() -> None:
    assert doctest.testmod(ab_report).failed == 0


@pytest.mark.parametrize(
    ("time_ns", "milliseconds"),
    [(0, 0), (499 * US, 0), (499_999, 0), (500 * US, 1), (1_499 * US, 1), (1_499_999, 1), (1_500 * US, 2), (10**12, 1_000_000)],
)
def test_times_are_whole_milliseconds_rounded_half_up(time_ns: int, milliseconds: int) -> None:
    assert whole_ms(time_ns) == milliseconds


def test_the_rows_are_aligned_however_long_their_numbers() -> None:
    few, many = clocks(times(MS, 3 * MS)), clocks(times(12_345 * MS, 123_456 * MS))
    assert times_table(few)[:5] == [
        "              min  mean[+/-sd] median   max",
        "Connect:        0    0   0.0      0       0",
        "Processing:     1    2   1.4      2       3",
        "Waiting:        1    2   1.4      2       3",
        "Total:          1    2   1.4      2       3",
    ]
    assert times_table(many)[4] == "Total:      12345 67901 78567.3  67901  123456"
    assert short_table(few) == [
        "              min   avg   max",
        "Connect:        0     0    0",
        "Processing:     1     2    3",
        "Waiting:        1     2    3",
        "Total:          1     2    3",
    ]


def warnings_of(*values_ns: int) -> list[str]:
    """The warnings on the total time alone."""
    nothing = times(*[0] * len(values_ns))
    return times_table(Clocks(nothing, nothing, nothing, times(*values_ns)))[5:]


def test_mean_and_median_apart_by_more_than_a_deviation_are_a_warning_and_by_two_an_error() -> None:
    assert warnings_of(MS, MS, MS) == []
    # Mean 1 ms after rounding, median 0, and the deviation right above and right below a half of that.
    assert warnings_of(*[400 * US] * 10, *[1_500 * US] * 4) == [
        "WARNING: The median and mean for the total time are not within a normal deviation",
        "        These results are probably not that reliable.",
    ]
    assert warnings_of(*[400 * US] * 10, *[1_400 * US] * 4) == [
        "ERROR: The median and mean for the total time are more than twice the standard",
        "       deviation apart. These results are NOT reliable.",
    ]


def test_percentages_are_those_at_their_rank_in_whole_milliseconds() -> None:
    text = asked("-n 200").report(outcome(times_ns=[each * MS for each in range(1, 201)]))
    shown = text.partition("(ms)\n")[2].partition("(ms)\n")[2].splitlines()
    assert shown == [
        "  50%    101", "  66%    133", "  75%    151", "  80%    161", "  90%    181", "  95%    191", "  98%    197", "  99%    199",
        " 100%    200 (longest request)",
    ]  # fmt: skip


def test_the_csv_has_a_row_for_each_percentage() -> None:
    rows = percentages_csv(times(*(each * MS for each in range(1, 201)))).splitlines()
    assert (rows[0], len(rows)) == ("Percentage served,Time in ms", 102)
    assert (rows[1], rows[51], rows[100], rows[101]) == ("0,1.000", "50,101.000", "99,199.000", "100,200.000")


def test_gnuplot_has_a_line_for_each_answer_the_shortest_first(tmp_path: Path) -> None:
    log = np.zeros(3, REQUEST_DTYPE)
    log["written_ns"], log["first_byte_ns"], log["last_byte_ns"] = 2 * MS, 3 * MS, [9 * MS, 7 * MS, 4 * MS]
    log["connect_ns"], log["status"] = 1_600 * US, [200, 0, 404]
    (tmp_path / "log").write_bytes(log.tobytes())
    head, *rows = gnuplot_lines(tmp_path / "log", 1_700_000_000 * 10**9).splitlines()
    assert head.split("\t") == ["starttime", "seconds", "ctime", "dtime", "ttime", "wait"]
    assert [row.split("\t")[1:] for row in rows] == [["1700000000", "2", "2", "4", "1"], ["1700000000", "2", "7", "9", "1"]]


def test_a_request_on_a_connection_that_was_there_took_no_time_to_connect() -> None:
    found = Clocks.of(load_end({"response_time": [MS] * 10, "connect_time": [4 * MS, 2 * MS]}))
    assert (found.connect.count, found.connect.shortest, found.connect.longest, found.connect.mean) == (10, 0, 4 * MS, 600 * US)


@pytest.mark.parametrize(("made", "kept"), [(2, 10), (5, 7), (10, 0), (12, 0)])
def test_keep_alive_requests_are_those_whose_connection_was_not_replaced(made: int, kept: int) -> None:
    end = load_end({"response_time": [MS] * 10, "connect_time": [MS] * made})
    text = asked("-n 10 -c 2 -k").report(Outcome(end, (), None, interrupted=False))
    assert f"\nKeep-Alive requests:    {kept}\n" in text


def test_keep_alive_requests_are_never_fewer_than_none() -> None:
    end = load_end({"response_time": [MS], "connect_time": [MS] * 10}, errors={"reset": 9})
    assert "\nKeep-Alive requests:    0\n" in asked("-n 10 -c 2 -k").report(Outcome(end, (), None, interrupted=False))


def test_failures_are_added_up_and_told_by_kind() -> None:
    told = outcome(
        times_ns=[MS] * 8,
        errors={"connect": 1, "reset": 2, "timeout": 3, "protocol": 4, "check": 5},
        other_length=6,
        status={"200": 3, "500": 5},
    )
    text = asked("-n 10").report(told)
    assert "\nFailed requests:        16\n   (Connect: 1, Receive: 2, Length: 6, Exceptions: 7)\nNon-2xx responses:      5\n" in text
    assert "(Connect: 1, Receive: 2, Length: 0, Exceptions: 7)" in asked("-n 10 -l").report(told)


def test_rates_are_those_of_the_answers() -> None:
    text = asked("-n 10 -c 5").report(
        outcome(times_ns=[MS] * 8, duration_s=2.0, bytes={"received": 4096, "received_body": 100, "sent": 1024})
    )
    assert "\nRequests per second:    4.00 [#/sec] (mean)\nTime per request:       1250.000 [ms] (mean)\n" in text
    assert "\nTime per request:       250.000 [ms] (mean, across all concurrent requests)\n" in text
    assert "\nTransfer rate:          2.00 [Kbytes/sec] received\n" in text
    assert "sent" not in text


def test_nothing_answered_is_a_report_without_rates_and_times() -> None:
    text = asked("-n 4").report(outcome(times_ns=[], errors={"reset": 4}))
    assert "Complete requests:      0\n" in text
    assert "per second" not in text
    assert "Connection Times" not in text


def test_the_html_table_of_connections_that_took_longer_than_their_answers_has_no_negative_times() -> None:
    end = load_end({"response_time": [MS] * 2, "service_time": [MS] * 2, "connect_time": [9 * MS] * 2})
    table = asked("-w -k -n 2 -c 2").report(Outcome(end, (), None, interrupted=False))
    rows = re.findall(r"<th [^>]*>(\w+):</th>(.*)</tr>", table)[-3:]
    found = [(label, re.findall(r"<td [^>]*>\s*(-?\d+)</td>", cells)) for label, cells in rows]
    assert found == [("Connect", ["9"] * 3), ("Processing", ["1"] * 3), ("Total", ["1"] * 3)]


@pytest.mark.parametrize(
    ("requests", "told"),
    [
        (150, []),
        (151, [100]),
        (1_000, [100, 200, 300, 400, 500, 600, 700, 800, 900, 1_000]),
        (1_009, [100, 200, 300, 400, 500, 600, 700, 800, 900, 1_000]),
        (5_000, [500, 1_000, 1_500, 2_000, 2_500, 3_000, 3_500, 4_000, 4_500, 5_000]),
    ],
)
def test_progress_is_told_from_151_requests_on_each_tenth_but_a_hundred_at_least(requests: int, told: list[int]) -> None:
    found = asked(f"-n {requests}")
    steps = [*range(0, requests, 130), requests]
    lines = "".join(found.progress(before, now) for before, now in pairwise(steps))
    assert lines == "".join(f"Completed {count} requests\n" for count in told)
    assert asked(f"-q -n {requests}").progress(0, requests) == ""


def test_a_reset_has_abs_exit_code_unless_it_is_to_go_on() -> None:
    was_reset = outcome(errors={"reset": 1}, events=[LoadEvent(t_s=0, kind="reset", detail="connection reset by peer")])
    assert (asked("").exit_code(was_reset), asked("-r").exit_code(was_reset)) == (104, 0)
    assert asked("").complaints(was_reset) == "apr_socket_recv: Connection reset by peer (104)\n"
    # A connection that ends without one is no error for ab.
    was_closed = outcome(errors={"reset": 1}, events=[LoadEvent(t_s=0, kind="reset", detail="connection closed without an answer")])
    assert asked("").exit_code(was_closed) == 0


def test_ctrl_c_has_abs_exit_code() -> None:
    assert asked("").exit_code(outcome(interrupted=True)) == 1


def test_a_load_that_cannot_begin_has_abs_words_and_exit_codes() -> None:
    refused = asked("").cannot_begin(TargetError("connection refused by 127.0.0.1:8000"))
    assert (refused.code, refused.err.splitlines()[0]) == (111, "apr_socket_recv: Connection refused (111)")
    assert refused.out.endswith("Benchmarking 127.0.0.1 (be patient)...")
    unknown = asked("").cannot_begin(UsageError('plan, key target: the host "x" has no address'))
    assert unknown.code == 670_002 & 255
    assert asked("").cannot_begin(UsageError("plan, key timeout_s: found 0")).code == 22
