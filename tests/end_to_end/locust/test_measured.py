"""What is reported is what happened: known delays, stalls, and users who wait for their worker."""

from pathlib import Path

import pytest

from tests.end_to_end.conftest import Weir
from tests.end_to_end.locust.conftest import SIMPLE, Locust, Serve, kept, stats


@pytest.mark.parametrize(("user", "wait"), [("HttpUser", "constant(0)"), ("FastHttpUser", "between(0.001, 0.02)")])
def test_a_known_delay_is_what_is_reported(user: str, wait: str, locust: Locust, serve: Serve, tmp_path: Path, weir: Weir) -> None:
    source = SIMPLE.replace("HttpUser", user).replace("constant(0.05)", wait).replace("import", "import between,", 1)
    done = locust(source, f"http://{serve('delay', '--wait', '200ms')}", "-t", "4s", "--csv", "a", "--out", "a.weir")
    assert done.returncode == 0, done.stderr
    assert 200 <= int(stats(tmp_path / "a_stats.csv")["/"]["50%"]) < 212
    found = kept(tmp_path, weir)
    assert 200_000 <= found["response_time_us"]["p50"] < 212_000
    assert 200_000 <= found["service_time_us"]["p50"] <= found["response_time_us"]["p50"]


def test_a_stalled_server_shows_in_the_response_times(locust: Locust, serve: Serve, tmp_path: Path, weir: Weir) -> None:
    url = f"http://{serve('stall', '--every', '2s', '--for', '500ms')}"
    done = locust(SIMPLE, url, "-t", "3s", "--out", "a.weir")
    assert done.returncode == 0, done.stderr
    found = kept(tmp_path, weir)
    assert found["response_time_us"]["max"] > 400_000
    assert found["response_time_us"]["p50"] < 100_000


BUSY = """
import time
from locust import HttpUser, constant, task

class Busy(HttpUser):
    wait_time = constant(0.01)

    @task
    def think_hard(self):
        self.client.get("/")
        until = time.process_time() + 0.05
        while time.process_time() < until:
            pass
"""


def test_users_who_wait_for_their_worker_show_in_its_lag_and_in_the_verdict(
    locust: Locust, serve: Serve, tmp_path: Path, weir: Weir
) -> None:
    done = locust(BUSY, f"http://{serve('null')}", "-u", "4", "-t", "3s", "--out", "a.weir")
    assert done.returncode == 0, done.stderr
    found = kept(tmp_path, weir)
    # Three others compute before each has its turn again.
    assert found["response_time_us"]["p50"] > 80_000
    assert found["response_time_us"]["p50"] > found["schedule_lag_us"]["p50"] > 10_000
    assert found["verdict"]["validity"] != "valid"
    assert "lag" in found["verdict"]["kinds"]
    assert f"verdict: {found['verdict']['validity']}" in done.stderr


PACED = """
from locust import HttpUser, constant_pacing, task

class Paced(HttpUser):
    wait_time = constant_pacing(0.1)

    @task
    def index(self):
        self.client.get("/")
"""


def test_pacing_counts_from_one_request_to_the_next(locust: Locust, serve: Serve, tmp_path: Path) -> None:
    done = locust(PACED, f"http://{serve('delay', '--wait', '50ms')}", "-u", "1", "-t", "3s", "--csv", "a")
    assert done.returncode == 0, done.stderr
    assert 26 <= int(stats(tmp_path / "a_stats.csv")["/"]["Request Count"]) <= 31
