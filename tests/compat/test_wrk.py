"""Command lines of wrk and wrk2 made into loads, and loads told as these tools tell them."""

import os
import shlex
from base64 import b64encode
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hdrh.histogram import HdrHistogram

from tests.support.load_summary import summary
from weir.cli.load_model import LoadFlags, chosen_load
from weir.cli.values import request
from weir.compat import wrk, wrk2
from weir.compat.front_end import Asked, Outcome, ToolExit
from weir.compat.reports import read_report
from weir.compat.wrk_report import share_within, spread, thread_rates
from weir.load_values import duration_s
from weir.model.errors import TargetError, UsageError
from weir.model.histogram import HIGHEST_NS, raw_bytes
from weir.model.load import ClosedLoad, LoadPlan, OpenLoad
from weir.model.records import Interval, LoadEnd

URL = "http://127.0.0.1:8000/"
Read = Callable[[Sequence[str]], Asked]


def exit_of(read: Read, line: str) -> ToolExit:
    with pytest.raises(ToolExit) as raised:
        read(shlex.split(line))
    return raised.value


def encoded(times_us: Sequence[int]) -> str:
    histogram = HdrHistogram(1, HIGHEST_NS, 3)
    for time_us in times_us:
        histogram.record_value(time_us * 1000)
    return b64encode(raw_bytes(histogram)).decode()


def interval(index: int, completed: int, length_s: float = 0.1) -> Interval:
    return Interval.model_validate(
        {
            "index": index, "start_s": index / 10, "end_s": index / 10 + length_s, "due": 0, "sent": 0, "completed": completed,
            "ok": completed, "failed": 0, "errors": {}, "in_flight": 0, "oldest_age_us": 0.0, "response_time_us": {}, "histogram": "",
        }
    )  # fmt: skip


def outcome(times_us: Sequence[int] = (), rates: Sequence[int] = (), **changes: Any) -> Outcome:
    times = encoded(times_us)
    mean = sum(times_us) / len(times_us) if times_us else None
    found = {"mean": mean, "stdev": 100.0, "p50": mean, "p75": mean, "p90": mean, "p99": mean, "max": max(times_us, default=None)}
    value = summary().model_dump(by_alias=True) | {
        "response_time_us": found if times_us else {},
        "service_time_us": found if times_us else {},
    }
    end = LoadEnd.model_validate(
        {"stopped": "duration", "summary": value | changes, "histograms": {"response_time_ns": times, "service_time_ns": times}}
    )
    return Outcome(end, [interval(index, rate) for index, rate in enumerate(rates)], None, interrupted=False)


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
    plan = wrk.read(line.split()).plan
    assert plan.load == ClosedLoad(connections)
    assert (plan.request.method, plan.request.target) == ("GET", URL)
    assert (plan.duration_s, plan.timeout_s, plan.tls) == (lasts_s, timeout_s, None)


def test_the_plan_is_that_of_the_native_command_line() -> None:
    native = LoadPlan(request(URL, None, [], None), chosen_load(LoadFlags(connections=64)), duration_s("3s", "-d"))
    assert wrk.read(["-t1", "-c64", "-d3s", URL]).plan.to_json() == native.to_json()


def test_wrk2_loads_at_a_rate() -> None:
    plan = wrk2.read(f"-c 100 -d 30 -R 1k --latency {URL}".split()).plan
    assert plan.load == OpenLoad(1000, 100)


def test_there_are_no_more_threads_than_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
    asked = [wrk.read(["-t", threads, "-c", "12", URL]) for threads in ("1", "3", "12")]
    assert [one.plan.threads for one in asked] == [1, 3, 3]
    notes = ["\n".join(one.notes(outcome([100]))) for one in asked]
    assert ["3 threads carried the load" in note for note in notes] == [False, False, True]


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
    assert wrk.read([URL, *(word for text in given for word in ("-H", text))]).plan.request.headers == sent


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("http://localhost", "http://localhost/"),
        ("http://localhost?a=/b", "http://localhost/"),
        ("http://user:word@localhost:81/a?b=c", "http://localhost:81/a?b=c"),
        ("http://[::1]:81/", "http://[::1]:81/"),
        ("other://localhost:81/", "http://localhost:81/"),
        ("https://localhost/", "https://localhost/"),
    ],
)
def test_the_target_is_the_part_of_the_url_that_wrk_looks_at(url: str, target: str) -> None:
    plan = wrk.read([url]).plan
    assert plan.request.target == target
    assert (plan.tls is not None and plan.tls.insecure) == url.startswith("https")


def test_a_script_names_the_native_way() -> None:
    exit_ = exit_of(wrk.read, f"-s post.lua {URL}")
    assert (exit_.code, exit_.out) == (1, "")
    assert "'post.lua'" in exit_.err
    assert f"weir load {URL} --scenario FILE" in exit_.err
    assert "docs/guides/scenarios.md" in exit_.err


def test_a_timeout_of_nothing_is_refused() -> None:
    assert "--timeout: found 0" in exit_of(wrk.read, f"-T 0 {URL}").err


def test_wrk2_without_a_rate_says_so_after_everything_else() -> None:
    exit_ = exit_of(wrk2.read, URL)
    assert (exit_.code, exit_.err) == (1, "Throughput MUST be specified with the --rate or -R option\n")
    assert exit_.out == wrk2.USAGE
    assert exit_of(wrk2.read, f"-c 1 {URL}").err == "number of connections must be >= threads\n"


def test_the_rate_is_no_flag_of_wrk() -> None:
    assert exit_of(wrk.read, f"-R 100 {URL}").err == "wrk: invalid option -- 'R'\n"


