"""`weir locust` as a command: its options and Locust's, signals, wrong files, the page, and processes that die."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.end_to_end.conftest import StartWeir, Weir
from tests.end_to_end.locust.conftest import SIMPLE, Shop, assert_they_end, descendants, intervals_of, running

# This user makes one request and then uses the CPU for ever.
STUBBORN = (
    SIMPLE
    + """
        while True:
            pass
"""
)


@pytest.mark.parametrize(
    ("source", "code", "says"),
    [
        ("import nothing_of_this_name\n", 1, "No module named 'nothing_of_this_name'"),
        ("import nothing.below\n", 1, "python -m pip install nothing\n"),
        ("x = 1\n", 1, "No User class found"),
    ],
)
def test_a_file_that_cannot_be_run_is_refused_by_locust(
    source: str, code: int, says: str, tmp_path: Path, start_weir: StartWeir
) -> None:
    (tmp_path / "locustfile.py").write_text(source)
    process = start_weir("locust", "--out", "a.weir", "--headless", "-t", "1s")
    _, err = process.communicate()
    assert process.returncode == code
    assert says in err
    assert "weir: nothing was recorded: Locust reported no request" in err
    assert not (tmp_path / "a.weir").exists()


RAISES = (
    SIMPLE
    + """
from locust import events

@events.request.add_listener
def listener(**_):
    raise ValueError("boom")
"""
)


def test_a_listener_that_raises_changes_locusts_exit_code_and_not_the_record(
    tmp_path: Path, start_weir: StartWeir, shop: Shop
) -> None:
    (tmp_path / "locustfile.py").write_text(RAISES)
    with running(start_weir, shop) as process:
        # A third request of the two users follows a response, and the listener has had that.
        shop.wait_for(lambda: len(shop.asked) > 2, process)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    assert process.returncode == 2
    assert "ValueError: boom" in err
    assert json.loads((tmp_path / "a.json").read_text())["requests"]["ok"] >= 1


def test_arguments_that_are_not_weirs_are_locusts(tmp_path: Path, weir: Weir) -> None:
    (tmp_path / "locustfile.py").write_text(SIMPLE)
    assert weir("locust", "--version").stdout.startswith("locust 2.")
    assert weir("locust", "--list").stdout == "Available Users:\n    Me\n"
    assert "--spawn-rate" in weir("locust", "--", "--help").stdout
    assert "--weir-json" in weir("locust", "--help").stdout
    misplaced = weir("locust", "--headless", "--out", "a.weir")
    assert misplaced.returncode == 2
    assert "locust: error: unrecognized arguments: --out" in misplaced.stderr
    assert (
        "weir: --out: found after Locust's arguments, expected before them: it is an option of weir" in misplaced.stderr
    )


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("#!/bin/sh\necho locust 2.31.8", r"found Locust 2\.31\.8, expected locust>=2\.32,<3\s+try: .*/python -m pip install"),
        ("#!/bin/sh\necho locust 3.0.0", r"found Locust 3\.0\.0, expected locust>=2\.32,<3"),
        ("#!/bin/sh\nexit 1", "found a program that is not Python"),
        (None, r"cannot be run: No such file or directory"),
    ],
)  # fmt: skip
def test_a_python_without_a_locust_of_the_range_is_refused(
    content: str | None, says: str, tmp_path: Path, weir: Weir
) -> None:
    python = tmp_path / "python"
    if content is not None:
        python.write_text(content)
        python.chmod(0o755)
    done = weir("locust", "--python", python, "--headless")
    assert done.returncode == 2
    assert re.search(f"weir: --python: {python}: {says}", done.stderr), done.stderr


@pytest.mark.parametrize("processes", [1, 2])
def test_ctrl_c_ends_locust_as_locust_ends_and_the_record_is_whole(
    processes: int, tmp_path: Path, start_weir: StartWeir, shop: Shop, two_processes: tuple[str, ...]
) -> None:
    (tmp_path / "locustfile.py").write_text(SIMPLE)
    with running(start_weir, shop, *(() if processes == 1 else two_processes)) as process:
        below = descendants(process.pid)
        assert len(below) == (1 if processes == 1 else 3)
        shop.wait_for(lambda: len(shop.asked) > 10, process)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    assert process.returncode == 0, err
    assert "Response time percentiles" in err or "Shutting down (exit code 0)" in err
    assert_they_end(below)
    counts = json.loads((tmp_path / "a.json").read_text())["requests"]
    assert counts["ok"] + counts["unanswered"] >= len(shop.asked) - 1
    assert sum(interval.ok for interval in intervals_of(tmp_path / "a.weir")) == counts["ok"] > 0


SLOW_END = (
    SIMPLE
    + """
import gevent
from locust import events

@events.quitting.add_listener
def end(**_):
    gevent.sleep(0.5)
    print("ended in peace")
