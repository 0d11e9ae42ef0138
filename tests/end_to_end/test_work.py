"""Studies of stacks with a database: the report shows each request's database work, by the database's own counters."""

import json
import signal
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.conftest import END_S, StartWeir, Study, Weir
from weir.model.load import Request
from weir.stacks.readiness import send_request

SERVER = Path(__file__).with_name("users_server.py")
MODES = ("once", "twice", "spoils", "kills")


@pytest.fixture
def stacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes stacks that read from PostgreSQL; the user's cache keeps its programs."""
    for mode in MODES:
        folder = tmp_path / "stacks" / mode
        folder.mkdir(parents=True)
        (folder / "users_server.py").write_bytes(SERVER.read_bytes())
        (folder / "stack.toml").write_text(
            f"""
schema = 1
id = "{mode}"
title = "{mode}"
model = "thread per connection"
[run]
command = ["{{python}}", "users_server.py", "{{port}}", "{{postgres.url}}", "{mode}"]
[services]
postgres = {{ dataset = "users" }}
[serves]
user-by-id = {{}}
"""
        )
    monkeypatch.setenv("WEIR_STACKS", str(tmp_path / "stacks"))
    monkeypatch.setenv("NO_COLOR", "1")


def report(weir: Weir, run: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(weir("report", run, "--json").stdout)
    return found


@pytest.mark.thorough
def test_nest_with_typeorm_and_with_prepared_statements_do_the_same_work(
    tmp_path: Path, weir: Weir, study: Study
) -> None:
    done = weir(
        "run",
        study("nest-typeorm", "nest-typeorm[raw]", workloads=["user-all"], duration_s=1, warmup_s=0.3),
        "--out",
        "out",
    )
    assert done.returncode == 0, done.stderr
    assert "do the same work per request" in done.stdout
    (point,) = report(weir, "out")["points"]
    assert point["work"]["outcome"] == "same"
    for stack in point["stacks"]:
        (work,) = stack["work"]
        assert work["service"] == "postgres"
        assert work["statements"] == pytest.approx(1, abs=work["edge"] + 0.01)
        assert work["rows"] == pytest.approx(100, abs=100 * work["edge"] + 1)
    with sqlite3.connect(tmp_path / "out" / "run.weir") as connection:
        tiers = {tier for (tier,) in connection.execute("SELECT DISTINCT tier FROM sample")}
        assert tiers == {"app", "postgres"}
        for (logs,) in connection.execute("SELECT logs FROM trial"):
            assert "database system is ready" in (tmp_path / "out" / json.loads(logs)["postgres"]).read_text()


@pytest.mark.soak
def test_a_replica_takes_half_of_the_reads_and_both_servers_together_do_the_same_work(
    tmp_path: Path, weir: Weir, study: Study
) -> None:
    asked = study("nest-typeorm", "nest-typeorm[read-replica]", workloads=["user-random"], duration_s=2, warmup_s=0.5)
    done = weir("run", asked, "--out", "out", timeout_s=300)
    assert done.returncode == 0, done.stderr
    assert "do the same work per request" in done.stdout
    (point,) = report(weir, "out")["points"]
    ((alone,), both) = ({work["service"]: work["statements"] for work in stack["work"]} for stack in point["stacks"])
    assert alone == "postgres"
    assert both == {"postgres": pytest.approx(0.5, abs=0.2), "postgres-standby": pytest.approx(0.5, abs=0.2)}
    with sqlite3.connect(tmp_path / "out" / "run.weir") as connection:
        assert {tier for (tier,) in connection.execute("SELECT DISTINCT tier FROM sample")} == {
            "app",
            "postgres",
            "postgres-standby",
        }


@pytest.mark.usefixtures("stacks")
def test_a_stack_that_asks_once_more_is_caught_in_the_trial_and_in_the_report(weir: Weir, study: Study) -> None:
    done = weir("run", study("once", "twice", workloads=["user-by-id"], duration_s=1, warmup_s=0.3), "--out", "out")
    assert done.returncode == 0, done.stderr
    found = report(weir, "out")
    (point,) = found["points"]
    assert point["work"]["outcome"] == "different"
    assert point["work"]["sentence"].startswith("The stacks do not do the same work: data statements per request are ")
    once, twice = (stack["work"][0] for stack in point["stacks"])
    assert once["statements"] == pytest.approx(1, abs=once["edge"] + 0.01)
    assert twice["statements"] == pytest.approx(2, abs=2 * twice["edge"] + 0.01)
    assert found["answer"]["validity"] == "suspect"
    said = " ".join(done.stdout.split())
    assert "data statements per request, the workload expects 1 (" in said
    assert "SELECT count(*) FROM users" in said


@pytest.mark.thorough
@pytest.mark.usefixtures("stacks")
def test_a_stack_that_answers_wrong_after_the_load_is_left_out_with_the_reason(weir: Weir, study: Study) -> None:
    # Every connection carries enough requests for the server to spoil its responses, however long they take.
    spoils = study("spoils", workloads=["user-by-id"], duration_s=60, load="loops = 100", retries=0)
    done = weir("run", spoils, "--out", "out")
    assert done.returncode == 4, done.stdout
    (left_out,) = report(weir, "out")["left_out"]
    (reason,) = (reason for reason in left_out["reasons"] if reason.startswith("after the load"))
    assert reason.startswith("after the load: workload user-by-id: GET /user/")
    assert "expected the row" in reason


@pytest.mark.usefixtures("stacks")
def test_a_database_that_dies_under_the_load_ends_the_trial_with_the_reason(weir: Weir, study: Study) -> None:
    # The load ends with the database, however long the server takes to end it.
    done = weir("run", study("kills", workloads=["user-by-id"], duration_s=60, retries=0), "--out", "out")
    assert done.returncode == 3, done.stderr
    (left_out,) = report(weir, "out")["left_out"]
    assert any("the service postgres ended" in reason and "during the load" in reason for reason in left_out["reasons"])


@pytest.mark.usefixtures("stacks")
def test_a_stack_with_a_database_is_started_for_a_person_and_leaves_nothing(start_weir: StartWeir) -> None:
    process = start_weir("stacks", "start", "once", "--json")
    assert process.stdout is not None
    started = ""
    while "}" not in started:
        line = process.stdout.readline()
        assert line, process.communicate()[1]
        started += line
    url = json.loads(started)["url"]
    status, body = send_request(Request("GET", f"{url}/user/7"), timeout_s=5)
    assert (status, json.loads(body)["id"]) == (200, 7)
    process.send_signal(signal.SIGINT)
    assert process.wait(END_S) == 0
    with pytest.raises(OSError, match="refused"):
        send_request(Request("GET", f"{url}/user/7"), timeout_s=5)
