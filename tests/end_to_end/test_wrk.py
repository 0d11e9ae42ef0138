"""`weir wrk` compared with the real wrk on the same servers: the same layout and exit codes."""

import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.end_to_end.conftest import END_S, StartWeir, Weir
from tests.support.side_by_side import WEIR, Both, chosen_lines, running_servers, side_by_side
from tests.support.tiers import cases
from tests.support.wrk_output import parse, shape
from weir.compat.reports import read_report

SERVERS = {
    "null": ["null"],
    "late": ["delay", "--wait", "20ms"],
    "too_late": ["delay", "--wait", "1200ms"],
    "never": ["delay", "--wait", "1000s"],
    "failing": ["fault", "--kind", "status-500"],
    "half": ["fault", "--kind", "half"],
    "resetting": ["fault", "--kind", "reset"],
    "garbage": ["fault", "--kind", "garbage"],
    "mixed": ["times", "--distribution", "constant:1ms", "--fault", "status-500", "--fault-share", "0.3"],
}
LOADS = [
    "-d1 http://{null}/",
    "-t1 -c1 -d1 http://{null}/",
    "-t 1 -c 8 -d 1 http://{null}/",
    "-t2 -c10 -d1s http://{null}/",
    "-t1 -c8 -d1 --latency http://{null}/",
    "-t1 -d1 -Lc8 http://{null}/",
    "-Lt1 -c4 -d1 http://{late}/",
    "--threads=1 --connections=4 --duration=1 http://{late}/",
    "--threads 1 --connections 4 --duration 1s --latency http://{late}/",
    "http://{late}/ -t1 -c4 -d1",
    "-t1 http://{late}/ -c4 one -d1 two",
    "-t1 -c4 -d1 http://{late}/ -- one two",
    "-t1 -c4 -d1 -- http://{late}/",
    "-t1 -c4 -d1 -H 'X-One: 1' http://{late}/",
    "-t1 -c4 -d1 -H 'X-One: 1' --header 'X-Two: 2' --header='X-One: 3' http://{late}/",
    "-t1 -c4 -d1 -H 'Host: example.org' http://{late}/",
    "-t1 -c4 -d1 -H 'no colon' -H No:space http://{late}/",
    "-t1 -c4 -d1 --timeout 5s http://{late}/",
    "-t1 -c4 -d1 -T 1m http://{late}/",
    "-t1 -c4 -d1S http://{late}/",
    "-t1 -c9 -c4 -d5 -d1 http://{late}/",
    "-t1 -c0k -c1K -d1 http://{late}/",
    "-t10 -c10 -d1 http://{late}/",
    "-t2 -c5 -d1 http://{late}/",
    "-t1 -c4 -d1 http://{late}",
    "-t1 -c4 -d1 http://{late}?a=/b",
    "-t1 -c4 -d1 http://{late}/a/b?c=d#e",
    "-t1 -c4 -d1 http://user:word@{late}/",
    "-t1 -c4 -d1 -L http://{failing}/",
    "-t2 -c4 -d1 http://{mixed}/",
    "-t1 -c4 -d1 -L http://{mixed}/",
    "-t1 -c4 -d1 -L http://{half}/",
    "-t1 -c4 -d1 -L http://{resetting}/",
    "-t1 -c4 -d1 http://{garbage}/",
    "-t1 -c4 -d2 -T1 -L http://{too_late}/",
    "-t1 -c4 -d1 -L http://{never}/",
    "-t2 -c2 -d1 http://{never}/",
]
KEPT = {
    "-d1 http://{null}/",
    "-Lt1 -c4 -d1 http://{late}/",
    "--threads 1 --connections 4 --duration 1s --latency http://{late}/",
    "-t1 http://{late}/ -c4 one -d1 two",
    "-t1 -c4 -d1 -H 'X-One: 1' --header 'X-Two: 2' --header='X-One: 3' http://{late}/",
    "-t2 -c5 -d1 http://{late}/",
    "-t1 -c4 -d1 http://{late}/a/b?c=d#e",
    "-t1 -c4 -d1 -L http://{mixed}/",
    "-t1 -c4 -d1 -L http://{resetting}/",
    "-t1 -c4 -d1 http://{garbage}/",
    "-t1 -c4 -d2 -T1 -L http://{too_late}/",
    "-t1 -c4 -d1 -L http://{never}/",
}
WRONG = [
    "",
    "-h",
    "--help",
    "-v",
    "-r http://{null}/",
    "-Lx http://{null}/",
    "-R 100 http://{null}/",
    "--frequency=5 http://{null}/",
    "-c",
    "--latency=1 http://{null}/",
    "-c 1.5k http://{null}/",
    "-c '' http://{null}/",
    "-d 500ms http://{null}/",
    "-d 0 http://{null}/",
    "-t 0 http://{null}/",
    "-c 1 -t 2 http://{null}/",
    "-c 1",
    "127.0.0.1:80/",
    "http:///path",
    "http://127.0.0.1:99999/",
    "http://[::1/",
    "http://127.0.0.1:1/",
    "http://no-such-host.invalid/",
]


@pytest.fixture(scope="module")
def of_both(
    request: pytest.FixtureRequest, engine: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Both]]:
    """Returns a function that runs a line of `LOADS` or `WRONG` with both programs."""
    with (
        running_servers(engine, SERVERS) as places,
        side_by_side("wrk", chosen_lines(request, [*LOADS, *WRONG]), places, tmp_path_factory.mktemp("wrk")) as give,
    ):
        yield give


