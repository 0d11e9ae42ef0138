"""Tests the points of a matrix and their names. No comparison mixes cells of different points."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.synthetic_run import FLASK, NETTY, SANIC, SyntheticStudy, write_run
from weir.findings import RunFindings, of_run
from weir.findings.metrics import THROUGHPUT
from weir.findings.pilot import Pilot, measure_pilot
from weir.findings.points import count_planned_comparisons
from weir.model.errors import UsageError
from weir.model.load import ClosedLoad
from weir.model.run_types import PublishedFigure
from weir.report import render_terminal
from weir.store import RunReader

THREADS = ({"threads": "50"}, {"threads": "200"})
MATRIX = SyntheticStudy(
    duration_s=1.0,
    interval_s=0.2,
    loads=(ClosedLoad(4), ClosedLoad(20), ClosedLoad(100)),
    coordinates=THREADS,
    blocks=2,
)


def found(folder: Path, study: SyntheticStudy) -> RunFindings:
    with RunReader(write_run(folder / "run.weir", study)) as reader:
        return of_run(reader)


def test_points_are_every_combination_and_are_named_by_what_varies(tmp_path: Path) -> None:
    findings = found(tmp_path, MATRIX)
    assert [point.label for point in findings.points] == [
        "4 connections, threads 50", "4 connections, threads 200", "20 connections, threads 50", "20 connections, threads 200",
        "100 connections, threads 50", "100 connections, threads 200",
    ]  # fmt: skip
    for point in findings.points:
        assert [stack.label for stack in point.stacks] == ["flask-gunicorn", "flask-gunicorn (A/A)", "sanic"]
        assert {stack.settings["threads"] for stack in point.stacks} == {point.coordinates["threads"]}
    assert findings.answer.sentence.startswith("With 4 connections, threads 50: Sanic answers ")
    assert " Over 6 points this ratio lies between " in findings.answer.sentence


def test_what_does_not_vary_is_not_said(tmp_path: Path) -> None:
    findings = found(
        tmp_path,
        replace(
            MATRIX,
            loads=(ClosedLoad(4),),
            coordinates=({"threads": "50", "replicas": "1"}, {"threads": "50", "replicas": "2"}),
        ),
    )
    assert [point.label for point in findings.points] == ["1 replica", "2 replicas"]


def test_several_workloads_are_named_where_sentences_end(tmp_path: Path) -> None:
    findings = found(tmp_path, replace(MATRIX, workloads=("echo", "hello"), loads=(ClosedLoad(4),)))
    assert findings.points[0].label == "echo, threads 50"
    assert findings.answer.sentence.startswith("With threads 50 on echo: ")


def test_a_stack_without_a_limit_stands_beside_each_of_its_values_and_is_measured_once(tmp_path: Path) -> None:
    study = replace(
        MATRIX, stacks=(FLASK, SANIC, NETTY), aa="sanic", unlimited=("sanic", "spring-webflux"), loads=(ClosedLoad(4),)
    )
    with RunReader(write_run(tmp_path / "run.weir", study)) as reader:
        findings, cells = of_run(reader), reader.cells()
    assert len(cells) == 2 + 2 + 1
    assert [[stack.label for stack in point.stacks] for point in findings.points] == [
        ["flask-gunicorn", "sanic", "sanic (A/A)", "spring-webflux"]
    ] * 2
    first, second = findings.points
    assert first.stacks[1].evidence == second.stacks[1].evidence
    assert first.stacks[0].evidence != second.stacks[0].evidence
    copies = findings.identical_copies
    assert copies is not None
    # One pair of cells, although it appears in both points. Its six metrics include medians and p99.
    assert copies.compared <= 7
    assert count_planned_comparisons(cells, "flask-gunicorn") == 4
    assert count_planned_comparisons(cells, "sanic") == 3


def test_limits_that_no_two_stacks_share_meet_in_every_combination(tmp_path: Path) -> None:
    study = replace(MATRIX, aa=None, coordinates=({"keep-alive": "on"}, {"keep-alive": "off"}), loads=(ClosedLoad(4),))
    findings = found(tmp_path, study)
    assert [point.label for point in findings.points] == ["keep-alive on", "keep-alive off"]
    assert all(len(point.stacks) == 2 for point in findings.points)


def test_holms_family_is_all_comparisons_of_the_run_on_a_metric(tmp_path: Path) -> None:
    findings = found(tmp_path, MATRIX)
    throughput = [one for point in findings.points for one in point.comparisons if one.metric == THROUGHPUT]
    assert len(throughput) == 6
    smallest = min(one.p_value for one in throughput if one.p_value is not None)
    assert min(one.p_adjusted for one in throughput if one.p_adjusted is not None) == pytest.approx(6 * smallest)


def test_objectives_are_told_for_every_stack_at_every_point(tmp_path: Path) -> None:
    findings = found(
        tmp_path, replace(MATRIX, loads=(ClosedLoad(4),), objectives=(("p99<50ms", True), ("p99<40ms", False)))
    )
    held = [one for point in findings.points for stack in point.stacks for one in stack.objectives]
    assert [(one.objective, one.met, one.trials_met, one.trials, one.found, one.unit) for one in held] == [
        ("p99<50ms", True, 2, 2, 43_100.0, "us"), ("p99<40ms", False, 0, 2, 43_100.0, "us"),
    ] * 6  # fmt: skip


def test_the_terminal_has_one_table_with_a_row_for_each_point(tmp_path: Path) -> None:
    from rich.console import Console

    console = Console(width=80, no_color=True, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(render_terminal(found(tmp_path, replace(MATRIX, objectives=(("p99<40ms", False),)))))
    lines = console.export_text().splitlines()
    assert max(map(len, lines)) <= 80
    overview = lines[next(index for index, line in enumerate(lines) if line.strip() == "All points") :]
    assert "Sanic ÷ Flask" in overview[1]
    assert overview[2].startswith("4 connections, threads 50")
    assert "Objectives: 12 of 12 missed" in "\n".join(lines)
    assert not [line for line in lines if "p99 ms" in line or "built MB" in line]
    console.file.close()


def test_a_pilot_tells_how_far_trials_differ_and_what_they_cost(tmp_path: Path) -> None:
    study = replace(MATRIX, blocks=6, stacks=tuple(replace(stack, variation=0.05) for stack in (FLASK, SANIC)), aa=None)
    with RunReader(write_run(tmp_path / "run.weir", study)) as reader:
        pilot = measure_pilot(reader)
    assert isinstance(pilot, Pilot)
    # Six points with five degrees of freedom each; the true value is 0.05 × √2.
    assert pilot.pairs == 30
    assert 0.05 < pilot.spread < 0.1
    # Trials begin every 12 s, of which load, warm-up and pause take 4 s.
    assert pilot.overhead_s == pytest.approx({"flask-gunicorn": 8.0, "sanic": 8.0})
    assert pilot.memory_bytes["flask-gunicorn"] == pytest.approx(FLASK.memory_bytes, rel=0.05)


def test_a_run_of_one_block_is_no_pilot(tmp_path: Path) -> None:
    with (
        RunReader(write_run(tmp_path / "run.weir", replace(MATRIX, blocks=1))) as reader,
        pytest.raises(UsageError, match="--pilot: "),
    ):
        measure_pilot(reader)


def test_a_published_figure_stands_beside_the_points_that_it_names_alone(tmp_path: Path) -> None:
    at_20 = PublishedFigure("sanic", THROUGHPUT, 33_593.0, "somewhere", where={"connections": "20", "threads": "200"})
    findings = found(tmp_path, replace(MATRIX, published=(at_20,)))
    assert [point.label for point in findings.points if point.published] == ["20 connections, threads 200"]