@pytest.mark.parametrize(
    ("line", "native"),
    [
        (f"-t1 {URL}", f"weir load {URL} -c 10 -d 10s"),
        (f"-t1 -c5 -d1m -T3 -H 'A: b c' {URL}", f"weir load {URL} -c 5 -d 1m -H 'A: b c' --timeout 3s"),
        ("-t1 https://h/", "weir load https://h/ -c 10 -d 10s --insecure"),
    ],
)
def test_the_native_command_line_does_the_same(line: str, native: str) -> None:
    assert wrk.read(shlex.split(line)).native == native


def test_wrk2s_native_command_line_has_the_rate() -> None:
    assert "-R 2000" in wrk2.read(f"-R2k {URL}".split()).native


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (TargetError("connection refused by 127.0.0.1:8000"), "unable to connect to 127.0.0.1:8000 Connection refused\n"),
        (TargetError("no connection to 127.0.0.1:8000: network unreachable"), "unable to connect to 127.0.0.1:8000 network unreachable\n"),
        (
            UsageError('plan, key target: the host "x" has no address (failed to lookup address information: Name or service not known)'),
            "unable to resolve 127.0.0.1:8000 Name or service not known\n",
        ),
    ],
)
def test_a_target_that_is_not_there_is_told_in_wrks_words(error: TargetError, said: str) -> None:
    exit_ = wrk.read([URL]).cannot_begin(error)
    assert (exit_.out, exit_.err, exit_.code) == ("", said, 1)


def test_what_the_engine_has_against_a_load_is_told_in_its_own() -> None:
    exit_ = wrk.read([URL]).cannot_begin(UsageError("plan, key load: found 900000 connections", hint="raise the limit"))
    assert (exit_.err, exit_.code) == ("weir: plan, key load: found 900000 connections\n  try: raise the limit\n", 1)


def test_the_report_is_laid_out_as_wrk_lays_it_out() -> None:
    asked = wrk.read(f"-t1 -c4 -d51 -L {URL}".split())
    found = outcome([900, 1000, 1000, 1100], [10, 20, 30], bytes={"received": 8_710}, status={"200": 900, "404": 99, "500": 1})
    assert asked.heading() == f"Running 1m test @ {URL}\n  1 threads and 4 connections\n"
    assert asked.report(found) == (
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
    report = wrk.read(["-L", URL]).report(outcome(bytes={"received": 0}, errors={"reset": 3, "protocol": 4, "timeout": 2, "connect": 1}))
    assert "    Latency     0.00us    0.00us   0.00us    -nan%\n" in report
    assert "    Req/Sec     0.00      0.00     0.00      -nan%\n" in report
    assert "     99%    0.00us\n" in report
    assert "  Socket errors: connect 1, read 7, write 0, timeout 2\n" in report


def test_wrk2_has_a_block_for_each_clock() -> None:
    report = wrk2.read(f"-U -R 10 {URL}".split()).report(outcome([1000] * 5, [10]))
    assert report.count("Detailed Percentile spectrum:") == 2
    assert report.count("-" * 58 + "\n") == 2
    assert (
        "\n\n  Latency Distribution (HdrHistogram - Uncorrected Latency (measured without taking delayed starts into account))\n" in report
    )
    recorded = wrk2.read(f"-L -R 10 {URL}".split()).report(outcome([1000] * 5, [10]))
    assert "Uncorrected" not in recorded
    assert "HdrHistogram" not in wrk2.read(f"-R 10 {URL}".split()).report(outcome([1000] * 5, [10]))


def test_what_reads_reports_of_wrk2_reads_this_one() -> None:
    asked = wrk2.read(f"-c 8 -L -R 10 {URL}".split())
    text = asked.heading() + asked.report(outcome([1000] * 99 + [5000], [10, 12]))
    claims = read_report(text, "wrk2")
    assert claims is not None
    (claim,) = claims
    assert (claim.tool, claim.users, claim.requests) == ("wrk2", None, 1000)
    assert claim.quantiles_s[0.5].value == pytest.approx(0.001)
    assert claim.max_s is not None
    assert claim.max_s.value == pytest.approx(0.005)


def test_a_long_run_of_wrk2_tells_what_became_of_the_calibration() -> None:
    notes = [" ".join(wrk2.read(["-R10", "-d", length, URL]).notes(outcome([100]))) for length in ("10", "11")]
    assert ["calibrates" in note for note in notes] == [False, True]


def test_remainders_and_timeouts_are_told() -> None:
    notes = "\n".join(wrk.read(f"-t2 -c5 {URL}".split()).notes(outcome([100], errors={"timeout": 1})))
    assert "5 connections, where wrk opens 4" in notes
    assert "wrk goes on waiting" in notes


def test_whatever_failed_the_exit_code_is_0() -> None:
    assert wrk.read([URL]).exit_code(outcome()) == 0


def test_a_single_sample_lies_within_its_own_mean() -> None:
    assert share_within(encoded([777]), 777.0, 777.0) == 1.0


def test_a_share_is_of_the_samples_between_two_times() -> None:
    assert share_within(encoded([100, 200, 300, 400]), 150, 350) == 0.5


def test_rates_are_of_one_thread_and_of_whole_intervals_in_which_something_was_answered() -> None:
    intervals = [interval(0, 25), interval(1, 0), interval(2, 50), interval(3, 1, length_s=0.01)]
    assert thread_rates(intervals, 0.1, 2) == [125, 250]


@pytest.mark.parametrize(("values", "found"), [([5], (5, 0, 5, 1)), ([1, 3], (2, 2**0.5, 3, 1)), ([0, 0, 0, 10], (2.5, 5, 10, 0.75))])
def test_the_spread_is_that_of_a_sample(values: list[int], found: tuple[float, ...]) -> None:
    assert spread(values) == pytest.approx(found)
