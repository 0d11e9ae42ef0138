"""What users of a locustfile do is what Locust would have them do."""

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.end_to_end.conftest import StartWeir, Weir
from tests.end_to_end.locust.conftest import SIMPLE, Locust, Serve, Shop, kept, stats

EVERYTHING = """
import random
import time
import gevent
from locust import HttpUser, SequentialTaskSet, TaskSet, between, constant, events, run_single_user, tag, task
from locust.runners import STATE_STOPPED, STATE_STOPPING
from locust.exception import RescheduleTask, StopUser

told = []

@events.test_start.add_listener
def begin(environment, **_):
    print("begins against", environment.host, environment.parsed_options.host)

@events.init.add_listener
def check(environment, **_):
    def checker():
        while environment.runner.state not in [STATE_STOPPING, STATE_STOPPED]:
            time.sleep(0.1)
            if environment.stats.total.num_requests > 10 and environment.stats.total.fail_ratio > 0.95:
                environment.runner.quit()
    gevent.spawn(checker)

@events.request.add_listener
def heard(request_type, name, response_time, response_length, exception, **_):
    told.append((request_type, name, exception))

@events.test_stop.add_listener
def end(**_):
    print("heard", len(told), "with", sum(exception is not None for *_, exception in told), "failures")


class Browse(TaskSet):
    def on_start(self):
        self.client.get("/browse/begin")

    @task
    class Checkout(SequentialTaskSet):
        @task
        def first(self):
            self.client.get("/checkout/1")

        @task
        def second(self):
            self.client.get("/checkout/2")
            self.interrupt()

    @task(2)
    def leave(self):
        self.interrupt(reschedule=False)

    def on_stop(self):
        self.client.get("/browse/end")


def order(user):
    user.client.put("/order", data={"a": "b c"})


class Somebody(HttpUser):
    wait_time = between(0.001, 0.01)
    tasks = {Browse: 2, order: 1}

    def on_start(self):
        answer = self.client.post("/login", json={"name": "ada"}, headers={"X-Mine": "1"})
        self.token = answer.json()["token"]

    def on_stop(self):
        self.client.delete("/session", name="leave")

    @task
    def search(self):
        self.client.get("/search", params={"q": "x y"}, name="search", headers={"Authorization": self.token})

    @task
    def wrong(self):
        with self.client.get("/missing", catch_response=True) as answer:
            if answer.status_code == 404:
                answer.success()

    @task
    def right_and_wrong(self):
        with self.client.get("/", catch_response=True, name="judged") as answer:
            if b"abc" in answer.content:
                answer.failure("too much")

    @task
    def away(self):
        self.client.get("/away")

    @task
    def later(self):
        raise RescheduleTask


class Guest(HttpUser):
    fixed_count = 1

    @task
    def once(self):
        self.client.head("/guest")
        self.client.patch("/guest")
        self.client.options("/guest")
        raise StopUser


class Base(HttpUser):
    abstract = True

    @task
    def never(self):
        self.client.get("/never")


if __name__ == "__main__":
    run_single_user(Somebody)
"""


