"""Tests command lines of wrk and wrk2 as loads, and their reports; `tests/end_to_end/test_wrk.py` has the real wrk."""

import os
import shlex
from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.load_summary import load_end
from weir.compat.flags import ToolError
from weir.compat.front_end import LoadResult, is_unknown_host
from weir.compat.latencies import sort_counts
from weir.compat.reports import read_report
from weir.compat.wrk import WrkFrontEnd, read_command_line
from weir.compat.wrk_report import list_thread_rates, measure_share, measure_spread
from weir.load_spec import LoadSpec
from weir.model.errors import TargetError, UsageError
from weir.model.load import ClosedLoad, OpenLoad
from weir.model.load_records import Interval

URL = "http://127.0.0.1:8000/"


def wrk(line: str) -> WrkFrontEnd:
    return read_command_line("wrk", shlex.split(line))


def wrk2(line: str) -> WrkFrontEnd:
    return read_command_line("wrk2", shlex.split(line))


def interval(index: int, completed: int, length_s: float = 0.1) -> Interval:
    return Interval.from_json({
            "index": index, "start_s": index / 10, "end_s": index / 10 + length_s, "due": 0, "sent": 0, "completed": completed,
            "ok": completed, "failed": 0, "errors": {}, "in_flight": 0, "oldest_age_us": 0.0, "response_time_us": {}, "histogram": "",
        })  # fmt: skip


def result(times_us: Sequence[int] = (), rates: Sequence[int] = (), **changes: Any) -> LoadResult:
    times_ns = [time_us * 1000 for time_us in times_us]
    mean = sum(times_us) / len(times_us) if times_us else None
    found = {"mean": mean, "stdev": 100.0, "p50": mean, "p75": mean, "p90": mean, "p99": mean}
    ends = {"min": min(times_us), "max": max(times_us)} if times_us else {}
    clocks = {f"{clock}_us": found | ends if times_us else {} for clock in ("response_time", "service_time")}
    requests = {
        "intended": 1000,
        "sent": 1000,
        "completed": 1000,
        "ok": 1000,
        "failed": 0,
        "unanswered": 0,
        "unsent": 0,
    }
    end = load_end(
        {"response_time": times_ns, "service_time": times_ns},
        duration_s=10.0,
        **clocks,
        **{"requests": requests} | changes,
    )
    return LoadResult(end, [interval(index, rate) for index, rate in enumerate(rates)])


@pytest.mark.parametrize(
    ("line", "connections", "lasts_s", "timeout_s"),
    [
        (f"-t12 -c400 -d30s {URL}", 400, 30, 2),
        (f"-c 100 -d 5 --latency {URL}", 100, 5, 2),
        (URL, 10, 10, 2),
        (f"{URL} -c 1k -d 2m -T 1m", 1000, 120, 60),
        (f"{URL} -- one two", 10, 10, 2),
    ],
)
def test_the_command_lines_of_articles_are_loads(line: str, connections: int, lasts_s: float, timeout_s: float) -> None:
    plan = wrk(line).plan
    assert plan.load == ClosedLoad(connections)
    assert (plan.request.method, plan.request.target) == ("GET", URL)
    assert (plan.duration_s, plan.timeout_s, plan.tls) == (lasts_s, timeout_s, None)


def test_the_plan_is_that_of_the_native_command_line() -> None:
    native = LoadSpec(urls=(URL,), connections=64, duration_s=3.0, retry=False).to_plan()
    assert wrk(f"-t1 -c64 -d3s {URL}").plan.to_json() == native.to_json()


def test_wrk2_loads_at_a_rate() -> None:
    plan = wrk2(f"-c 100 -d 30 -R 1k --latency {URL}").plan
    assert plan.load == OpenLoad(1000, 100)


