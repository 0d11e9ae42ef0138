"""Tests how near stacks come to their arithmetic upper bound, in the findings, at the prompt and in the chart."""

from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from tests.support.synthetic_run import SyntheticStudy, write_run
from weir.findings import RunFindings, of_run
from weir.model.run_types import UpperBound
from weir.report import begin_charts
from weir.report.charts import AnswerSeries
from weir.report.terminal import render_terminal
from weir.store import RunReader

# Flask answers 2,450/s, Sanic 9,900/s.
THREADS = UpperBound("stack", 2_500, "50 threads ÷ 0.02 s", at_once=50, wait_s=0.02)
USERS = UpperBound("load", 20_000, "400 users ÷ 0.02 s")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunFindings, AnswerSeries]]:
    study = SyntheticStudy(
        duration_s=2.0, aa=None, upper_bounds={"flask-gunicorn": (THREADS, USERS), "sanic": (USERS,)}
    )
    with RunReader(write_run(tmp_path_factory.mktemp("run") / "run.weir", study)) as reader:
        (charts,) = begin_charts(reader)()
        yield of_run(reader), charts.answers


def test_each_stack_is_held_against_the_lowest_of_its_upper_bounds(run: tuple[RunFindings, AnswerSeries]) -> None:
    (point,) = run[0].points
    flask, sanic = point.stacks
    assert flask.upper_bounds == (THREADS, USERS)
    reached = [stack.measure("throughput_rps").value or 0 for stack in (flask, sanic)]
    shares = [f"{rate / allowed * 100:.1f} %" for rate, allowed in zip(reached, (2_500, 20_000), strict=True)]
    assert point.upper_bounds == (
        f"Predicted upper bounds: Flask reached {shares[0]} of the 2,500 req/s that 50 threads ÷ 0.02 s allow, a limit of the stack; "
        f"Sanic reached {shares[1]} of the 20,000 req/s that 400 users ÷ 0.02 s allow, a limit of the load."
    )
    output = StringIO()
    Console(file=output, width=80).print(render_terminal(run[0]))
    assert point.upper_bounds in " ".join(output.getvalue().split())


def test_the_chart_counts_answers_up_under_each_upper_bound_once(run: tuple[RunFindings, AnswerSeries]) -> None:
    series = run[1]
    lines = {line.label: line for line in series.lines}
    assert list(lines) == ["Flask", "Sanic", "50 threads ÷ 0.02 s", "400 users ÷ 0.02 s"]
    assert [line.colour for line in series.lines] == [0, 1, 0, None]
    assert series.time_s[0] == 0
    assert series.time_s[-1] == pytest.approx(2)
    assert lines["50 threads ÷ 0.02 s"].values[-1] == pytest.approx(5_000)
    answered = [value or 0 for value in lines["Flask"].values]
    assert answered == sorted(answered)
    assert answered[-1] == pytest.approx(2 * 2_450, rel=0.05)


def test_a_run_without_upper_bounds_says_and_draws_nothing(tmp_path: Path) -> None:
    with RunReader(write_run(tmp_path / "run.weir", SyntheticStudy(duration_s=2.0))) as reader:
        (point,), (charts,) = of_run(reader).points, begin_charts(reader)()
        assert point.upper_bounds == ""
        assert charts.answers.lines == []
