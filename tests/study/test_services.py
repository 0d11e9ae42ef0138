"""Tests `[services.NAME]` of a study: settings of the stacks' services, and the services that workloads need."""

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
        (
            'max_connections = "1"',
            "postgres",
            r"services\.postgres: found a service that no stack of the matrix needs, expected one of: delay",
        ),
    ],
)
def test_a_setting_that_reaches_nothing_is_refused(tmp_path: Path, setting: str, service: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        planned(tmp_path, setting, service)


VARIED = """
schema = 1
title = "T"
question = "Q?"
[matrix]
stacks = ["flask-gunicorn[gthread]", "sanic"]
workloads = ["ping"]
connections = [100]
services."{key}" = {values}
[load]
duration_s = 1
[method]
blocks = 2
baseline = "flask-gunicorn[gthread]"
"""


def varied(folder: Path, key: str = "delay.delay", values: str = '["50ms", "2s"]') -> str:
    path = folder / "mine.toml"
    path.write_text(VARIED.format(key=key, values=values))
    return str(path)


def test_a_setting_of_a_service_is_crossed_like_a_limit_and_moves_the_upper_bounds(tmp_path: Path) -> None:
    cells = read_study(varied(tmp_path)).cells(1)
    assert [(one.cell.stack, one.cell.coordinates["delay.delay"]) for one in cells] == [
        ("flask-gunicorn", "50ms"), ("flask-gunicorn", "2s"), ("sanic", "50ms"), ("sanic", "2s"),
    ]  # fmt: skip
    assert [one.services["delay"].settings["delay"] for one in cells] == ["50ms", "2s", "50ms", "2s"]
    short, long = (one.cell.upper_bounds[0].throughput_rps for one in cells[:2])
    assert short == pytest.approx(40 * long)
    assert cells[0].cell.point_label.endswith("delay 50ms")


@pytest.mark.parametrize(
    ("key", "values", "message"),
    [
        ("postgres.max_connections", '["1"]', "expected SERVICE.SETTING, with SERVICE one of"),
        ("delay", '["1s"]', "expected SERVICE.SETTING"),
        ("delay.delay", '["1s", "1s"]', "every value only once"),
        ("delay.delay", "[]", "expected at least one value"),
        ("delay.delay", '["soon"]', "delay"),
    ],
)
def test_a_varied_setting_that_nobody_has_is_named(tmp_path: Path, key: str, values: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_study(varied(tmp_path, key=key, values=values)).cells(1)
