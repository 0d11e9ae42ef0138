"""Tests the study that repeats one cell of another study with more of one resource."""

import tomllib
from pathlib import Path

import pytest

from weir.model.errors import UsageError
from weir.model.load import ClosedLoad
from weir.study.experiment_study import make_experiment_study
from weir.study.study import Study, read_study

TEXT = """
schema = 1
title = "T"
question = "Q?"
[matrix]
stacks = ["flask-gunicorn[gthread]", "sanic"]
workloads = ["ping"]
users = [20, "0s:0,5s:40"]
limits.workers = [4, 8]
services."delay.delay" = ["50ms", "2s"]
[load]
duration_s = 1
[method]
blocks = 20
baseline = "sanic"
aa = "sanic"
refine = true
[[override]]
where = { users = 20 }
load = { duration_s = 7 }
"""


@pytest.fixture
def study(tmp_path: Path) -> Study:
    path = tmp_path / "mine.toml"
    path.write_text(TEXT)
    return read_study(str(path))


def test_one_cell_is_measured_as_it_was_and_with_more_of_one_thing(study: Study) -> None:
    planned = study.cells(1)[1]
    made = make_experiment_study(study, planned, of="limit", name="workers", before=4, after=8, blocks=3)
    before, after = made.cells(1)
    assert (before.cell.stack_label, before.cell.load, before.load.duration_s) == (
        planned.cell.stack_label,
        planned.cell.load,
        7,
    )
    assert (before.cell.settings["workers"], after.cell.settings["workers"]) == ("4", "8")
    # The other varied settings keep the values of this cell.
    assert before.services["delay"].settings == after.services["delay"].settings == planned.services["delay"].settings
    assert planned.services["delay"].settings["delay"] == "2s"
    method = made.file.method
    assert (method.blocks, method.baseline, method.aa, method.refine) == (3, "flask-gunicorn[gthread]", None, False)
    # The run file keeps the study's text, which has the same content.
    assert tomllib.loads(made.text)["matrix"]["limits"] == {"workers": [4, 8]}


def test_a_profile_cannot_be_doubled(study: Study) -> None:
    planned = next(
        one
        for one in study.cells(1)
        if isinstance(one.cell.load, ClosedLoad) and isinstance(one.cell.load.users, tuple)
    )
    with pytest.raises(UsageError, match="weir cannot change a profile"):
        make_experiment_study(study, planned, of="users", name="users", before=40, after=80, blocks=3)
