"""Tests the JVM stacks with a database: whether they do the same work, and which of them loses updates."""

import json
import sqlite3
from pathlib import Path

import pytest

from tests.end_to_end.conftest import Study, Weir

pytestmark = [pytest.mark.soak, pytest.mark.needs("javac", "mvn")]
BUILT_S = 1200.0
PEOPLE = (
    "spring-mvc-jdbc",
    "spring-mvc-jdbc[plain]",
    "spring-mvc-r2dbc",
    "spring-webflux-jdbc",
    "spring-webflux-r2dbc-pg",
    "quarkus-reactive",
)
TICKETS = ("spring-mvc-jpa", "spring-mvc-jpa[atomic]", "spring-webflux-r2dbc", "spring-webflux-r2dbc[atomic]")


def test_the_ways_to_the_people_do_the_same_work_in_jars_of_different_sizes(weir: Weir, study: Study) -> None:
    done = weir(
        "run", study(*PEOPLE, workloads=["people"], duration_s=3, warmup_s=1), "--out", "out", timeout_s=BUILT_S
    )
    assert done.returncode == 0, done.stderr
    findings = json.loads(weir("report", "out", "--json").stdout)
    (point,) = findings["points"]
    assert point["work"]["outcome"] == "same", point["work"]["sentence"]
    assert len({stack["artifact_bytes"] for stack in findings["what_ran"]}) == len(PEOPLE)
    assert all(len(stack["runtimes"]) == 1 for stack in findings["what_ran"])


def test_a_count_that_is_read_and_written_loses_updates_and_one_in_the_database_does_not(
    tmp_path: Path, weir: Weir, study: Study
) -> None:
    # The load ends with its last response. WebFlux cancels a request whose connection is closed, and this may separate
    # UPDATE and INSERT.
    asked = study(
        *TICKETS,
        workloads=["ticket-issue"],
        connections="[16]",
        load="requests = 400",
        duration_s=60,
        method='invariant = "report"',
    )
    done = weir("run", asked, "--out", "out", timeout_s=BUILT_S)
    assert done.returncode == 0, done.stderr
    with sqlite3.connect(tmp_path / "out" / "run.weir") as run:
        trials = run.execute("SELECT variant, discrepancies, work FROM trial JOIN cell ON cell.id = cell_id").fetchall()
    assert len(trials) == len(TICKETS)
    for variant, discrepancies, works in trials:
        # All requests of the warm-up got their response before, so they cause no discrepancy.
        kinds = [one.split(":")[0] for one in json.loads(discrepancies)]
        assert kinds == ([] if variant == "atomic" else ["invariant counter-agrees"])
        (work,) = json.loads(works)
        edge = 2 * work["edge_requests"] / work["requests"]
        assert work["statements"] / work["requests"] == pytest.approx(4, abs=4 * edge + 0.01)
