"""Tests the forecast of a study before it runs: its time, and its requirements on the machine."""

from dataclasses import replace
from pathlib import Path

import pytest

from weir.model.run_types import Limits, Placement
from weir.parsing import format_duration
from weir.study.machine_needs import MachineResources, find_shortages, read_machine
from weir.study.study import Study, read_study
from weir.study.time_estimate import Overhead, estimate_time

STUDY = """
schema = 1
title = "T"
question = "Q?"
[matrix]
stacks = ["flask-gunicorn", "sanic"]
workloads = ["hello"]
connections = [4, 2000]
replicas = [1, 2]
[load]
duration_s = 10
[method]
blocks = 3
baseline = "sanic"
warmup_s = 2
pause_s = 1
[[override]]
where = { stack = "sanic" }
method = { warmup_s = 4 }
"""
AMPLE = MachineResources(memory_bytes=8_000_000_000, open_files=100_000, most_open_files=100_000, local_ports=28_000)

PLACED = Placement(load=(0,), stack=(1,), services=(), control=(0,))


@pytest.fixture
def study(tmp_path: Path) -> Study:
    path = tmp_path / "mine.toml"
    path.write_text(STUDY)
    return read_study(str(path))


def test_a_forecast_adds_up_what_every_trial_takes(study: Study) -> None:
    cells = study.cells(1)
    coming = estimate_time(study, cells, Overhead({"sanic": 1.0}, 2.0))
    assert coming.trials == 24
    assert coming.load_s == 240
    assert coming.warmup_s == 12 * 2 + 12 * 4
    assert coming.pauses_s == 24
    assert coming.starts_and_stops_s == 12 * 2.0 + 12 * 1.0
    # Each stack is started once for checks, and the checks use two loads: 4 and 2,000 connections.
    assert coming.checks_s == 2.0 + 1.0 + 2 * 1.5
    assert (
        coming.total_s
        == coming.load_s + coming.warmup_s + coming.pauses_s + coming.starts_and_stops_s + coming.checks_s
    )


def test_a_forecast_has_the_order_in_which_the_lab_runs(study: Study) -> None:
    order = estimate_time(study, study.cells(1)).order
    assert [sorted(block) for block in order] == [list(range(1, 9))] * 3
    assert len(set(order)) == 3


@pytest.mark.parametrize(("seconds", "text"), [(45, "45 s"), (720, "12 min"), (12_600, "3.5 h")])
def test_a_span_is_told_in_the_unit_that_people_plan_in(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


def test_a_machine_with_enough_of_everything_lacks_nothing(study: Study) -> None:
    assert find_shortages(study.cells(1), AMPLE, PLACED, memory_bytes={"sanic": 1_000_000}) == []


@pytest.mark.parametrize(
    ("there_is", "expected"),
    [
        (
            replace(AMPLE, most_open_files=2_063),
            "open files: found 2,064 files of the generator for 2,000 connections (hello, 2000 connections, 1 replica); "
            "expected at most 2,063 (ulimit -Hn)",
        ),
        (replace(AMPLE, open_files=1024), "open files: found 2,000 connections to a process of Flask on gunicorn"),
        (replace(AMPLE, local_ports=1999), "ports: found 2,000 connections to one server"),
        (
            replace(AMPLE, memory_bytes=199_000_000),
            "memory: found 2 × sanic with 100 MB each as in the pilot, 200 MB; expected at most 199 MB",
        ),
    ],
)
def test_what_does_not_suffice_is_said_with_how_much_there_is(
    study: Study, there_is: MachineResources, expected: str
) -> None:
    (found,) = find_shortages(study.cells(1), there_is, PLACED, memory_bytes={"sanic": 100_000_000})
    assert expected in found


def test_replicas_share_the_connections_that_a_process_must_hold(study: Study) -> None:
    doubled = [one for one in study.cells(1) if one.cell.replicas == 2]
    assert find_shortages(doubled, replace(AMPLE, open_files=1100, local_ports=1000), PLACED) == []


def test_this_machine_has_some_of_everything() -> None:
    there_is = read_machine()
    assert there_is.memory_bytes > 1_000_000
    assert there_is.most_open_files >= there_is.open_files > 0
    assert there_is.local_ports > 0


def test_memory_that_a_limit_allows_to_every_process_must_be_there(study: Study) -> None:
    limited = replace(PLACED, limits={"app": Limits(memory_bytes=600_000_000)})
    assert find_shortages(study.cells(1), replace(AMPLE, memory_bytes=1_200_000_000), limited) == []
    (found,) = find_shortages(study.cells(1), replace(AMPLE, memory_bytes=1_199_000_000), limited)
    assert found.startswith("memory: found 2 × flask-gunicorn with 600 MB each as cpus.memory allows, 1,200 MB")