"""
)


def test_ctrl_c_at_a_terminal_which_reaches_both_ends_locust_once(tmp_path: Path, shop: Shop) -> None:
    (tmp_path / "locustfile.py").write_text(SLOW_END)
    terminal = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"
    program = str(Path(sys.executable).with_name("weir"))
    command = [program, "locust", "--weir-json", "a.json", "--headless", "-H", shop.url, "--only-summary"]
    with subprocess.Popen(
        [sys.executable, "-c", terminal, *command],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        shop.wait_for(lambda: len(shop.asked) > 3, process)
        out, _ = process.communicate("\x03")
    assert process.returncode == 0, out
    assert "ended in peace" in out
    assert json.loads((tmp_path / "a.json").read_text())["requests"]["ok"] > 0


def test_a_worker_that_dies_makes_the_record_invalid(
    tmp_path: Path, start_weir: StartWeir, shop: Shop, two_processes: tuple[str, ...]
) -> None:
    (tmp_path / "locustfile.py").write_text(SIMPLE)
    with running(start_weir, shop, *two_processes) as process:
        _, *workers = descendants(process.pid)
        os.kill(workers[0], signal.SIGKILL)
        before = len(shop.asked)
        shop.wait_for(lambda: len(shop.asked) > before + 5, process)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate()
    assert "1 of 3 processes of Locust died" in err
    assert json.loads((tmp_path / "a.json").read_text())["verdict"]["validity"] == "invalid"


def test_a_locust_that_is_killed_leaves_a_record_and_no_worker(
    tmp_path: Path, start_weir: StartWeir, shop: Shop, two_processes: tuple[str, ...]
) -> None:
    (tmp_path / "locustfile.py").write_text(SIMPLE)
    with running(start_weir, shop, *two_processes) as process:
        main, *workers = descendants(process.pid)
        os.kill(main, signal.SIGKILL)
        _, err = process.communicate()
    assert process.returncode == 137
    assert "weir: signal 9 ended Locust" in err
    assert intervals_of(tmp_path / "a.weir")
    assert_they_end(workers)


@pytest.mark.parametrize("source", [SIMPLE, STUBBORN], ids=["waiting", "computing"])
def test_all_processes_of_locust_die_with_weir(
    source: str, tmp_path: Path, start_weir: StartWeir, shop: Shop, two_processes: tuple[str, ...]
) -> None:
    (tmp_path / "locustfile.py").write_text(source)
    with running(start_weir, shop, *two_processes) as process:
        below = descendants(process.pid)
        assert len(below) == 3
        process.kill()
        assert_they_end(below)


def test_weirs_page_shows_the_load_and_stops_it(
    tmp_path: Path, start_weir: StartWeir, shop: Shop, bundle: None
) -> None:
    (tmp_path / "locustfile.py").write_text(SIMPLE)
    process = start_weir("locust", "--live", "--headless", "-H", shop.url, "-u", "2", "--only-summary")
    assert process.stderr is not None
    found = None
    while found is None:
        line = process.stderr.readline()
        assert line
        found = re.search(r"weir: live: (http://127\.0\.0\.1:\d+/)", line)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate()
    assert process.returncode == 0
    assert "Got SIGTERM signal" in err


def test_of_two_tests_on_locusts_own_page_the_first_is_recorded(
    tmp_path: Path, start_weir: StartWeir, shop: Shop, free_port: Callable[[], int]
) -> None:
    (tmp_path / "locustfile.py").write_text(SIMPLE)
    page = f"http://127.0.0.1:{free_port()}"
    process = start_weir(
        "locust",
        "--weir-json",
        "a.json",
        "-H",
        shop.url,
        "--web-host",
        "127.0.0.1",
        "--web-port",
        page.rpartition(":")[2],
    )
    assert process.stderr is not None
    while "Starting web interface" not in process.stderr.readline():
        assert process.poll() is None

    def ask(path: str, **form: str) -> None:
        data = urllib.parse.urlencode(form).encode() if form else None
        while True:
            try:
                urllib.request.urlopen(page + path, data).read()
            except ConnectionRefusedError:
                continue
            except urllib.error.URLError as error:
                if isinstance(error.reason, ConnectionRefusedError):
                    continue
                raise
            return

    ask("/swarm", user_count="2", spawn_rate="10", host=shop.url)
    shop.wait_for(lambda: len(shop.asked) > 4, process)
    ask("/stop", now="yes")
    first = len(shop.asked)
    ask("/swarm", user_count="1", spawn_rate="1", host=shop.url)
    shop.wait_for(lambda: len(shop.asked) > first + 4, process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert err.count("weir: Locust has started another test: weir records only the first test") == 1
    load = json.loads((tmp_path / "a.json").read_text())
    assert load["requests"]["ok"] <= first <= load["requests"]["ok"] + load["requests"]["unanswered"]