@pytest.mark.needs("wrk")
@pytest.mark.parametrize("line", cases(LOADS, kept=KEPT))
def test_the_report_of_a_load_has_wrks_layout_and_exit_code(of_both: Callable[[str], Both], line: str) -> None:
    both = of_both(line)
    assert both.weir.code == both.tool.code == 0, both.weir.err
    assert shape(both.weir.out) == shape(both.tool.out)
    assert all(text.startswith("weir: ") for text in both.weir.err.splitlines())
    assert "weir: verdict: " in both.weir.err


@pytest.mark.needs("wrk")
@pytest.mark.parametrize("line", cases(LOADS, kept=KEPT, where=lambda line: "{never}" not in line))
def test_what_parses_wrks_report_parses_weirs(of_both: Callable[[str], Both], line: str) -> None:
    both = of_both(line)
    if "-nan%" in both.tool.out:
        assert "-nan%" in both.weir.out
    wrk, weir = parse(both.tool.out), parse(both.weir.out)
    assert weir.percentiles_ms.keys() == wrk.percentiles_ms.keys()
    assert list(weir.percentiles_ms.values()) == sorted(weir.percentiles_ms.values())
    assert (weir.non_2xx > 0, [count > 0 for count in weir.errors.values()]) == (
        wrk.non_2xx > 0,
        [count > 0 for count in wrk.errors.values()],
    )
    if not any(wrk.errors.values()):
        # wrk counts late responses, but no bytes of invalid responses.
        assert (weir.requests > 0, weir.read_bytes > 0, weir.bytes_per_s > 0) == (
            wrk.requests > 0,
            wrk.read_bytes > 0,
            wrk.bytes_per_s > 0,
        )
    assert weir.requests_per_s == pytest.approx(weir.requests / weir.duration_ms * 1000, rel=0.01)


@pytest.mark.needs("wrk")
@pytest.mark.parametrize("line", WRONG)
def test_what_cannot_begin_has_wrks_exit_code_and_weirs_words(of_both: Callable[[str], Both], line: str) -> None:
    both = of_both(line)
    assert both.weir.code == both.tool.code == 1
    if line in ("-h", "--help", "-v"):
        assert both.weir.out.startswith("Usage: weir wrk " if "h" in line else "wrk ")
        return
    assert both.weir.out == ""
    assert re.match(r"weir: .*(found |refused|has no address).*\n  try: ", both.weir.err)


@pytest.mark.needs("wrk")
def test_both_say_the_same_of_a_server_that_takes_its_time(of_both: Callable[[str], Both]) -> None:
    both = of_both("-Lt1 -c4 -d1 http://{late}/")
    for found in (parse(both.tool.out), parse(both.weir.out)):
        assert found.latency_ms[0] >= 20
        assert found.percentiles_ms[50] >= 20
        assert found.requests_per_s <= 4 / 0.02
        assert found.thread_rps[2] <= 1.5 * 4 / 0.02


def test_interrupted_it_reports_what_was_measured_and_exits_with_0(
    start_weir: StartWeir, serve: Callable[..., str]
) -> None:
    process = start_weir("wrk", "-t1", "-c2", "-d60", f"http://{serve('null')}/")
    assert process.stdout is not None
    assert process.stdout.readline().startswith("Running 1m test @ ")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=END_S)
    assert (process.returncode, out.count("Requests/sec:")) == (0, 1), err


def test_the_heading_is_there_when_the_load_begins(start_weir: StartWeir, serve: Callable[..., str]) -> None:
    process = start_weir("wrk", "-t1", "-c2", "-d60", f"http://{serve('null')}/")
    assert process.stdout is not None
    lines = [process.stdout.readline(), process.stdout.readline()]
    assert lines[1] == "  1 threads and 2 connections\n"
    assert process.poll() is None


def test_the_tls_of_a_server_is_trusted_as_wrk_trusts_it(weir: Weir) -> None:
    done = weir("wrk", "-t1", "-c1", "-d1", "https://127.0.0.1:1/")
    assert done.returncode == 1
    assert done.stderr.startswith("weir: connection refused by 127.0.0.1:1\n")


def test_a_reader_that_has_seen_enough_is_no_error(serve: Callable[..., str]) -> None:
    script = f"{shlex.quote(WEIR)} wrk -t1 -c2 -d1 http://{serve('null')}/ | head -1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", script], capture_output=True, text=True, timeout=END_S)
    assert (done.returncode, done.stdout.count("\n")) == (0, 1)
    assert "Traceback" not in done.stderr


def test_wrk2_keeps_its_rate_and_what_reads_its_reports_reads_this_one(weir: Weir, serve: Callable[..., str]) -> None:
    expected = pytest.approx(500, rel=0.05)
    # On a busy machine the last responses come late, so the test has five tries.
    for _ in range(5):
        done = weir("wrk2", "-c", "10", "-d", "1", "-R", "500", "-U", f"http://{serve('null')}/")
        assert done.returncode == 0, done.stderr
        results = read_report(done.stdout, "wrk2")
        assert results is not None
        (result,) = results
        assert (result.tool, result.users) == ("wrk2", None)
        assert result.throughput_rps is not None
        rate_rps = result.throughput_rps.value
        if rate_rps == expected:
            break
    assert rate_rps == expected
    assert done.stdout.count("#[Mean    = ") == 2
    assert "verdict: " in done.stderr


def test_no_engine_is_an_error_of_weirs_own(weir: Weir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEIR_ENGINE", os.devnull)
    done = weir("wrk", "http://127.0.0.1:1/")
    assert (done.returncode, done.stdout) == (2, "")
    assert "WEIR_ENGINE" in done.stderr


def test_wrk_is_the_real_one_where_it_is_there() -> None:
    if shutil.which("wrk") is None:
        pytest.skip("wrk is not installed; scripts/system-packages says how to get it")
    assert "Will Glozer" in subprocess.run(["wrk", "-v"], capture_output=True, text=True).stdout