def test_a_file_as_people_write_them_does_what_it_says(locust: Locust, shop: Shop, tmp_path: Path, weir: Weir) -> None:
    done = locust(EVERYTHING, shop.url, "-u", "5", "-t", "2s", "-s", "5", "--csv", "out/a", "--out", "a.weir")
    assert done.returncode == 1, done.stderr
    assert f"begins against {shop.url} {shop.url}" in done.stdout
    methods = {(method, path) for method, path, _, _ in shop.asked}
    assert methods >= {
        ("POST", "/login"), ("GET", "/browse/begin"), ("GET", "/browse/end"), ("GET", "/checkout/1"), ("GET", "/checkout/2"),
        ("PUT", "/order"), ("GET", "/search?q=x+y"), ("GET", "/missing"), ("GET", "/away"), ("GET", "/arrived"), ("HEAD", "/guest"),
        ("PATCH", "/guest"), ("OPTIONS", "/guest"), ("DELETE", "/session"),
    }  # fmt: skip
    assert "/never" not in shop.paths()
    # The one guest stopped after a round, and each of the others logged in once.
    assert shop.paths().count("/guest") == 3
    assert shop.paths().count("/login") == shop.paths().count("/session") == 4
    for method, path, headers, body in shop.asked:
        if path == "/login":
            assert (json.loads(body), headers["x-mine"]) == ({"name": "ada"}, "1")
        elif path == "/order":
            assert (body, headers["cookie"]) == (b"a=b+c", "session=1")
        elif path.startswith("/search"):
            assert (headers["authorization"], headers["cookie"]) == ("abc", "session=1")
        else:
            assert method != "PUT"
    # A task in order: nobody came to the second before the first.
    assert shop.paths().count("/checkout/1") >= shop.paths().count("/checkout/2") > 0
    rows = stats(tmp_path / "out" / "a_stats.csv")
    assert int(rows["search"]["Request Count"]) == shop.paths().count("/search?q=x+y")
    assert rows["judged"]["Failure Count"] == rows["judged"]["Request Count"] != "0"
    assert rows["/missing"]["Failure Count"] == "0"
    assert "/arrived" not in rows
    assert rows["leave"]["Request Count"] == "4"
    total = rows["Aggregated"]
    heard = re.search(r"heard (\d+) with (\d+) failures", done.stdout)
    assert heard is not None
    assert heard.groups() == (total["Request Count"], total["Failure Count"])
    found = kept(tmp_path, weir)
    assert found["requests"]["ok"] + found["requests"]["failed"] == int(total["Request Count"])
    assert found["steps"]["GET judged"]["failed"] == int(rows["judged"]["Failure Count"])
    assert found["run"]["plan"]["scenario"]["locustfile"] == "locustfile.py"
    failures = list(csv.DictReader((tmp_path / "out" / "a_failures.csv").read_text().splitlines()))
    assert [(row["Name"], row["Error"]) for row in failures] == [("judged", "CatchResponseError('too much')")]
    assert "GET judged: 'too much'" in done.stderr


FAST = """
from locust import FastHttpUser, constant, task

class Fast(FastHttpUser):
    wait_time = constant(0.01)

    def on_start(self):
        assert self.client.post("/login", json={"a": 1}).json()["token"] == "abc"

    @task
    def everything(self):
        answer = self.client.get("/search", params={"q": "x"}, name="search")
        assert (answer.status_code, answer.text, answer.headers["content-length"]) == (200, '{"token": "abc"}', "16")
        self.client.put("/order", data="plain", headers={"Content-Type": "text/plain"})
        self.client.get("/missing")
        with self.client.get("/broken", catch_response=True) as answer:
            if answer.status_code == 500:
                answer.success()
        self.client.get("/away")
        self.client.get("/away", allow_redirects=False, name="stays")
        self.client.head("/guest")
        self.environment.runner.quit()
"""


def test_a_fast_user_asks_and_reads_as_an_http_user(locust: Locust, shop: Shop, tmp_path: Path) -> None:
    done = locust(FAST, shop.url, "-u", "1", "-t", "1m", "--csv", "a")
    assert done.returncode == 1, done.stderr
    rows = stats(tmp_path / "a_stats.csv")
    assert {name: row["Failure Count"] for name, row in rows.items()} == {
        "/login": "0", "search": "0", "/order": "0", "/missing": rows["/missing"]["Request Count"], "/broken": "0", "/away": "0",
        "stays": "0", "/guest": "0", "Aggregated": rows["/missing"]["Request Count"],
    }  # fmt: skip
    assert rows["/missing"]["Request Count"] != "0"
    assert "BadStatusCode(code=404)" in (tmp_path / "a_failures.csv").read_text()
    (login, *rest) = [one for one in shop.asked if one[0] in ("POST", "PUT")]
    assert (json.loads(login[3]), login[2]["content-type"]) == ({"a": 1}, "application/json")
    assert (rest[0][3], rest[0][2]["cookie"]) == (b"plain", "session=1")
    assert "/arrived" in shop.paths()
    assert "Traceback" not in done.stderr


SPAWNED = """
from locust import User, constant, events, task
import time

begun = []

@events.test_stop.add_listener
def end(**_):
    print("begun", *(f"{at - begun[0]:.2f}" for at in begun))

class Me(User):
    wait_time = constant(1)

    def on_start(self):
        begun.append(time.monotonic())

    @task
    def nothing(self):
        pass
"""


def test_users_come_at_the_rate_that_was_asked_for(locust: Locust) -> None:
    done = locust(SPAWNED, "http://127.0.0.1:1", "-u", "5", "-r", "4", "-t", "2s")
    found = re.search(r"begun (.*)", done.stdout)
    assert found is not None, done.stderr
    assert [float(at) for at in found[1].split()] == pytest.approx([0, 0.25, 0.5, 0.75, 1.0], abs=0.2)


