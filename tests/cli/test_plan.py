"""Tests `weir plan` at the prompt."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.support.synthetic_run import SyntheticStudy, write_run
from weir.cli.commands import app
from weir.model.errors import UsageError
from weir.model.run_types import MeasurementWindow, TrialResult


@pytest.fixture
def run_file(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run.weir", SyntheticStudy(duration_s=1.0))


def test_it_prints_machines_intervals_and_assumptions(run_file: Path) -> None:
    done = CliRunner().invoke(
        app, ["plan", "--from", str(run_file), "--stack", "sanic", "--target-rate", "50k", "--objective", "p99<=1s"]
    )
    assert done.exit_code == 0, done.output
    for part in (
        "50,000 req/s with p99<=1s",
        "machines",
        "load agent",
        "by mean value analysis",
        "by simulation",
        "assumes:",
    ):
        assert part in done.output


def test_it_prints_json(run_file: Path) -> None:
    done = CliRunner().invoke(
        app, ["plan", "--from", str(run_file), "--stack", "sanic", "--target-rate", "50k", "--replicas", "2", "--json"]
    )
    found = json.loads(done.stdout)
    assert found["plan"]["rate_rps"] == 50_000
    assert [one["replicas"] for one in found["replicas"]] == [2]


def test_it_tells_of_each_number_of_processes_how_many_trials_behind_it_were_not_steady(tmp_path: Path) -> None:
    def drifts(_: str, block: int, result: TrialResult) -> TrialResult:
        return replace(
            result,
            window=MeasurementWindow(
                start_s=0.0, end_s=1.0, steady=block > 2, why="it drifts", extended=True, segments=()
            ),
        )

    run_file = write_run(tmp_path / "run.weir", SyntheticStudy(duration_s=1.0, change=drifts))
    done = CliRunner().invoke(app, ["plan", "--from", str(run_file), "--stack", "sanic", "--replicas", "2,3"])
    assert done.exit_code == 0, done.output
    words = " ".join(done.output.split())
    for count in (2, 3):
        assert f"{count} processes: 2 of 3 trials had no steady state" in words


def test_an_objective_that_cannot_be_met_exits_with_1(run_file: Path) -> None:
    done = CliRunner().invoke(
        app, ["plan", "--from", str(run_file), "--stack", "sanic", "--target-rate", "10", "--objective", "p99<=1us"]
    )
    assert done.exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--target-rate: missing"),
        (["--target-rate", "fast"], "--target-rate: found 'fast'"),
        (["--target-rate", "1k"], "--stack: found none, expected one of flask-gunicorn, sanic"),
        (["--target-rate", "1k", "--stack", "sanic", "--cpus", "app"], "--cpus: found 'app'"),
        (
            ["--replicas", "2", "--objective", "p99<=1s", "--cpus", "app=2"],
            "--objective, --cpus: found without --target-rate",
        ),
        (["--replicas", "2,x", "--stack", "sanic"], "--replicas: found '2,x'"),
    ],
)
def test_wrong_arguments_are_told(arguments: list[str], message: str, run_file: Path) -> None:
    done = CliRunner().invoke(app, ["plan", "--from", str(run_file), *arguments])
    assert isinstance(done.exception, UsageError)
    assert message in done.exception.message
