"""Tests a study with a matrix, replicas and an external server, with real processes."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.conftest import END_S, SERVER, StartWeir, Study, Weir, servers_of
from tests.end_to_end.ordeal import wait_for_load

pytestmark = pytest.mark.usefixtures("stacks")


@pytest.fixture
def limited(stacks: Path) -> None:
    """Gives the stack `good` a limit, passed in its environment."""
    manifest = stacks / "good" / "stack.toml"
    manifest.write_text(manifest.read_text() + '[limits]\nthreads = { default = 8, env = "THREADS" }\n')


@pytest.fixture
def external(free_port: Callable[[], int]) -> Iterator[tuple[int, int]]:
    """Starts a server outside weir; yields its port and process id."""
    port = free_port()
    server = subprocess.Popen([sys.executable, SERVER, str(port), "good"], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    # The server prints its line before it listens; weir waits until it listens.
    server.stdout.readline()
    yield port, server.pid
    server.kill()
    server.communicate()


def rows(run: Path, query: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(f"file:{run / 'run.weir'}?mode=ro", uri=True) as connection:
        return connection.execute(query).fetchall()


@pytest.mark.usefixtures("limited")
def test_a_matrix_is_measured_and_compared_point_by_point(tmp_path: Path, weir: Weir, study: Study) -> None:
    limits, objective = "[matrix.limits]\nthreads = [1, 3]", '[objective]\nhold = ["errors<50%"]'
    mine = study("good", "other", connections="[2, 6]", matrix=limits, rest=objective, blocks=2, aa=True)
    done = weir("run", mine, "--out", "out")
    assert done.returncode == 0, done.stderr
    # Two stacks at two loads, one with two values of a limit, and its copy: 4 + 2 + 4 cells per block.
    assert rows(tmp_path / "out", "SELECT count(*) FROM trial WHERE finished = 1 AND validity != 'invalid'") == [(20,)]
    cells = rows(
        tmp_path / "out",
        "SELECT stack, json_extract(load, '$.closed.connections'), settings, coordinates FROM cell WHERE arm = 'main'",
    )
    assert len(cells) == 6
    assert ("good", 6, '{"threads":"3"}', '{"threads":"3"}') in cells
    assert ("other", 6, "{}", "{}") in cells
    findings = json.loads(weir("report", "out", "--json").stdout)
    assert [point["label"] for point in findings["points"]] == [
        "2 connections, threads 1", "2 connections, threads 3", "6 connections, threads 1", "6 connections, threads 3",
    ]  # fmt: skip
    for point in findings["points"]:
        assert [stack["label"] for stack in point["stacks"]] == ["good", "good (A/A)", "other"]
        assert {comparison["label"] for comparison in point["comparisons"]} == {"other"}
        assert all(held["met"] for stack in point["stacks"] for held in stack["objectives"])
    assert "All points" in done.stdout
    assert "Objectives: all 8 met" in done.stdout
    again = weir("study", "check", mine, "--pilot", "out", "--json")
    assert again.returncode == 0, again.stderr
    said = json.loads(again.stdout)
    assert said["forecast"]["trials"] == 20
    assert said["detection"]["comparisons"] == 4
    assert said["detection"]["detectable_ratio"] > 1
    assert servers_of(tmp_path) == []


def test_replicas_share_the_connections_of_a_load(tmp_path: Path, weir: Weir, study: Study) -> None:
    done = weir("run", study("good", matrix="replicas = [1, 2]"), "--out", "out")
    assert done.returncode == 0, done.stderr
    found = dict(rows(tmp_path / "out", "SELECT replicas, summary FROM trial JOIN cell ON cell.id = cell_id"))
    targets = json.loads(str(found[2]))["targets"]
    assert len({target["url"] for target in targets}) == 2
    assert all(target["ok"] > 0 for target in targets)
    samples = rows(
        tmp_path / "out",
        "SELECT DISTINCT replicas, name FROM sample JOIN trial ON trial.id = trial_id JOIN cell ON cell.id = cell_id",
    )
    assert sorted(samples) == [(1, "app"), (2, "app"), (2, "app-2")]
    logs = dict(rows(tmp_path / "out", "SELECT replicas, logs FROM trial JOIN cell ON cell.id = cell_id"))
    assert all((tmp_path / "out" / log).read_text() for log in json.loads(str(logs[2])).values())
    assert servers_of(tmp_path) == []


@pytest.mark.thorough
@pytest.mark.needs("nginx")
def test_a_process_that_the_proxy_in_front_leaves_out_makes_its_trial_suspect(
    tmp_path: Path, stacks: Path, weir: Weir, study: Study
) -> None:
    with (stacks / "closes-once" / "stack.toml").open("a") as manifest:
        manifest.write("[services]\nnginx = {}\n")
    # Both processes get enough requests for one to close its connection, however long they take.
    closes = study("closes-once", matrix="replicas = [2]", blocks=2, duration_s=60, load="loops = 1000", retries=0)
    done = weir("run", closes, "--out", "out")
    assert done.returncode in (0, 4), done.stderr
    (first, _), (second, _) = rows(tmp_path / "out", "SELECT reasons, block FROM trial ORDER BY block")
    # nginx sent the requests to the other process, so no request failed.
    assert "nginx sent no requests to 1 of 2 processes for a while" in str(first)
    assert "failed requests" not in str(first)
    assert "left 1 of 2" not in str(second)


def test_an_external_server_is_checked_loaded_watched_and_left_running(
    tmp_path: Path, weir: Weir, external: tuple[int, int], study: Study
) -> None:
    port, pid = external
    table = f'[external.mine]\nurl = "http://127.0.0.1:{port}"\npids = [{pid}]\nserves = ["hello"]\n'
    done = weir("run", study("good", "mine", rest=table, blocks=2), "--out", "out")
    assert done.returncode == 0, done.stderr
    counted = (
        "SELECT resources FROM trial JOIN cell ON cell.id = cell_id WHERE stack = 'mine' AND validity != 'invalid'"
    )
    resources = rows(tmp_path / "out", counted)
    assert len(resources) == 2
    for (value,) in resources:
        used = json.loads(str(value))
        assert used["cpu_user_s"] > 0
        assert used["pss_bytes"] > 1_000_000
    assert rows(tmp_path / "out", "SELECT DISTINCT started FROM cell WHERE stack = 'mine'") == [(0,)]
    assert (
        "mine answers" in done.stdout
        or "as mine" in done.stdout
        or "and mine" in done.stdout
        or "mine and" in done.stdout
    )
    assert Path(f"/proc/{pid}").exists()


def test_a_trial_without_samples_of_its_server_says_that_the_figures_of_the_server_are_unknown(
    tmp_path: Path, weir: Weir, external: tuple[int, int], study: Study
) -> None:
    table = f'[external.mine]\nurl = "http://127.0.0.1:{external[0]}"\nserves = ["hello"]\n'
    done = weir("run", study("mine", rest=table, blocks=1), "--out", "out")
    assert done.returncode == 0, done.stderr
    ((reasons, resources),) = rows(tmp_path / "out", "SELECT reasons, resources FROM trial")
    assert "the server's CPU time, memory and network are unknown" in str(reasons)
    assert resources is None


def test_a_process_of_an_external_server_that_ends_rejects_the_trial(
    tmp_path: Path, start_weir: StartWeir, external: tuple[int, int], study: Study
) -> None:
    port, pid = external
    with subprocess.Popen(["sleep", "3600"]) as beside:
        table = f'[external.mine]\nurl = "http://127.0.0.1:{port}"\npids = [{pid}, {beside.pid}]\nserves = ["hello"]\n'
        process = start_weir(
            "run", study("mine", rest=table, duration_s=3, method="extension_s = 0", retries=0), "--out", "out"
        )
        wait_for_load(tmp_path / "out" / "run.weir")
        beside.kill()
    _, err = process.communicate(timeout=END_S)
    assert process.returncode == 3, err
    ((reasons,),) = rows(tmp_path / "out", "SELECT reasons FROM trial")
    assert f"(process {beside.pid} is gone)" in str(reasons)


def test_an_external_server_that_answers_wrong_is_not_timed(
    tmp_path: Path, weir: Weir, free_port: Callable[[], int], study: Study
) -> None:
    port = free_port()
    with subprocess.Popen([sys.executable, SERVER, str(port), "answers-wrong"], stdout=subprocess.DEVNULL) as server:
        table = f'[external.mine]\nurl = "http://127.0.0.1:{port}"\nserves = ["hello"]\n'
        done = weir("run", study("mine", rest=table), "--out", "out")
        server.kill()
    assert done.returncode == 3
    assert f"mine at http://127.0.0.1:{port}: workload hello: GET /: wrong response" in done.stderr


def test_an_objective_that_is_missed_ends_a_run_with_1(tmp_path: Path, weir: Weir, study: Study) -> None:
    mine = study("good", rest='[objective]\nhold = ["p99<1us", "throughput>1"]')
    done = weir("run", mine, "--out", "out")
    assert done.returncode == 1, done.stderr
    assert "Objectives: 1 of 2 missed" in done.stdout
    assert "MISSED" in done.stdout


def test_what_cannot_be_run_is_said_before_anything_starts(tmp_path: Path, weir: Weir, study: Study) -> None:
    mine = study("good", connections="[400_000_000]")
    done = weir("run", mine, "--out", "out")
    assert done.returncode == 2
    assert "open files: found 400,000,000 connections" in done.stderr
    assert "ports: found 400,000,000 connections to one server" in done.stderr
    assert "checking" not in done.stderr
    assert not (tmp_path / "out").exists()
    checked = weir("study", "check", mine)
    assert checked.returncode == 2
    assert "ports: found 400,000,000 connections" in checked.stderr
    assert "1 trial (1 block of 1)" in checked.stdout


def test_the_schema_and_the_list_of_studies_are_printed_for_programs(weir: Weir) -> None:
    schema = json.loads(weir("study", "schema").stdout)
    assert schema["properties"]["matrix"]["$ref"] == "#/$defs/Matrix"
    listed = json.loads(weir("study", "list", "--json").stdout)
    assert "sync-vs-async" in {study["name"] for study in listed}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--assume-cv", "much"], "--assume-cv: found 'much', expected a percentage such as 5%"),
        (
            ["--assume-cv", "5%", "--pilot", "out"],
            "--assume-cv: found together with --pilot, expected only one of the two",
        ),
        (["--pilot", "nowhere"], "nowhere: found no such file, expected a run folder"),
        (["--scale", "huge"], "--scale: found 'huge', expected one of: default"),
    ],
)
def test_a_check_that_cannot_be_made_says_why(
    tmp_path: Path, weir: Weir, arguments: list[str], problem: str, study: Study
) -> None:
    done = weir("study", "check", study("good"), *arguments)
    assert done.returncode == 2
    assert problem in done.stderr


def test_a_run_is_resumed_with_the_same_scenario_and_with_no_other(tmp_path: Path, weir: Weir, study: Study) -> None:
    scenario = tmp_path / "shop.toml"
    scenario.write_text('[[steps]]\npath = "/"\n[[steps]]\npath = "/again"\n')
    done = weir("run", study("good", load='scenario = "shop.toml"'), "--out", "out")
    assert done.returncode == 0, done.stderr
    ((summary,),) = rows(tmp_path / "out", "SELECT summary FROM trial WHERE validity != 'invalid'")
    assert list(json.loads(summary)["steps"]) == ["GET /", "GET /again"]
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").rename(tmp_path / "elsewhere" / "out")
    assert weir("run", "--resume", "elsewhere/out").returncode == 0
    scenario.write_text('[[steps]]\npath = "/other"\n')
    again = weir("run", "--resume", "elsewhere/out")
    assert again.returncode == 2
    assert "found another machine or other stacks, expected the run's machine and stacks" in again.stderr


def test_more_cpus_than_there_are_end_a_study_before_it_starts(tmp_path: Path, weir: Weir, study: Study) -> None:
    done = weir("run", study("good", matrix="cpus = [1, 4096]"), "--out", "out")
    assert done.returncode == 2
    assert "matrix.cpus: found 4096" in done.stderr
    assert not (tmp_path / "out").exists()
