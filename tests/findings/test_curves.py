"""Tests break-even and scalability of a whole run whose truth is known, in the findings and at the prompt."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.support.synthetic_run import FLASK, SANIC, SyntheticStudy, write_run
from weir.cli.commands import app
from weir.findings import RunFindings, of_run
from weir.findings.types import BreakEven
from weir.model.load import ClosedLoad
from weir.store import RunReader

PLACES = (1, 4, 16, 64, 256)
# Sanic overtakes Flask at 20 connections.
ONE = replace(FLASK, throughput_rps=20_000, cpu_us_per_request=40, variation=0.01, growth=lambda n: 1.0)
OTHER = replace(SANIC, throughput_rps=20_000, cpu_us_per_request=20, variation=0.01, growth=lambda n: (n / 20) ** 0.1)
STUDY = SyntheticStudy(
    stacks=(ONE, OTHER), loads=[ClosedLoad(n) for n in PLACES], blocks=10, aa=None, duration_s=1.0, indicative=False
)  # fmt: skip


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("run") / "run.weir", STUDY)


@pytest.fixture(scope="module")
def findings(path: Path) -> Iterator[RunFindings]:
    with RunReader(path) as reader:
        yield of_run(reader)


def on(findings: RunFindings, metric: str) -> BreakEven:
    (found,) = [one for one in findings.break_evens if one.metric == metric]
    return found


def test_a_run_tells_where_its_stacks_change_sides(findings: RunFindings) -> None:
    found = on(findings, "throughput_rps")
    (crossing,) = found.crossings
    assert crossing.at == pytest.approx(20, rel=0.1)
    assert crossing.low is not None
    assert crossing.high is not None
    assert crossing.low < 20 < crossing.high
    assert (found.axis, found.label, found.against_label, found.indicative) == (
        "connections",
        "sanic",
        "flask-gunicorn",
        False,
    )
    assert found.places == tuple(map(float, PLACES))
    assert "Flask is better up to" in found.sentence
    assert "and Sanic beyond" in found.sentence
    assert "nothing was measured between 16 and 64" in found.sentence


def test_where_nothing_crosses_the_side_is_said(findings: RunFindings) -> None:
    found = on(findings, "cpu_us_per_request")
    assert found.crossings == ()
    assert "Sanic is lower than Flask everywhere" in found.sentence


def test_one_point_has_no_break_even(tmp_path: Path) -> None:
    with RunReader(write_run(tmp_path / "run.weir", replace(STUDY, loads=[ClosedLoad(4)], blocks=2))) as reader:
        found = of_run(reader)
    assert found.break_evens == ()
    assert found.scalings == ()


def test_few_blocks_give_a_crossing_without_an_interval(tmp_path: Path) -> None:
    with RunReader(write_run(tmp_path / "run.weir", replace(STUDY, blocks=3, indicative=True))) as reader:
        found = on(of_run(reader), "throughput_rps")
    assert found.indicative
    assert "no interval with fewer than 10 blocks" in found.sentence
    assert "10 blocks give an interval." in found.would_change


def test_the_prompt_says_the_same_of_two_stacks_that_are_named(path: Path, findings: RunFindings) -> None:
    runner = CliRunner()
    result = runner.invoke(app, ["breakeven", "sanic", "flask-gunicorn", str(path), "--metric", "throughput_rps"])
    assert result.exit_code == 0
    assert on(findings, "throughput_rps").sentence in result.stdout
    as_json = runner.invoke(app, ["breakeven", "sanic", "flask-gunicorn", str(path), "--json"])
    assert [found["metric"] for found in json.loads(as_json.stdout)] == [
        "throughput_rps",
        "response_time_us.p99",
        "cpu_us_per_request",
    ]


def test_how_throughput_grows_is_fitted_where_enough_was_measured(tmp_path: Path) -> None:
    grows = replace(
        FLASK, throughput_rps=1_000, variation=0.02, growth=lambda n: n / (1 + 0.05 * (n - 1) + 0.001 * n * (n - 1))
    )
    jumps = replace(SANIC, throughput_rps=1_000, variation=0.02, growth=lambda n: 5.0 if n < 10 else 1.0)
    with RunReader(write_run(tmp_path / "run.weir", replace(STUDY, stacks=(grows, jumps)))) as reader:
        flask, sanic = of_run(reader).scalings
    assert flask.fitted is not None
    assert flask.fitted.peak_at is not None
    assert flask.fitted.peak_at.value == pytest.approx((0.95 / 0.001) ** 0.5, rel=0.05)
    assert "throughput peaks at" in flask.sentence
    assert sanic.fitted is None
    assert "does not follow the universal scalability law" in sanic.sentence