SHAPE = """
from locust import HttpUser, LoadTestShape, constant, events, task

saw = []

@events.test_stop.add_listener
def end(**_):
    if saw:
        print("saw", *saw)

class Steps(LoadTestShape):
    stages = [{"until": 2.5, "users": 2}, {"until": 5.5, "users": 4}]

    def tick(self):
        saw.append(self.get_current_user_count())
        for stage in self.stages:
            if self.get_run_time() < stage["until"]:
                return stage["users"], 100
        return None

class Me(HttpUser):
    wait_time = constant(0.05)

    @task
    def index(self):
        self.client.get("/")
"""


def test_a_shape_says_how_many_users_there_are_and_when_it_is_over(locust: Locust, serve: Serve) -> None:
    done = locust(SHAPE, f"http://{serve('null')}", "-t", "1h", "--processes", "2")
    assert done.returncode == 0, done.stderr
    found = re.search(r"saw (.*)", done.stdout)
    assert found is not None, done.stderr
    counts = found[1].split()
    assert counts == sorted(counts)
    assert set(counts) == {"0", "2", "4"}


def test_several_workers_are_one_load(locust: Locust, serve: Serve, tmp_path: Path, weir: Weir) -> None:
    done = locust(SIMPLE, f"http://{serve('null')}", "-u", "6", "--processes", "3", "--out", "a.weir", "-t", "2s")
    assert done.returncode == 0, done.stderr
    found = kept(tmp_path, weir)
    assert found["generator"]["threads"] == 3
    assert found["requests"]["ok"] > 100


QUITTING = (
    SIMPLE
    + """
from locust import events

@events.quitting.add_listener
def judge(environment, **_):
    total = environment.stats.total
    print("found", total.num_requests, total.fail_ratio, total.avg_response_time > 0, total.get_response_time_percentile(0.95) > 0)
    environment.process_exit_code = 42
"""
)


def test_a_listener_of_quitting_sees_all_and_sets_the_exit_code(locust: Locust, shop: Shop) -> None:
    done = locust(QUITTING, shop.url, "--processes", "2", "-s", "5")
    assert done.returncode == 42, done.stderr
    assert f"found {len(shop.asked)} 0.0 True True" in done.stdout


RAISES = (
    SIMPLE
    + """
    @task
    def raises(self):
        raise ValueError("boom")
"""
)


def test_what_a_task_raises_is_counted_and_the_user_goes_on(tmp_path: Path, start_weir: StartWeir, shop: Shop) -> None:
    (tmp_path / "locustfile.py").write_text(RAISES)
    process = start_weir(
        "locust", "--headless", "-H", shop.url, "-u", "2", "-r", "9", "-t", "2s", "--csv", "a", "--exit-code-on-error", "5"
    )
    _, err = process.communicate()
    assert process.returncode == 5
    (row,) = csv.DictReader((tmp_path / "a_exceptions.csv").read_text().splitlines())
    assert row["Message"] == "boom"
    assert int(row["Count"]) > 1
    assert "locustfile.py" in row["Traceback"]
    assert len(shop.asked) > 2
    assert "ValueError: boom" in err


def test_failures_end_with_1_and_say_what_they_were(locust: Locust, free_port: Callable[[], int], tmp_path: Path) -> None:
    done = locust(SIMPLE, f"http://127.0.0.1:{free_port()}", "--csv", "a")
    assert done.returncode == 1
    assert "ConnectionRefusedError(111, 'Connection refused')" in done.stderr
    assert "verdict: invalid" in done.stderr
    assert stats(tmp_path / "a_stats.csv")["Aggregated"]["Failure Count"] != "0"


TAGGED = """
from locust import FastHttpUser, tag, task, constant

class One(FastHttpUser):
    wait_time = constant(0.02)

    @tag("a", "b")
    @task
    def a(self):
        self.client.get("/a")

    @tag("b")
    @task
    def b(self):
        self.client.get("/b")

class Other(One):
    @task
    def c(self):
        self.client.get("/c")
"""


def test_tags_and_class_names_choose(locust: Locust, shop: Shop) -> None:
    assert locust(TAGGED, shop.url, "Other", "--tags", "b", "--exclude-tags", "a").returncode == 0
    assert set(shop.paths()) == {"/b"}
    assert locust(TAGGED, shop.url, "-T", "none").returncode == 2


def test_the_classes_are_listed(locust: Locust) -> None:
    done = locust(TAGGED, "http://h", "--list")
    assert (done.returncode, done.stdout) == (0, "Available Users:\n    One\n    Other\n")
