"""weir's tables and files beside those of Locust itself, on the same server."""

import csv
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.end_to_end.locust.conftest import Locust, Shop, stats
from weir.generators.tool import Tool

IN_ORDER = """
from locust import FastHttpUser, HttpUser, SequentialTaskSet, constant, task

class Round(SequentialTaskSet):
    @task
    def all_of_it(self):
        self.client.get("/")
        self.client.post("/order?what=1", json={"a": 1})
        self.client.get("/missing")
        self.client.get("/missing", name="named")
        self.client.get("/away")
        with self.client.get("/judged", catch_response=True) as answer:
            answer.failure("no")
        with self.client.get("/broken", catch_response=True) as answer:
            answer.success()

class Slow(HttpUser):
    wait_time = constant(0.05)
    tasks = [Round]

class Fast(FastHttpUser):
    wait_time = constant(0.05)

    @task
    def fast(self):
        self.client.get("/fast")
        self.client.put("/fast", data="x")
"""


@pytest.mark.thorough
def test_the_tables_and_files_have_the_shape_of_locusts(
    locust: Locust, shop: Shop, tmp_path: Path, installed: Callable[[str], Tool]
) -> None:
    program = installed("locust").where()
    assert program is not None
    ours = locust(IN_ORDER, shop.url, "-t", "2s", "--csv", "ours", "--csv-full-history")
    shop.asked.clear()
    flags = ["--headless", "-H", shop.url, "-u", "2", "-r", "100", "--only-summary", "--csv", "theirs", "--csv-full-history"]
    with subprocess.Popen([program, *flags], cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        # Its files are a second behind.
        shop.wait_for(lambda: shop.paths().count("/broken") >= 40, process)
        process.send_signal(signal.SIGINT)
        _, theirs = process.communicate()
    assert process.returncode == ours.returncode == 1, theirs
    for name in ("stats", "stats_history", "failures", "exceptions"):
        one, other = (csv.DictReader((tmp_path / f"{whose}_{name}.csv").read_text().splitlines()) for whose in ("ours", "theirs"))
        assert one.fieldnames == other.fieldnames
    mine, real = (stats(tmp_path / f"{whose}_stats.csv") for whose in ("ours", "theirs"))
    assert mine.keys() == real.keys()
    assert {name: row["Type"] for name, row in mine.items()} == {name: row["Type"] for name, row in real.items()}
    assert {name for name, row in mine.items() if row["Failure Count"] != "0"} == {
        name for name, row in real.items() if row["Failure Count"] != "0"
    }
    errors = [
        {
            (row["Method"], row["Name"], row["Error"])
            for row in csv.DictReader((tmp_path / f"{whose}_failures.csv").read_text().splitlines())
        }
        for whose in ("ours", "theirs")
    ]
    assert errors[0] == errors[1]
    assert shapes(ours.stderr) == shapes(theirs)


def shapes(text: str) -> list[str]:
    """The lines of the tables, every number a `#` and every run of blanks and of digits' places one."""
    lines = text[text.index("Type     Name") :].split("\n")
    kept_lines = [line for line in lines if line.startswith(("Type", "-----", "GET", "POST", "PUT", "Response time", "Error report", "#"))]
    return [re.sub(r"[ #]+", " ", re.sub(r"\d+(\.\d+)?", "#", line)).strip() for line in kept_lines]