def test_there_are_no_more_threads_than_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
    front_ends = [wrk(f"-t {threads} -c 12 {URL}") for threads in (1, 3, 12)]
    assert [one.plan.threads for one in front_ends] == [1, 3, 3]
    notes = ["\n".join(one.list_differences(result([100]))) for one in front_ends]
    assert ["the load used 3 threads" in note for note in notes] == [False, False, True]


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        (["A: 1", "B: x: y"], (("A", "1"), ("B", "x: y"))),
        (["A: 1", "A: 2"], (("A", "2"),)),
        (["A:1", "nothing"], ()),
        (["Content-Length: 5"], ()),
        (["A: "], (("A", ""),)),
    ],
)
def test_headers_are_those_that_wrk_sends(given: list[str], sent: tuple[tuple[str, str], ...]) -> None:
    assert wrk(shlex.join([URL, *(word for text in given for word in ("-H", text))])).plan.request.headers == sent


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("http://localhost", "http://localhost/"),
        ("http://localhost?a=/b", "http://localhost/?a=/b"),
        ("http://user:word@localhost:81/a?b=c", "http://localhost:81/a?b=c"),
        ("http://[::1]:81/", "http://[::1]:81/"),
        ("https://localhost/", "https://localhost/"),
    ],
)
def test_the_target_is_the_url_without_credentials(url: str, target: str) -> None:
    plan = wrk(url).plan
    assert plan.request.target == target
    assert (plan.tls is not None and plan.tls.insecure) == url.startswith("https")


@pytest.mark.parametrize(
    ("tool", "line", "message", "hint"),
    [
        (
            "wrk",
            f"-s post.lua {URL}",
            "-s: weir does not support this flag",
            "weir load URL --scenario FILE (see docs/guides/scenarios.md",
        ),
        ("wrk", f"-R 100 {URL}", "found -R, expected a flag of wrk", "weir wrk -h"),
        ("wrk", f"-c 1.5k {URL}", "-c: found '1.5k', expected a whole number such as 400, 10k or 1M", "weir wrk -h"),
        ("wrk", f"-c 5s {URL}", "-c: found '5s', expected a whole number such as 400, 10k or 1M", "weir wrk -h"),
        ("wrk", f"-d 500ms {URL}", "-d: found '500ms', expected whole seconds, minutes or hours", "weir wrk -h"),
        ("wrk", f"-T 0 {URL}", "-T: found 0, expected 1 or more", "weir wrk -h"),
        ("wrk", f"-c 1 {URL}", "-c: found 1, expected 2 or more, one per thread (-t)", "weir wrk -h"),
        ("wrk2", URL, "-R: found no rate, expected requests per second", "weir wrk2 -t2 -c100"),
        ("wrk", "", "URL: found '', expected a URL such as http://", "weir wrk -t2 -c100"),
    ],
)
def test_a_wrong_command_line_is_told_and_has_wrks_exit_code(tool: str, line: str, message: str, hint: str) -> None:
    with pytest.raises(ToolError) as caught:
        read_command_line(tool, line.split())
    assert caught.value.message.startswith(message)
    assert caught.value.hint.startswith(hint)
    assert caught.value.code == 1


@pytest.mark.parametrize(
    ("line", "native"),
    [
        (f"-t1 {URL}", f"weir load {URL} -c 10 -d 10s --no-retry"),
        (f"-t1 -c5 -d1m -T3 -H 'A: b c' {URL}", f"weir load {URL} -c 5 -d 1m -H 'A: b c' --timeout 3s --no-retry"),
        ("-t1 https://h/", "weir load https://h/ -c 10 -d 10s --no-retry --insecure"),
    ],
)
def test_the_native_command_line_does_the_same(line: str, native: str) -> None:
    assert wrk(line).command == native


def test_wrk2s_native_command_line_has_the_rate() -> None:
    assert "-R 2000" in wrk2(f"-R2k {URL}").command


def test_a_load_that_cannot_begin_has_wrks_exit_code_and_no_output() -> None:
    unknown = UsageError('plan, key target: the host "x" has no address')
    assert wrk(URL).format_failed_start(TargetError("connection refused by 127.0.0.1:8000")) == ("", 1)
    assert wrk(URL).format_failed_start(unknown) == ("", 1)
    assert is_unknown_host(unknown)


