"""Tests `weir load` at the prompt with real servers."""

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

from tests.end_to_end.conftest import StartWeir, Weir

Serve = Callable[..., str]


def test_a_closed_load_prints_its_figures_and_its_verdict(weir: Weir, serve: Serve) -> None:
    done = weir("load", f"http://{serve('null')}/", "-c", "8", "-d", "500ms")
    assert done.returncode == 0, done.stderr
    for part in ("req/s", "response time", "none failed", "status", "verdict:"):
        assert part in done.stdout


def test_the_json_has_the_agreed_keys_and_its_counts_add_up(tmp_path: Path, weir: Weir, serve: Serve) -> None:
    done = weir("load", f"http://{serve('null')}/", "-R", "500", "-c", "8", "-d", "1s", "--json", "result.json")
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "result.json").read_text())
    assert set(result) == {
        "schema", "target", "duration_s", "requests", "throughput_rps", "status", "errors", "response_time_us", "service_time_us",
        "schedule_lag_us", "connect_time_us", "tls_handshake_us", "time_to_first_byte_us", "read_time_us", "bytes", "first_response",
        "other_length", "generator", "fairness", "until_failure", "verdict", "slowest",
    }  # fmt: skip
    requests = result["requests"]
    assert requests["intended"] == 500
    assert requests["intended"] == requests["ok"] + requests["failed"] + requests["unanswered"] + requests["unsent"]
    assert requests["completed"] == sum(result["status"].values())
    assert sum(result["errors"].values()) == requests["failed"] == 0
    times = result["response_time_us"]
    assert times["min"] <= times["p50"] <= times["p90"] <= times["p99"] <= times["max"]


@pytest.mark.parametrize(("words", "is_shown"), [(["--quiet"], False), ([], True)], ids=["quiet", "usual"])
def test_at_a_terminal_a_quiet_load_shows_its_figures_and_nothing_before(
    serve: Serve, words: list[str], is_shown: bool
) -> None:
    terminal, inside = pty.openpty()
    command: list[str | Path] = [
        Path(sysconfig.get_path("scripts"), "weir"),
        "load",
        f"http://{serve('null')}/",
        "-R",
        "500",
        "-d",
        "1s",
        *words,
    ]
    with subprocess.Popen(
        command, stdin=inside, stdout=inside, stderr=inside, env={**os.environ, "TERM": "xterm", "NO_COLOR": "1"}
    ) as process:
        os.close(inside)
        said = b""
        # When the last writer closes a terminal, Linux raises an error.
        with contextlib.suppress(OSError):
            while part := os.read(terminal, 65536):
                said += part
    os.close(terminal)
    assert process.returncode == 0, said
    assert b"none failed" in said
    draws_over_itself = b"\x1b[K"
    assert (draws_over_itself in said) == is_shown


def test_json_on_standard_output_is_nothing_but_json(weir: Weir, serve: Serve) -> None:
    done = weir("load", f"http://{serve('null')}/", "-d", "300ms", "--json", "-")
    assert json.loads(done.stdout)["schema"] == 1


def test_a_body_from_a_file_is_posted_and_comes_back(tmp_path: Path, weir: Weir, serve: Serve) -> None:
    (tmp_path / "body.json").write_text(json.dumps({"text": "x" * 400}))
    done = weir(
        "load",
        f"http://{serve('echo')}/",
        "-b",
        "@body.json",
        "-H",
        "Content-Type: application/json",
        "-c",
        "2",
        "-d",
        "300ms",
        "--json",
        "-",
    )
    result = json.loads(done.stdout)
    assert result["requests"]["failed"] == 0
    assert result["bytes"]["received"] > 400 * result["requests"]["completed"]


def test_watch_adds_cpu_memory_and_threads_of_the_server(weir: Weir, serve: Serve) -> None:
    address = serve("null")
    port = f":{int(address.rpartition(':')[2]):04X} "
    inode = next(
        line.split()[9] for line in Path("/proc/net/tcp").read_text().splitlines() if port in line and " 0A " in line
    )
    pid = next(
        entry.parent.parent.name
        for entry in Path("/proc").glob("[0-9]*/fd/*")
        if entry.is_symlink() and os.path.lexists(entry) and _link(entry) == f"socket:[{inode}]"
    )
    done = weir("load", f"http://{address}/", "-d", "1s", "--watch", pid, "--json", "r.json")
    assert done.returncode == 0, done.stderr
    assert "CPUs busy" in done.stdout
    assert "threads" in done.stdout
    assert "Pss" in done.stdout
    # A thread that is never idle is on a CPU; a waiting thread waits for events.
    assert "threads on average: " in done.stdout


