"""Tests a burst with responses in waves: the beginning of each wave, in the findings and at the prompt."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from tests.support.synthetic_run import FLASK, SyntheticStudy, write_run
from weir.findings import of_run
from weir.findings.bursts import describe_waves, find_waves
from weir.findings.evidence import CellTrials, group_by_cell
from weir.findings.point_types import StackFindings, Wave
from weir.findings.stack import measure_stack
from weir.model import hdr as histogram
from weir.model.load import ClosedLoad, Load
from weir.model.run_types import UpperBound
from weir.report.terminal import render_terminal
from weir.store import RunReader

BURST = ClosedLoad(300, requests_per_user=1)
THREADS = UpperBound("stack", 40.0, "200 threads ÷ 5 s", at_once=200, wait_s=5.0)


def answered(*waves: tuple[float, int]) -> bytes:
    """Returns a burst's response times. Each wave has a start and a number of responses, spread over half a second."""
    times_s = [from_s + 0.5 * nth / answers for from_s, answers in waves for nth in range(answers)]
    return histogram.encoded(Counter(histogram.index_of(round(time_s * 1e9)) for time_s in times_s))


def burst(folder: Path, load: Load = BURST) -> CellTrials:
    """Returns three trials of one stack under a load."""
    study = SyntheticStudy(
        stacks=(FLASK,), aa=None, loads=(load,), duration_s=2.0, upper_bounds={"flask-gunicorn": (THREADS,)}
    )
    with RunReader(write_run(folder / "run.weir", study)) as reader:
        (cell,) = group_by_cell(reader.cells(), reader.trials())
    return cell


def found(cell: CellTrials, histograms: Mapping[int, bytes]) -> StackFindings:
    return measure_stack(cell, "Flask", histograms.get, baseline=True)


def test_two_waves_of_a_burst_are_found_with_when_each_began(tmp_path: Path) -> None:
    cell = burst(tmp_path)
    begins = (5.01, 5.02, 5.03)
    stack = found(
        cell, {trial.id: answered((at, 200), (at + 5, 100)) for trial, at in zip(cell.used, begins, strict=True)}
    )
    first, second = stack.waves
    assert (first.answers, second.answers) == (200, 100)
    assert first.begins_s == pytest.approx(5.02, abs=0.006)
    assert second.begins_s == pytest.approx(10.02, abs=0.011)
    assert first.low_s == pytest.approx(5.02 - 4.303 * 0.01 / 3**0.5, abs=0.006)
    assert describe_waves([stack]) == (
        "Waves of responses to a burst: Flask answers 200 from 5.02 s (5.00–5.05) on and 100 from 10.02 s (10.00–10.05) on "
        "(predicted from 200 threads ÷ 5 s: 5 and 10 s)."
    )
    assert describe_waves([replace(stack, arm="aa")]) == ""
    of_the_load = replace(
        stack, waves=(Wave(300, 5.04, None, None),), upper_bounds=(UpperBound("load", 60.0, "300 users ÷ 5 s"),)
    )
    assert describe_waves([of_the_load]) == "Waves of responses to a burst: Flask answers 300 from 5.04 s on."


def test_answers_that_come_less_than_half_the_first_ones_time_apart_are_one_wave(tmp_path: Path) -> None:
    cell = burst(tmp_path)
    (wave,) = find_waves(cell, lambda _: answered((5.0, 200), (7.9, 100)))
    assert wave.answers == 300
    assert len(find_waves(cell, lambda _: answered((5.0, 200), (8.1, 100)))) == 2


def test_trials_that_differ_in_their_waves_say_nothing_of_any(tmp_path: Path) -> None:
    cell = burst(tmp_path)
    first, *_ = cell.used
    assert find_waves(cell, lambda trial: answered((5.0, 300) if trial == first.id else (10.0, 300))) != ()
    assert (
        find_waves(cell, lambda trial: answered((5.0, 300)) if trial == first.id else answered((5.0, 200), (10.0, 100)))
        == ()
    )
    assert find_waves(cell, lambda _: None) == ()


@pytest.mark.parametrize(
    "load",
    [
        ClosedLoad(300),
        ClosedLoad(300, requests_per_user=2),
        ClosedLoad(((0.0, 0.0), (300.0, 5.0)), requests_per_user=1),
    ],
    ids=str,
)
def test_only_a_burst_has_waves(tmp_path: Path, load: Load) -> None:
    assert find_waves(burst(tmp_path, load), lambda _: answered((5.0, 200), (10.0, 100))) == ()


def test_waves_stand_beside_the_upper_bounds_at_the_prompt(tmp_path: Path) -> None:
    burst(tmp_path)
    with RunReader(tmp_path / "run.weir") as reader:
        findings = of_run(reader)
    (point,) = findings.points
    assert "Predicted upper bounds: " in point.upper_bounds
    assert "Waves of responses to a burst: Flask answers " in point.upper_bounds
    output = StringIO()
    Console(file=output, width=80).print(render_terminal(findings))
    assert "Waves of responses to a burst: Flask answers " in " ".join(output.getvalue().split())
