"""`[services.NAME]` of a study: settings of what its stacks need, and which of it its workloads need."""

from pathlib import Path

import pytest

from weir.model.errors import UsageError
from weir.study.study import PlannedCell, read_study

STUDY = """
schema = 1
title = "T"
question = "Q?"
[matrix]
stacks = ["flask-gunicorn"]
workloads = ["{workload}"]
connections = [1]
[load]
duration_s = 1
[method]
blocks = 2
baseline = "flask-gunicorn"
[services.{service}]
{setting}
[scales.quick.services.delay]
servers = "3"
"""


def planned(
    folder: Path, setting: str = 'delay = "2s"', service: str = "delay", workload: str = "ping", scale: str = "quick"
) -> PlannedCell:
    path = folder / "mine.toml"
    path.write_text(STUDY.format(setting=setting, service=service, workload=workload))
    return read_study(str(path), scale=scale).cells(1)[0]


def test_a_study_and_its_scale_set_what_a_service_does(tmp_path: Path) -> None:
    assert planned(tmp_path).services["delay"].settings == {"delay": "2s", "servers": "3"}


def test_an_upstream_runs_beside_the_workloads_that_are_about_it_alone(tmp_path: Path) -> None:
    assert planned(tmp_path, workload="hello").services == {}


@pytest.mark.parametrize(
    ("setting", "service", "problem"),
    [
        ('delay = "late"', "delay", r"mine\.toml: services\.delay: delay: found 'late'"),
        ('dely = "2s"', "delay", r"services\.delay: dely: unknown setting; expected one of: delay"),
        ("delay = 2", "delay", r"services\.delay\.delay: found 2"),
        ('max_connections = "1"', "postgres", r"services\.postgres: found a service that no stack of the matrix needs; they need: delay"),
    ],
)
def test_a_setting_that_reaches_nothing_is_refused(tmp_path: Path, setting: str, service: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        planned(tmp_path, setting, service)