def _link(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:
        return ""


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("close", "reset"),
        ("silent", "timeout"),
        ("garbage", "protocol"),
        ("half", "reset"),
        ("reset", "reset"),
        ("status-500", "check"),
    ],
)
def test_every_kind_of_failure_is_counted_apart(weir: Weir, serve: Serve, fault: str, error: str) -> None:
    # On a busy machine even an immediate response may take longer than 200 ms.
    timeout = "200ms" if fault == "silent" else "10s"
    done = weir(
        "load",
        f"http://{serve('fault', '--kind', fault)}/",
        "-c",
        "2",
        "-d",
        "700ms",
        "--timeout",
        timeout,
        "--json",
        "-",
    )
    result = json.loads(done.stdout)
    assert result["errors"][error] > 0, result["errors"]
    assert result["requests"]["failed"] == result["errors"][error] == sum(result["errors"].values())
    assert result["requests"]["ok"] == 0
    assert result["verdict"]["validity"] == "invalid" or result["verdict"]["validity"] == "suspect"
    assert done.returncode == 0


def test_strict_turns_a_result_that_is_not_valid_into_exit_status_4(weir: Weir, serve: Serve) -> None:
    assert (
        weir(
            "load", f"http://{serve('fault', '--kind', 'status-500')}/", "-c", "1", "-d", "200ms", "--strict"
        ).returncode
        == 4
    )


def test_objectives_are_printed_with_what_was_found_and_a_missed_one_exits_with_1(
    tmp_path: Path, weir: Weir, serve: Serve
) -> None:
    url = f"http://{serve('delay', '--wait', '20ms')}/"
    met = weir("load", url, "-c", "4", "-d", "500ms", "--objective", "p99<1900ms", "--objective", "errors<=0%")
    assert met.returncode == 0, met.stdout
    assert "met     p99<1900ms  found" in met.stdout
    asked = ["--objective", "p50<10ms", "--objective", "throughput>1"]
    missed = weir("load", url, "-c", "4", "-d", "500ms", *asked, "--json", "r.json")
    assert missed.returncode == 1
    assert "MISSED  p50<10ms" in missed.stdout
    objectives = json.loads((tmp_path / "r.json").read_text())["objectives"]
    assert [one["met"] for one in objectives] == [False, True]
    assert objectives[0]["found"] > 20_000


def test_a_load_is_stopped_early_where_it_is_to_be_aborted_and_prints_what_was_measured(
    weir: Weir, serve: Serve
) -> None:
    url = f"http://{serve('fault', '--kind', 'status-500')}/"
    done = weir("load", url, "-c", "2", "-d", "1h", "--abort-on", "errors>5%", "--json", "-")
    assert done.returncode == 1, done.stderr
    result = json.loads(done.stdout)
    assert 1.0 <= result["duration_s"] < 30
    assert result["aborted"]["found"] == 1.0
    assert result["requests"]["failed"] > 0


def test_a_histogram_log_holds_every_answer(tmp_path: Path, weir: Weir, serve: Serve) -> None:
    done = weir(
        "load", f"http://{serve('null')}/", "-R", "500", "-c", "4", "-d", "1s", "--hdr", "load.hlog", "--json", "-"
    )
    assert done.returncode == 0, done.stderr
    reader = HistogramLogReader(str(tmp_path / "load.hlog"), HdrHistogram(1, 3_600_000_000_000, 3))
    counts = []
    while (interval := reader.get_next_interval_histogram()) is not None:
        counts.append(interval.get_total_count())
    reader.close()
    assert len(counts) == 10
    assert sum(counts) == json.loads(done.stdout)["requests"]["completed"]


def test_users_that_are_ramped_up_ask_as_often_as_they_were_to(weir: Weir, serve: Serve) -> None:
    done = weir("load", f"http://{serve('null')}/", "--users", "200", "--ramp", "500ms", "--loops", "5", "--json", "-")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["requests"]["intended"] == result["requests"]["ok"] == 1000
    assert result["fairness"] == {"min": 5, "median": 5.0, "max": 5}
    assert 0.49 < result["duration_s"] < 30


def test_a_number_of_requests_is_sent_and_answered_exactly(weir: Weir, serve: Serve) -> None:
    done = weir("load", f"http://{serve('null')}/", "-n", "1234", "-c", "10", "-t", "2", "--json", "-")
    assert json.loads(done.stdout)["requests"] == {
        "intended": 1234, "sent": 1234, "completed": 1234, "ok": 1234, "failed": 0, "unanswered": 0, "unsent": 0, "retried": 0,
    }  # fmt: skip


