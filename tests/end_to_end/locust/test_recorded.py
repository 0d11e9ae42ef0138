"""weir's record of a Locust load, compared with Locust's figures and the server's."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.end_to_end.conftest import Weir
from tests.end_to_end.locust.conftest import SIMPLE, Locust, Shop, intervals_of

# The load stops before Locust ends, because Locust's master waits only half a second for the workers' last reports. On
# a busy machine its figures would be incomplete.
EVERYTHING = """
import gevent
import locust.runners
from locust import FastHttpUser, HttpUser, SequentialTaskSet, User, constant, events, task

locust.runners.WORKER_REPORT_INTERVAL = 0.2

def end(runner):
    while runner.stats.total.num_requests < 100:
        gevent.sleep(0.05)
    runner.stop()
    processes = 1 + len(getattr(runner, "clients", ()))
    while runner.stats.get("data", "tear-down").num_requests < processes:
        gevent.sleep(0.05)
    runner.quit()

@events.init.add_listener
def before(environment, runner, **_):
    environment.events.request.fire(request_type="early", name="forgotten", response_time=1, response_length=0)
    if not isinstance(runner, locust.runners.WorkerRunner):
        gevent.spawn(end, runner)

@events.test_start.add_listener
def set_up(environment, **_):
    environment.events.request.fire(request_type="set-up", name="data", response_time=1, response_length=0)

@events.test_stop.add_listener
def tear_down(environment, **_):
    environment.events.request.fire(request_type="tear-down", name="data", response_time=1, response_length=0)

class Round(SequentialTaskSet):
    @task
    def all_of_it(self):
        self.client.get("/")
        self.client.get("/named", name="näme")
        self.client.get("/missing")
        with self.client.get("/judged", catch_response=True) as answer:
            answer.failure("no")
        with self.client.get("/broken", catch_response=True) as answer:
            answer.success()
        self.interrupt()

class Slow(HttpUser):
    wait_time = constant(0.02)
    tasks = [Round]

    def on_stop(self):
        self.client.delete("/session")

class Fast(FastHttpUser):
    wait_time = constant(0.02)

    @task
    def fast(self):
        self.client.get("/fast")
        self.client.get("/missing")
        self.client.put("/order", data="x")

class Other(User):
    wait_time = constant(0.02)

    @task
    def call(self):
        self.environment.events.request.fire(request_type="grpc", name="call", response_time=2.5, response_length=10, exception=None)
        with self.environment.events.request.measure("grpc", "wrong"):
            raise TimeoutError
"""


@pytest.mark.parametrize("processes", [1, 2])
def test_weir_counts_what_locust_counts(
    processes: int, locust: Locust, shop: Shop, tmp_path: Path, two_processes: tuple[str, ...]
) -> None:
    several = () if processes == 1 else two_processes
    load = locust(EVERYTHING, shop.url, "-u", "6", "-t", "1m", "--exit-code-on-error", "7", "-s", "2", *several)
    assert load.done.returncode == 7, load.done.stderr
    assert load.steps == load.locust
    assert load.locust.keys() >= {"GET /", "GET näme", "PUT /order", "DELETE /session", "grpc call", "set-up data"}
    assert load.steps["GET /judged"][1] == load.steps["GET /judged"][0] > 0 == load.steps["GET /broken"][1]
    counts, errors = load.weir["requests"], load.weir["errors"]
    assert counts["ok"] + counts["failed"] == sum(requests for requests, _ in load.locust.values())
    # Locust ends its users' pauses when it stops them. If a pause ends at this moment, the user loses one request.
    assert counts["unanswered"] <= 6
    assert (counts["unsent"], counts["intended"]) == (0, counts["ok"] + counts["failed"] + counts["unanswered"])
    assert errors["timeout"] == load.steps["grpc wrong"][1]
    assert errors["check"] == load.steps["GET /missing"][1] + load.steps["GET /judged"][1]
    assert load.weir["status"]["404"] == shop.paths().count("/missing")
    assert load.weir["generator"]["threads"] == processes
    assert load.weir["generator"]["version"].startswith("Locust 2.")
    assert {"failed", "clients"} <= set(load.weir["verdict"]["kinds"])
    assert "weir: verdict: " in load.done.stderr
    intervals = intervals_of(tmp_path / "a.weir")
    assert sum(interval.completed for interval in intervals) == counts["completed"]
    assert sum(interval.sent for interval in intervals) == counts["sent"]
    assert [interval.start_s for interval in intervals[1:]] == [interval.end_s for interval in intervals[:-1]]
    assert intervals[-1].end_s == pytest.approx(load.weir["duration_s"])
    assert load.steps["tear-down data"] == (1 if processes == 1 else 3, 0)


TWICE = """
import gevent
from locust import HttpUser, constant, task