def test_the_report_is_laid_out_as_wrk_lays_it_out() -> None:
    front_end = wrk(f"-t1 -c4 -d51 -L {URL}")
    found = result(
        [900, 1000, 1000, 1100], [10, 20, 30], bytes={"received": 8_710}, status={"200": 900, "404": 99, "500": 1}
    )
    assert front_end.format_heading() == f"Running 1m test @ {URL}\n  1 threads and 4 connections\n"
    assert front_end.format_report(found) == (
        "  Thread Stats   Avg      Stdev     Max   +/- Stdev\n"
        "    Latency     1.00ms  100.00us   1.10ms  100.00%\n"
        "    Req/Sec   200.00    100.00   300.00    100.00%\n"
        "  Latency Distribution\n"
        "     50%    1.00ms\n"
        "     75%    1.00ms\n"
        "     90%    1.00ms\n"
        "     99%    1.00ms\n"
        "  1000 requests in 10.00s, 8.51KB read\n"
        "  Non-2xx or 3xx responses: 100\n"
        "Requests/sec:    100.00\n"
        "Transfer/sec:      0.85KB\n"
    )


def test_nothing_answered_is_no_number() -> None:
    report = wrk(f"-L {URL}").format_report(
        result(bytes={"received": 0}, errors={"reset": 3, "protocol": 4, "timeout": 2, "connect": 1})
    )
    assert "    Latency     0.00us    0.00us   0.00us    -nan%\n" in report
    assert "    Req/Sec     0.00      0.00     0.00      -nan%\n" in report
    assert "     99%    0.00us\n" in report
    assert "  Socket errors: connect 1, read 7, write 0, timeout 2\n" in report


def test_wrk2_has_a_block_for_each_clock() -> None:
    report = wrk2(f"-U -R 10 {URL}").format_report(result([1000] * 5, [10]))
    assert report.count("Detailed Percentile spectrum:") == 2
    assert report.count("-" * 58 + "\n") == 2
    assert (
        "\n\n  Latency Distribution (HdrHistogram - Uncorrected Latency (measured without taking delayed starts into account))\n"
        in report
    )
    recorded = wrk2(f"-L -R 10 {URL}").format_report(result([1000] * 5, [10]))
    assert "Uncorrected" not in recorded
    assert "HdrHistogram" not in wrk2(f"-R 10 {URL}").format_report(result([1000] * 5, [10]))


def test_what_reads_reports_of_wrk2_reads_this_one() -> None:
    front_end = wrk2(f"-c 8 -L -R 10 {URL}")
    text = front_end.format_heading() + front_end.format_report(result([1000] * 99 + [5000], [10, 12]))
    results = read_report(text, "wrk2")
    assert results is not None
    (reported,) = results
    assert (reported.tool, reported.users, reported.requests) == ("wrk2", None, 1000)
    assert reported.quantiles_s[0.5].value == pytest.approx(0.001)
    assert reported.max_s is not None
    assert reported.max_s.value == pytest.approx(0.005)


def test_a_long_run_of_wrk2_tells_what_became_of_the_calibration() -> None:
    notes = [" ".join(wrk2(f"-R10 -d {length} {URL}").list_differences(result([100]))) for length in (10, 11)]
    assert ["calibration" in note for note in notes] == [False, True]


def test_remainders_and_timeouts_are_told() -> None:
    notes = "\n".join(wrk(f"-t2 -c5 {URL}").list_differences(result([100], errors={"timeout": 1})))
    assert "the load opened 5 connections; wrk opens 4" in notes
    assert "wrk keeps waiting" in notes


def test_whatever_failed_the_exit_code_is_0() -> None:
    assert wrk(URL).choose_exit_code(result()) == 0


def test_a_single_sample_lies_within_its_own_mean() -> None:
    assert measure_share(sort_counts({777_000: 1}), 777_000.0, 777_000.0) == 1.0


def test_a_share_is_of_the_samples_between_two_times() -> None:
    assert measure_share(sort_counts(dict.fromkeys((100, 200, 300, 400), 1)), 150, 350) == 0.5


def test_rates_are_of_one_thread_and_of_whole_intervals_in_which_something_was_answered() -> None:
    intervals = [interval(0, 25), interval(1, 0), interval(2, 50), interval(3, 1, length_s=0.01)]
    assert list_thread_rates(intervals, 0.1, 2) == [125, 250]


@pytest.mark.parametrize(
    ("values", "found"), [([5], (5, 0, 5, 1)), ([1, 3], (2, 2**0.5, 3, 1)), ([0, 0, 0, 10], (2.5, 5, 10, 0.75))]
)
def test_the_spread_is_that_of_a_sample(values: list[int], found: tuple[float, ...]) -> None:
    assert measure_spread(values) == pytest.approx(found)
