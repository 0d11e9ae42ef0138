"""`weir locust` as a command: files that are wrong, signals, workers that die, flags, the page and the report."""

import os
import re
import signal
import socket
from pathlib import Path

import pytest

from tests.end_to_end.conftest import StartWeir, Weir, lives
from tests.end_to_end.locust.conftest import SIMPLE, Locust, Serve, Shop, running, stats, workers_of


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("from locust import HttpUser, task\nclass A(HttpUser)\n    pass\n", r"locustfile.py, line 2: found a syntax error"),
        ("import nothing_of_this_name\n", r"locustfile.py, line 1: No module named 'nothing_of_this_name'\s+try: install it"),
        ("import locust\nx = 1\n", "found no user class"),
        ("from locust import User\nclass A(User):\n    pass\n", "class A: found no task in it"),
        ("from locust import User\nraise ValueError('boom')\n", "line 2: ValueError: boom"),
        ("from locust import HttpLocust\n", "line 1: locust.HttpLocust: of the locustio of 2019; now HttpUser"),
        ("from locust import User\nclass A(User):\n    task_set = 1\n", "line 2: A.task_set: of the locustio of 2019; now tasks"),
        ("from locust import User\nclass A(User):\n    min_wait = 1\n", "line 2: A.min_wait: of the locustio of 2019, in milliseconds"),
        ("from locust import events\nevents.request_success += 1\n", "line 2: locust.events.request_success: of Locust before 2.0"),
        ("import locust.plugins\n", "line 1: locust.plugins: weir has no such module"),
        ("from locust import User, run_single_user\nrun_single_user(User)\n", "line 2: locust.run_single_user: weir locust FILE"),
        (SIMPLE + "\nprint('x'\n", "syntax error"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_run_is_named_with_its_line(source: str, says: str, locust: Locust) -> None:
    done = locust(source, "http://127.0.0.1:1")
    assert done.returncode == 2
    assert re.search(says.replace("(", r"\(") if "\\" not in says else says, done.stderr), done.stderr


def test_a_host_is_asked_for_and_a_class_is_named(tmp_path: Path, weir: Weir) -> None:
    (tmp_path / "locustfile.py").write_text(SIMPLE)
    done = weir("locust", "--headless")
    assert done.returncode == 2
    assert "class Me: found no host" in done.stderr
    done = weir("locust", "--headless", "-H", "http://h", "You")
    assert done.returncode == 2
    assert "found the user class You, expected some of: Me" in done.stderr


def test_ctrl_c_prints_what_was_measured_so_far(tmp_path: Path, start_weir: StartWeir, shop: Shop) -> None:
    (tmp_path / "locustfile.py").write_text(SIMPLE)
    with running(start_weir, shop, "--csv", "a") as process:
        workers = workers_of(process)
        shop.wait_for(lambda: len(shop.asked) > 10, process)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    assert process.returncode == 130
    assert "Response time percentiles" in err
    assert stats(tmp_path / "a_stats.csv")["Aggregated"]["Request Count"] != "0"
    assert not any(lives(worker) for worker in workers)


def test_a_worker_that_dies_is_told_and_the_others_go_on(tmp_path: Path, start_weir: StartWeir, shop: Shop) -> None:
    (tmp_path / "locustfile.py").write_text(SIMPLE)
    with running(start_weir, shop, "--processes", "2", "-t", "3s") as process:
        os.kill(workers_of(process)[0], signal.SIGKILL)
        _, err = process.communicate()
    assert process.returncode == 3
    assert "worker 1 of 2 was ended by signal 9" in err
    assert "verdict: invalid" in err
    assert "1 of 2 workers died" in err


# Asks once, and never lets go of the CPU again.
STUBBORN = (
    SIMPLE
    + """
        while True:
            pass
"""
)


def test_a_second_ctrl_c_ends_what_the_first_could_not(tmp_path: Path, start_weir: StartWeir, shop: Shop) -> None:
    (tmp_path / "locustfile.py").write_text(STUBBORN)
    with running(start_weir, shop) as process:
        (worker,) = workers_of(process)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        process.communicate()
    assert process.returncode == 130
    assert not lives(worker)


@pytest.mark.parametrize("source", [SIMPLE, STUBBORN], ids=["waiting", "computing"])
def test_workers_die_with_weir(source: str, tmp_path: Path, start_weir: StartWeir, shop: Shop) -> None:
    (tmp_path / "locustfile.py").write_text(source)
    with running(start_weir, shop, "--processes", "2") as process:
        workers = workers_of(process)
        assert len(workers) == 2
        process.kill()
        process.communicate()
        while any(lives(worker) for worker in workers):
            pass


def test_without_headless_there_is_a_page(tmp_path: Path, start_weir: StartWeir, shop: Shop, bundle: None) -> None:
    (tmp_path / "locustfile.py").write_text(SIMPLE)
    process = start_weir("locust", "-H", shop.url, "-u", "2", "-t", "1m")
    assert process.stderr is not None
    line = process.stderr.readline()
    found = re.search(r"weir: live: (http://127\.0\.0\.1:\d+/)", line)
    assert found is not None, line
    process.send_signal(signal.SIGTERM)
    process.communicate()
    assert process.returncode == 130


def test_a_report_is_written_and_a_simple_file_has_a_native_form(
    locust: Locust, serve: Serve, tmp_path: Path, bundle: None, weir: Weir
) -> None:
    done = locust(SIMPLE, f"http://{serve('null')}", "--html", "a.html")
    assert done.returncode == 0, done.stderr
    assert "GET /" in (tmp_path / "a.html").read_text()
    found = re.search(r"of this CPU: weir (convert .*)", done.stderr)
    assert found is not None, done.stderr
    scenario = weir(*found[1].split()).stdout
    (tmp_path / "scenario.toml").write_text(scenario)
    load = re.search(r"^# weir (load .*)", scenario, re.MULTILINE)
    assert load is not None, scenario
    natively = weir(*load[1].split())
    assert natively.returncode == 0, natively.stderr


def test_the_variables_of_locust_are_read(tmp_path: Path, weir: Weir, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(SIMPLE)
    for name, value in {
        "LOCUSTFILE": "mine.py",
        "HOST": shop.url,
        "USERS": "3",
        "SPAWN_RATE": "99",
        "RUN_TIME": "1s",
        "HEADLESS": "true",
    }.items():
        monkeypatch.setenv(f"LOCUST_{name}", value)
    assert weir("locust").returncode == 0
    assert len(shop.asked) > 10


def test_flags_are_helped_with_and_others_are_refused(weir: Weir) -> None:
    done = weir("locust", "--help")
    assert done.returncode == 0
    assert "--spawn-rate" in done.stdout
    assert weir("locust", "--version").stdout.startswith("weir ")
    done = weir("locust", "--master")
    assert done.returncode == 2
    assert "--processes N" in done.stderr
    assert weir("locust", "-f", "none.py").returncode == 2


def test_a_file_of_its_own_flags_is_understood(locust: Locust, shop: Shop) -> None:
    source = (
        SIMPLE.replace("import HttpUser", "import HttpUser, events")
        + """
@events.init_command_line_parser.add_listener
def more(parser):
    parser.add_argument("--mine", type=int, default=1, env_var="LOCUST_MINE", is_secret=True)

@events.test_start.add_listener
def begin(environment, **_):
    print("mine is", environment.parsed_options.mine)
"""
    )
    assert "mine is 5" in locust(source, shop.url, "--mine", "5").stdout
    assert "found --other" in locust(source, shop.url, "--other", "5").stderr


def test_a_port_that_is_asked_for_is_the_pages(tmp_path: Path, start_weir: StartWeir, shop: Shop, bundle: None) -> None:
    (tmp_path / "locustfile.py").write_text(SIMPLE)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    process = start_weir("locust", "-H", shop.url, "-t", "1m", "--web-port", str(port))
    assert process.stderr is not None
    assert f"http://127.0.0.1:{port}/" in process.stderr.readline()
    process.terminate()
    process.communicate()