class Me(HttpUser):
    wait_time = constant(0.2)
    answered = 0

    @task
    def index(self):
        self.client.get("/")
        self.answered += 1
        if self.answered == 2:
            gevent.spawn(self.environment.runner.quit)
"""


def test_a_known_delay_is_the_response_time_and_a_request_counts_in_the_interval_of_its_end(
    locust: Locust, serve: Callable[..., str], tmp_path: Path
) -> None:
    load = locust(TWICE, f"http://{serve('delay', '--wait', '300ms')}", "-u", "1", "-t", "1m")
    assert load.done.returncode == 0, load.done.stderr
    times = load.weir["response_time_us"]
    assert times["min"] >= load.weir["service_time_us"]["min"] >= 299_000
    assert load.weir["requests"]["ok"] == 2
    intervals = intervals_of(tmp_path / "a.weir")
    first_begun, first_ended = (
        next(one for one in intervals if getattr(one, count)) for count in ("sent", "completed")
    )
    # Both intervals have a length of 0.1 s.
    assert 0.199 <= first_ended.start_s - first_begun.start_s <= times["max"] / 1e6 + 0.101
    assert any(one.in_flight == 1 and not one.completed for one in intervals)


def test_requests_that_hang_when_locust_stops_are_unanswered(locust: Locust, shop: Shop) -> None:
    load = locust(
        SIMPLE.replace('get("/")', 'get("/hang")').replace("import HttpUser", "import FastHttpUser as HttpUser"),
        shop.url,
    )
    assert load.done.returncode == 0, load.done.stderr
    assert load.locust == load.steps == {}
    assert load.weir["requests"] == {
        "intended": 2, "sent": 2, "completed": 0, "ok": 0, "failed": 0, "unanswered": 2, "unsent": 0, "retried": 0,
    }  # fmt: skip
    assert load.weir["verdict"]["kinds"] == ["no_response"]


BUSY = """
import gevent
import time
from locust import HttpUser, LoadTestShape, constant, task

class Shape(LoadTestShape):
    def tick(self):
        return 4, 100, [Busy]

class Never(HttpUser):
    @task
    def index(self):
        self.client.get("/never")

class Busy(HttpUser):
    wait_time = constant(0.01)
    left = 20

    @task
    def compute(self):
        self.client.get("/")
        until = time.process_time() + 0.03
        while time.process_time() < until:
            pass
        Busy.left -= 1
        if Busy.left == 0:
            gevent.spawn(self.environment.runner.quit)
"""


def test_users_who_wait_for_their_process_show_in_the_lag_and_in_the_verdict(locust: Locust, shop: Shop) -> None:
    load = locust(BUSY, shop.url, own=("--strict",))
    assert load.done.returncode == 4, load.done.stderr
    assert load.steps == load.locust
    assert set(load.steps) == {"GET /"}
    assert load.weir["response_time_us"]["max"] > load.weir["schedule_lag_us"]["max"] > 10_000
    assert load.weir["verdict"]["validity"] == "suspect"
    assert "lag" in load.weir["verdict"]["kinds"]


@pytest.mark.thorough
def test_the_lowest_version_of_the_range_is_recorded_by_a_python_without_weir(
    shop: Shop, locust: Locust, weir: Weir, tmp_path: Path, two_processes: tuple[str, ...]
) -> None:
    uv = Path(sys.executable).with_name("uv")
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, tmp_path / "venv"], check=True)
    refused = weir("locust", "--python", python, "--version")
    assert refused.returncode == 2
    assert re.search(
        r"found no Locust, expected locust>=2\.32,<3\s+try: .*-m pip install 'locust>=2\.32,<3'", refused.stderr
    )
    subprocess.run([uv, "pip", "install", "--quiet", "--python", python, "locust==2.32.0"], check=True)
    load = locust(EVERYTHING, shop.url, "-u", "6", "-t", "1m", "-s", "2", *two_processes, own=("--python", str(python)))
    assert load.done.returncode == 1, load.done.stderr
    assert load.steps == load.locust
    assert load.weir["generator"]["version"] == "Locust 2.32.0"
    assert load.weir["schedule_lag_us"]["p50"] is not None
