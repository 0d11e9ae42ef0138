"""Tests runs as data frames for notebooks."""

from pathlib import Path

import polars as pl
import pytest

from tests.support.synthetic_run import SyntheticStudy, write_run
from weir import frames
from weir.model.errors import UsageError


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> frames.Run:
    study = SyntheticStudy(
        blocks=2, duration_s=1.0, coordinates=[{"threads": "8"}, {"threads": "16"}], unlimited=["sanic"]
    )
    return frames.read(write_run(tmp_path_factory.mktemp("run") / "run.weir", study).parent)


def test_trials_have_a_row_each_with_their_cell_and_every_metric(run: frames.Run) -> None:
    trials = run.trials()
    # Two cells of Flask and of its copy, and one cell of Sanic, in two blocks.
    assert trials.height == 10
    assert trials["throughput_rps"].dtype == pl.Float64
    assert set(trials["stack"].unique()) == {"flask-gunicorn", "flask-gunicorn (A/A)", "sanic"}
    assert trials.filter(pl.col("stack") == "sanic")["threads"].null_count() == 2
    assert trials["used"].all()


def test_intervals_and_readings_belong_to_their_trials(run: frames.Run) -> None:
    for frame in (run.intervals(), run.samples()):
        assert set(frame["trial"].unique()) == set(run.trials()["trial"])
    assert run.intervals().group_by("trial").len()["len"].unique().to_list() == [10]


def test_comparisons_and_measures_are_those_of_the_findings(run: frames.Run) -> None:
    findings = run.findings()
    assert run.comparisons().height == sum(len(point.comparisons) for point in findings.points)
    assert run.measures().height == sum(len(stack.measures) for point in findings.points for stack in point.stacks)
    first = findings.points[0].comparisons[0]
    row = run.comparisons().row(0, named=True)
    assert (row["metric"], row["ratio"], row["sentence"]) == (first.metric, first.ratio, first.sentence)


def test_a_folder_without_a_run_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"without run\.weir"):
        frames.read(tmp_path)
