"""Tests stacks with equal and with different work: the findings name the stack that does more, and the comparison is
suspect."""

import json
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from tests.support.synthetic_run import SyntheticStudy, write_run
from weir.findings import RunFindings, of_run
from weir.model.run_types import TrialResult
from weir.model.service_work import ServiceWork, StatementWork
from weir.report import render_json
from weir.report.terminal import render_terminal
from weir.store import RunReader

QUICK = SyntheticStudy(duration_s=1.0, interval_s=0.5, aa=None)
Find = Callable[..., RunFindings]


@pytest.fixture
def find(tmp_path: Path) -> Find:
    def of(change: Callable[[str, int, TrialResult], TrialResult]) -> RunFindings:
        with RunReader(write_run(tmp_path / "run.weir", replace(QUICK, change=change))) as reader:
            return of_run(reader)

    return of


def working(result: TrialResult, statements: float, rows: float | None, note: str = "") -> TrialResult:
    """Returns a change that gives each trial this database work per request."""
    assert result.summary is not None
    requests = result.summary.requests.completed
    calls = round(requests * statements)
    all_rows = None if rows is None else round(requests * rows)
    kinds = (StatementWork("SELECT id FROM users", calls, all_rows, True), StatementWork("BEGIN", requests, 0, False))
    work = ServiceWork("postgres", requests, 20, calls, requests, all_rows, {"pages": 8192 * calls}, kinds, note)
    return replace(result, work=(work,))


def test_stacks_that_do_the_same_are_said_to(find: Find) -> None:
    found = find(lambda label, block, result: working(result, 1, 100))
    (point,) = found.points
    assert point.work is not None
    assert point.work.outcome == "same"
    assert point.work.sentence == (
        "Flask and Sanic do the same work per request: 1.00 data statements and 100.00 rows, by the services' own counters."
    )
    assert found.answer.validity == "valid"
    assert not any("same work" in caution.fact for caution in found.cautions)


def test_one_statement_more_is_caught_with_who_does_it_and_makes_the_answer_suspect(find: Find) -> None:
    found = find(lambda label, block, result: working(result, 2 if label == "sanic" else 1, 100))
    (point,) = found.points
    assert point.work is not None
    assert point.work.outcome == "different"
    assert point.work.sentence == (
        "The stacks do not do the same work: data statements per request are Flask 1.00 and Sanic 2.00. "
        "Most come from Sanic (2.00× SELECT id FROM users)."
    )
    assert found.answer.validity == "suspect"
    assert {comparison.validity for comparison in point.comparisons if comparison.ratio is not None} == {"suspect"}
    assert any(point.work.sentence in caution.fact for caution in found.cautions)


def test_rows_are_compared_as_well(find: Find) -> None:
    found = find(lambda label, block, result: working(result, 1, 50 if label == "sanic" else 100))
    assert found.points[0].work is not None
    assert "rows per request are Flask 100.00 and Sanic 50.00. Most come from Flask" in found.points[0].work.sentence


def test_rows_given_back_for_their_keys_stand_beside_and_judge_nobody(find: Find) -> None:
    def change(label: str, block: int, result: TrialResult) -> TrialResult:
        result = working(result, 1, 100)
        (work,) = result.work
        return replace(result, work=(replace(work, key_rows=work.requests if label == "sanic" else 0),))

    (point,) = find(change).points
    assert point.work is not None
    assert point.work.outcome == "same"
    assert point.work.sentence.endswith("In addition, the database returned the keys of inserted rows: Sanic 1.00.")


def test_rows_that_may_differ_are_not_compared_and_the_report_says_why(find: Find) -> None:
    def change(label: str, block: int, result: TrialResult) -> TrialResult:
        result = working(result, 1, 50 if label == "sanic" else 100)
        (work,) = result.work
        return replace(result, work=(replace(work, rows_differ="half of them change nothing"),))

    (point,) = find(change).points
    assert point.work is not None
    assert point.work.outcome == "same"
    assert point.work.sentence == (
        "Flask and Sanic do the same work per request: 1.00 data statements, by the services' own counters. "
        "Rows are not compared: half of them change nothing."
    )


def test_what_requests_at_the_edges_explain_is_no_difference(find: Find) -> None:
    found = find(lambda label, block, result: working(result, 1.002 if label == "sanic" else 1, 100))
    assert found.points[0].work is not None
    assert found.points[0].work.outcome == "same"


def test_rows_that_one_does_not_count_are_not_compared(find: Find) -> None:
    found = find(lambda label, block, result: working(result, 1, None if label == "sanic" else 100))
    assert found.points[0].work is not None
    assert found.points[0].work.outcome == "same"


def test_a_stack_without_counters_cannot_be_compared_and_that_is_said(find: Find) -> None:
    found = find(lambda label, block, result: result if label == "sanic" else working(result, 1, 100))
    assert found.points[0].work is not None
    assert found.points[0].work.outcome == "not compared"
    assert found.points[0].work.sentence.endswith("The services counted no work of Sanic.")


def test_without_services_nothing_is_said_about_work(find: Find) -> None:
    found = find(lambda label, block, result: result)
    assert found.points[0].work is None
    assert all(stack.work == () for stack in found.points[0].stacks)


def test_a_broken_invariant_that_is_reported_stands_among_the_cautions(find: Find) -> None:
    found = find(lambda label, block, result: replace(result, discrepancies=("invariant rows: grew by 1, expected 2",)))
    assert "invariant rows: grew by 1, expected 2." in found.cautions[0].fact


def test_text_and_json_show_the_work(find: Find) -> None:
    found = find(lambda label, block, result: working(result, 1, 100))
    console = Console(width=100, record=True, file=StringIO())
    console.print(render_terminal(found))
    text = console.export_text()
    assert "Work per request" in text
    assert "do the same work per request" in text
    (point,) = json.loads(render_json(found))["points"]
    assert point["work"]["outcome"] == "same"
    assert point["stacks"][0]["work"][0]["statements"] == 1
    assert point["stacks"][0]["work"][0]["rows"] == 100
