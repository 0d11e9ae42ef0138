"""Tests ab's flags as a load, and limits of its rounding, warnings and tables; `tests/end_to_end/test_ab.py` has the
real ab."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.load_summary import load_end
from weir.compat.ab import AbFrontEnd, read_command_line
from weir.compat.ab_report import Clocks, format_csv, list_times, read_clocks, round_ms
from weir.compat.flags import ToolError
from weir.compat.front_end import LoadResult
from weir.compat.latencies import Times, sort_counts
from weir.model.errors import TargetError, UsageError
from weir.model.load import ClosedLoad
from weir.model.load_records import LoadEvent
from weir.model.request_log import REQUEST_DTYPE

URL = "http://127.0.0.1:8000/"
US, MS = 1_000, 1_000_000


def ab(line: str, url: str = URL) -> AbFrontEnd:
    return read_command_line("ab", [*line.split(), url])


def result(*, events: Sequence[LoadEvent] = (), times_ns: Sequence[int] = (MS,), **given: Any) -> LoadResult:
    return LoadResult(load_end({"response_time": times_ns}, **given), events=events)


def times(*values_ns: int) -> Times:
    return sort_counts(Counter(values_ns))


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
def test_counts_and_limits_become_a_closed_load(
    line: str, load: ClosedLoad, requests: int, duration_s: float, timeout_s: float
) -> None:
    plan = ab(line).plan
    assert (plan.load, plan.requests, plan.duration_s, plan.timeout_s) == (load, requests, duration_s, timeout_s)


def test_the_other_flags_become_the_rest_of_the_plan() -> None:
    plan = ab("-B 127.0.0.2 -k").plan
    assert (plan.keep_alive, plan.local_addresses, plan.tls) == (True, ("127.0.0.2",), None)
    tls = ab("", "https://127.0.0.1/").plan.tls
    assert tls is not None
    assert (tls.insecure, tls.resumption) == (True, False)
    assert ab("").plan.keep_alive is False


@pytest.mark.parametrize(
    ("url", "target", "host", "told"),
    [
        ("localhost/", "http://localhost/", "localhost", ("localhost", "80", "/")),
        ("http://LocalHost:80/a?b=c", "http://localhost/a?b=c", "localhost", ("localhost", "80", "/a?b=c")),
        ("http://[::1]:8080/", "http://[::1]:8080/", "[::1]:8080", ("::1", "8080", "/")),
        ("https://a.example:443/", "https://a.example/", "a.example", ("a.example", "443", "/")),
        ("https://a.example:80/", "https://a.example:80/", "a.example:80", ("a.example", "80", "/")),
    ],
)
def test_a_url_is_taken_apart_as_ab_does(url: str, target: str, host: str, told: tuple[str, str, str]) -> None:
    found = ab("", url)
    assert (found.plan.request.target, dict(found.plan.request.headers)["Host"]) == (target, host)
    lines = dict(line.split(":", 1) for line in found.format_report(result()).splitlines() if ":" in line)
    assert tuple(lines[label].strip() for label in ("Server Hostname", "Server Port", "Document Path")) == told


def test_the_native_command_does_the_same() -> None:
    assert ab("-n 100 -c 10 -k -C a=b").command == (
        "weir load http://127.0.0.1:8000/ -c 10 -d 168h -n 100 -H 'Cookie: a=b' -H 'User-Agent: ApacheBench/2.3' -H 'Accept: */*' "
        "--timeout 30s"
    )
    assert "--no-keepalive" in ab("").command


@pytest.mark.parametrize(
    ("time_ns", "milliseconds"),
    [
        (0, 0),
        (499 * US, 0),
        (499_999, 0),
        (500 * US, 1),
        (1_499 * US, 1),
        (1_499_999, 1),
        (1_500 * US, 2),
        (10**12, 1_000_000),
    ],
)
def test_times_are_whole_milliseconds_rounded_half_up(time_ns: int, milliseconds: int) -> None:
    assert round_ms(time_ns) == milliseconds


def test_the_rows_are_aligned_however_long_their_numbers() -> None:
    assert list(list_times(clocks(times(MS, 3 * MS)))) == [
        "              min  mean[+/-sd] median   max",
        "Connect:        0    0   0.0      0       0",
        "Processing:     1    2   1.4      2       3",
        "Waiting:        1    2   1.4      2       3",
        "Total:          1    2   1.4      2       3",
    ]
    assert (
        list(list_times(clocks(times(12_345 * MS, 123_456 * MS))))[4]
        == "Total:      12345 67901 78567.3  67901  123456"
    )


def test_percentages_are_those_at_their_rank_in_whole_milliseconds() -> None:
    text = ab("-n 200").format_report(result(times_ns=[each * MS for each in range(1, 201)]))
    shown = text.partition("(ms)\n")[2].partition("(ms)\n")[2].splitlines()
    assert shown == [
        "  50%    101", "  66%    133", "  75%    151", "  80%    161", "  90%    181", "  95%    191", "  98%    197", "  99%    199",
        " 100%    200 (longest request)",
    ]  # fmt: skip


def test_the_csv_has_a_row_for_each_percentage() -> None:
    rows = format_csv(times(*(each * MS for each in range(1, 201)))).splitlines()
    assert (rows[0], len(rows)) == ("Percentage served,Time in ms", 102)
    assert (rows[1], rows[51], rows[100], rows[101]) == ("0,1.000", "50,101.000", "99,199.000", "100,200.000")


def test_times_of_a_log_are_exact_and_have_a_connections_handshake(tmp_path: Path) -> None:
    log = np.zeros(3, REQUEST_DTYPE)
    log["written_ns"], log["first_byte_ns"], log["last_byte_ns"] = 2 * MS, 3 * MS, [9 * MS, 7 * MS, 4 * MS]
    log["connect_ns"], log["status"] = 1_600 * US, [200, 0, 404]
    (tmp_path / "log").write_bytes(log.tobytes())
    found = read_clocks(LoadResult(load_end({}), request_log=tmp_path / "log"))
    assert [clock.values for clock in (found.connect, found.processing, found.waiting, found.total)] == [
        (1_600 * US,), (2 * MS, 7 * MS), (MS,), (4 * MS, 9 * MS),
    ]  # fmt: skip


def test_a_request_on_a_connection_that_was_there_took_no_time_to_connect() -> None:
    found = read_clocks(LoadResult(load_end({"response_time": [MS] * 10, "connect_time": [4 * MS, 2 * MS]})))
    assert (found.connect.count, found.connect.shortest, found.connect.longest, found.connect.mean) == (
        10,
        0,
        4 * MS,
        600 * US,
    )


@pytest.mark.parametrize(("made", "kept"), [(2, 10), (5, 7), (10, 0), (12, 0)])
def test_keep_alive_requests_are_those_whose_connection_was_not_replaced(made: int, kept: int) -> None:
    end = load_end({"response_time": [MS] * 10, "connect_time": [MS] * made})
    text = ab("-n 10 -c 2 -k").format_report(LoadResult(end))
    assert f"\nKeep-Alive requests:    {kept}\n" in text


def test_keep_alive_requests_are_never_fewer_than_none() -> None:
    end = load_end({"response_time": [MS], "connect_time": [MS] * 10}, errors={"reset": 9})
    assert "\nKeep-Alive requests:    0\n" in ab("-n 10 -c 2 -k").format_report(LoadResult(end))


def test_failures_are_added_up_and_told_by_kind() -> None:
    told = result(
        times_ns=[MS] * 8,
        errors={"connect": 1, "reset": 2, "timeout": 3, "protocol": 4, "check": 5},
        other_length=6,
        status={"200": 3, "500": 5},
    )
    text = ab("-n 10").format_report(told)
    assert (
        "\nFailed requests:        16\n   (Connect: 1, Receive: 2, Length: 6, Exceptions: 7)\nNon-2xx responses:      5\n"
        in text
    )
    assert "(Connect: 1, Receive: 2, Length: 0, Exceptions: 7)" in ab("-n 10 -l").format_report(told)


def test_rates_are_those_of_the_answers() -> None:
    text = ab("-n 10 -c 5").format_report(
        result(times_ns=[MS] * 8, duration_s=2.0, bytes={"received": 4096, "received_body": 100, "sent": 1024})
    )
    assert "\nRequests per second:    4.00 [#/sec] (mean)\nTime per request:       1250.000 [ms] (mean)\n" in text
    assert "\nTime per request:       250.000 [ms] (mean, across all concurrent requests)\n" in text
    assert "\nTransfer rate:          2.00 [Kbytes/sec] received\n" in text
    assert "sent" not in text


def test_nothing_answered_is_a_report_without_rates_and_times() -> None:
    text = ab("-n 4").format_report(result(times_ns=[], errors={"reset": 4}))
    assert "Complete requests:      0\n" in text
    assert "per second" not in text
    assert "Connection Times" not in text


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
def test_progress_is_told_from_151_requests_on_each_tenth_but_a_hundred_at_least(
    requests: int, told: list[int]
) -> None:
    found = ab(f"-n {requests}")
    steps = [*range(0, requests, 130), requests]
    lines = "".join(found.format_progress(before, now, has_ended=False) for before, now in pairwise(steps))
    assert lines == "".join(f"Completed {count} requests\n" for count in told)
    assert found.format_progress(requests, requests, has_ended=True) == (
        f"Finished {requests} requests\n" if told else ""
    )
    assert ab(f"-q -n {requests}").format_progress(0, requests, has_ended=False) == ""


def test_a_reset_has_abs_exit_code_unless_it_is_to_go_on() -> None:
    was_reset = result(errors={"reset": 1}, events=[LoadEvent(t_s=0, kind="reset", detail="connection reset by peer")])
    assert (ab("").choose_exit_code(was_reset), ab("-r").choose_exit_code(was_reset)) == (104, 0)
    assert "without -r, ab ends at the first socket error" in "\n".join(ab("").list_differences(was_reset))
    # For ab, a connection that closes without a response is no error.
    was_closed = result(
        errors={"reset": 1}, events=[LoadEvent(t_s=0, kind="reset", detail="connection closed without an answer")]
    )
    assert ab("").choose_exit_code(was_closed) == 0


def test_answers_that_never_came_have_abs_exit_code() -> None:
    assert ab("").choose_exit_code(result(times_ns=[], errors={"timeout": 4})) == 70_007 & 255
    assert ab("").choose_exit_code(result(errors={"timeout": 4})) == 0


def test_ctrl_c_has_abs_exit_code() -> None:
    end = replace(load_end({"response_time": [MS]}), stopped="signal")
    assert ab("").choose_exit_code(LoadResult(end)) == 1


def test_a_load_that_cannot_begin_has_abs_heading_and_exit_codes() -> None:
    text, code = ab("").format_failed_start(TargetError("connection refused by 127.0.0.1:8000"))
    assert code == 111
    assert text.endswith("Benchmarking 127.0.0.1 (be patient)...")
    assert ab("").format_failed_start(UsageError('plan, key target: the host "x" has no address'))[1] == 670_002 & 255
    assert ab("").format_failed_start(UsageError("plan, key timeout_s: found 0")) == ("", 22)


@pytest.mark.parametrize(
    ("line", "message", "code"),
    [
        ("-n x", "-n: found 'x', expected a whole number such as 100", 22),
        ("-n 0", "-n: found 0, expected 1 or more", 1),
        ("-c 5 -n 2", "-c: found 5, expected 1 to 2, the value of -n", 22),
        ("-c 0", "-c: found 0, expected 1 to 1", 22),
        ("-Y", "found -Y, expected a flag of ab", 22),
        ("-m PURGE", "-m: found 'PURGE', expected one of: GET, POST", 22),
        ("-H nonsense", "-H: found 'nonsense', expected 'Name: value'", 22),
        ("-i -p body.json", "found flags for POST and HEAD, expected one of -i, -p and -u", 1),
        ("-p missing", "-p: missing: cannot be read: No such file or directory", 1),
        ("-u missing", "-u: missing: cannot be read: No such file or directory", 1),
        (URL, "URL: found 'http://127.0.0.1:8000/' after the URL, expected flags before the URL", 22),
        *(
            (f"{flag} 1", f"{flag}: weir does not support this flag", 22)
            for flag in ("-X", "-P", "-b", "-f", "-Z", "-E", "-g", "-x", "-y", "-z")
        ),
        *((flag, f"{flag}: weir does not support this flag", 22) for flag in ("-w", "-S", "-I")),
    ],
)
def test_a_wrong_command_line_is_told_and_has_abs_exit_code(line: str, message: str, code: int) -> None:
    with pytest.raises(ToolError) as caught:
        ab(line)
    assert caught.value.message.startswith(message)
    assert caught.value.code == code


def test_a_url_without_a_path_is_refused_as_by_ab() -> None:
    with pytest.raises(ToolError, match="expected a path such as / after the host") as caught:
        ab("", "http://127.0.0.1")
    assert caught.value.code == 22