def test_arrivals_follow_a_profile_and_a_seed(weir: Weir, serve: Serve) -> None:
    url = f"http://{serve('null')}/"
    ramp = json.loads(weir("load", url, "-R", "0s:0,1s:1000", "--json", "-").stdout)
    assert ramp["requests"]["intended"] == 500

    def poisson(seed: int) -> int:
        done = weir("load", url, "-R", "1000", "-d", "500ms", "--poisson", "--seed", str(seed), "--json", "-")
        return int(json.loads(done.stdout)["requests"]["intended"])

    assert poisson(1) == poisson(1) != poisson(2)


def test_a_load_until_the_first_failure_says_what_was_reached(weir: Weir, serve: Serve) -> None:
    url = f"http://{serve('fault', '--kind', 'die-after', '300')}/"
    arguments = ["--users", "0s:1,5s:20", "--think", "5ms", "--until-failure", "--json", "result.json"]
    done = weir("load", url, *arguments)
    assert done.returncode == 0, done.stderr
    assert "first failure at" in done.stdout
    answered = re.search(r"after (\d+) answered", done.stdout)
    assert answered, done.stdout
    # A new user's connection may be refused before the last responses of up to 20 users are read.
    assert 280 <= int(answered[1]) <= 300
    assert "highest throughput until then" in done.stdout


def test_the_slowest_request_and_uneven_connections_are_shown(weir: Weir, serve: Serve) -> None:
    done = weir("load", f"http://{serve('null')}/", "-c", "3", "-n", "1000")
    assert "slowest  " in done.stdout
    assert "requests per connection  " in done.stdout


def test_a_server_that_refuses_is_one_clear_error(weir: Weir, free_port: Callable[[], int]) -> None:
    port = free_port()
    done = weir("load", f"http://127.0.0.1:{port}/", "-d", "1s")
    assert done.returncode == 3
    assert "refused" in done.stderr
    assert str(port) in done.stderr


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["localhost:8000"], "URL: found 'localhost:8000'"),
        (["http://"], "http://"),
        (["ftp://127.0.0.1/"], "ftp"),
        (["http://no-such-host.invalid/"], "no-such-host.invalid"),
        (["http://127.0.0.1:99999/"], "99999"),
        (["http://127.0.0.1/", "-d", "soon"], "-d/--duration: found 'soon'"),
        (["http://127.0.0.1/", "-R", "-5"], "-R/--rate: found '-5'"),
        (["http://127.0.0.1/", "-R", "0s:5,x"], "-R/--rate: found '0s:5,x'"),
        (["http://127.0.0.1/", "--users", "some"], "--users: found 'some'"),
        (["http://127.0.0.1/", "--ramp", "5s"], "--ramp: found without --users"),
        (["http://127.0.0.1/", "--think", "a while"], "--think: found 'a while'"),
        (["http://127.0.0.1/", "--poisson"], "--poisson: found without -R/--rate"),
        (["http://127.0.0.1/", "-n", "0"], "--requests"),
        (["http://127.0.0.1/", "-m", "STEAL"], "-m/--method: found 'STEAL'"),
        (["http://127.0.0.1/", "-H", "nonsense"], "-H/--header: found 'nonsense'"),
        (["http://127.0.0.1/", "-b", "@nowhere"], "nowhere"),
        (["http://127.0.0.1/", "--watch", "999999999"], "999999999"),
        (["http://127.0.0.1/", "-c", "0"], "--connections"),
        (["http://127.0.0.1/", "--objective", "p99<50"], "--objective: found 'p99<50'"),
        (["http://127.0.0.1/", "--abort-on", "errors<5%"], "--abort-on: found 'errors<5%'"),
        (["http://127.0.0.1/", "--hdr", "nowhere/x.hlog"], "--hdr: nowhere/x.hlog"),
        (["http://127.0.0.1/", "--bogus"], "--bogus"),
        ([], "URL"),
    ],
)
def test_wrong_usage_is_told_by_flag_and_exits_with_2(weir: Weir, arguments: list[str], problem: str) -> None:
    done = weir("load", *arguments)
    assert done.returncode == 2, done.stderr
    assert problem in done.stderr
    assert done.stdout == ""


def test_ctrl_c_prints_what_was_measured_so_far(start_weir: StartWeir, serve: Serve) -> None:
    process = start_weir("load", f"http://{serve('null')}/", "-d", "1h", "--json", "-")
    wait_for_load(process.pid)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=200)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert json.loads(out)["duration_s"] < 60


def wait_for_load(pid: int) -> None:
    """Waits until the generator below `pid` has used CPU, so that its load is under way."""
    while True:
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                name, _, rest = stat.read_text().partition("(")[2].rpartition(")")
            except OSError:
                continue
            fields = rest.split()
            if name.startswith("weir-engine") and int(fields[1]) == pid and int(fields[11]) + int(fields[12]) > 5:
                return
