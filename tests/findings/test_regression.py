"""Tests the regression gate on runs whose truth is known."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.support.synthetic_run import FLASK, SANIC, SyntheticStudy, judged, write_run
from weir import stats
from weir.cli.commands import app
from weir.findings.regression import METRICS, Gate, compare_runs, format_markdown
from weir.model.errors import UsageError
from weir.model.load import ClosedLoad
from weir.store import RunReader

# With these rates a hundred requests per second exceed the p99.
SLOW = replace(FLASK, throughput_rps=24_500, cpu_us_per_request=38)
FAST = replace(SANIC, throughput_rps=99_000, cpu_us_per_request=9.2)
STUDY = SyntheticStudy(stacks=(SLOW, FAST), aa=None, blocks=10, duration_s=1.0, indicative=False)


def held(
    path: Path, base: SyntheticStudy, head: SyntheticStudy, threshold: float = 0.05, *, any_environment: bool = False
) -> Gate:
    old, new = (
        write_run(path / "base" / "run.weir", base),
        write_run(path / "head" / "run.weir", replace(head, seed=base.seed + 1)),
    )
    with RunReader(old) as one, RunReader(new) as other:
        return compare_runs(one, other, METRICS, threshold, any_environment=any_environment)


def test_the_same_system_twice_is_no_worse(tmp_path: Path) -> None:
    found = held(tmp_path, STUDY, STUDY)
    assert {one.verdict for one in found.checked} == {"no worse"}
    assert found.sentence == "No worse: no metric is worse by 5% or more."
    assert not found.indicative


def test_a_slower_system_is_worse_and_named(tmp_path: Path) -> None:
    slower = replace(FAST, throughput_rps=FAST.throughput_rps * 0.85)
    found = held(tmp_path, STUDY, replace(STUDY, stacks=(SLOW, slower)))
    worse = {(one.label, one.metric) for one in found.worse}
    # With fewer responses, a closed loop has longer response times.
    assert worse == {("sanic", "throughput_rps"), ("sanic", "response_time_us.p99")}
    assert "throughput of sanic (echo, 20 connections) −16" in found.sentence
    table = format_markdown(found)
    assert "| sanic | echo, 20 connections | throughput |" in table
    assert "**worse**" in table


def test_a_faster_system_is_not_worse(tmp_path: Path) -> None:
    faster = replace(FAST, throughput_rps=FAST.throughput_rps * 1.3, cpu_us_per_request=7)
    assert held(tmp_path, STUDY, replace(STUDY, stacks=(SLOW, faster))).worse == ()


def test_few_noisy_trials_are_undecided_and_not_passed(tmp_path: Path) -> None:
    noisy = [replace(one, variation=0.15) for one in (SLOW, FAST)]
    study = replace(STUDY, stacks=noisy, blocks=3)
    found = held(tmp_path, study, study)
    assert found.worse == ()
    assert found.unsettled
    assert "are undecided: more blocks would decide" in found.sentence
    assert found.indicative


@pytest.mark.parametrize(("blocks", "why"), [(1, "one run has a single trial")])
def test_one_trial_says_nothing(tmp_path: Path, blocks: int, why: str) -> None:
    study = replace(STUDY, blocks=blocks)
    found = held(tmp_path, study, study)
    assert {one.verdict for one in found.checked} == {"cannot say"}
    assert found.sentence == f"No verdict, because {why}."


def test_where_every_trial_was_rejected_nothing_can_be_said(tmp_path: Path) -> None:
    study = replace(STUDY, blocks=2, change=lambda label, block, result: judged(result, "invalid", "it answered wrong"))
    found = held(tmp_path, STUDY, study)
    assert {one.verdict for one in found.checked} == {"cannot say"}
    assert "no usable trial of head has this metric" in found.sentence


def test_runs_of_different_machines_are_refused_unless_told(tmp_path: Path) -> None:
    other = replace(STUDY, environment={**STUDY.environment, "kernel": "Linux 7.0"})
    with pytest.raises(UsageError, match=r"found different conditions: kernel: Linux 6\.1\.0 x86_64 and Linux 7\.0"):
        held(tmp_path / "one", STUDY, other)
    found = held(tmp_path / "two", STUDY, other, any_environment=True)
    assert found.differences == ("kernel: Linux 6.1.0 x86_64 and Linux 7.0",)
    assert "- Differs: kernel" in format_markdown(found)


def test_runs_without_a_cell_in_common_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no stack with the same load in both"):
        held(tmp_path, STUDY, replace(STUDY, loads=[ClosedLoad(7)]))


def test_what_only_one_run_has_is_said(tmp_path: Path) -> None:
    found = held(tmp_path, STUDY, replace(STUDY, stacks=(SLOW,)))
    assert len(found.only_in_one) == 1
    assert found.only_in_one[0].startswith("sanic on echo, 20 connections: only in ")


def test_the_command_exits_with_one_where_something_is_worse(tmp_path: Path) -> None:
    base = write_run(tmp_path / "base" / "run.weir", STUDY)
    slower = replace(STUDY, stacks=(SLOW, replace(FAST, throughput_rps=80_000)), seed=2)
    head = write_run(tmp_path / "head" / "run.weir", slower)
    runner = CliRunner()
    done = runner.invoke(app, ["gate", str(base), str(head)])
    assert done.exit_code == 1
    assert done.stdout.startswith("**Worse by more than 5%: ")
    done = runner.invoke(app, ["gate", str(base), str(head), "--threshold", "30%", "--json"])
    assert done.exit_code == 0
    assert json.loads(done.stdout)["threshold"] == 0.3
    assert runner.invoke(app, ["gate", str(base), str(base), "--strict"]).exit_code == 0


def test_false_alarms_of_a_family_are_rare_and_real_losses_are_found() -> None:
    """In a thousand gates of nine comparisons, at most 5 % call a figure worse that lies exactly at the threshold."""
    random = np.random.default_rng(3)
    alarms = found = 0
    for _ in range(1_000):
        p_values = []
        for _ in range(9):
            base, head = np.exp(random.normal(0, 0.02, (2, 10)))
            p_above = stats.compare_independent(list(base), list(head * 1.05)).p_above(1.05)
            assert p_above is not None
            p_values.append(p_above)
        alarms += min(stats.holm(p_values)) < 0.05
        base, head = np.exp(random.normal(0, 0.02, (2, 10)))
        p_above = stats.compare_independent(list(base), list(head * 1.12)).p_above(1.05)
        assert p_above is not None
        found += p_above < 0.05 / 9
    assert alarms <= 70
    assert found >= 950


def test_intervals_of_changes_hold_the_truth_as_often_as_they_say() -> None:
    random = np.random.default_rng(4)
    held_count = 0
    for _ in range(2_000):
        base, head = np.exp(random.normal(0, 0.01, 6)), 1.2 * np.exp(random.normal(0, 0.04, 12))
        found = stats.compare_independent(list(base), list(head))
        assert found.low is not None
        assert found.high is not None
        held_count += found.low <= 1.2 <= found.high
    assert 0.935 <= held_count / 2_000 <= 0.965


def test_a_change_without_spread_or_with_one_value_has_no_interval() -> None:
    for sides in (([1.0], [2.0]), ([1.0, 1.0], [2.0, 2.0])):
        found = stats.compare_independent(*sides)
        assert (found.value, found.low, found.high, found.p_above(1.0)) == (2.0, None, None, None)
    with pytest.raises(ValueError, match="positive"):
        stats.compare_independent([], [1.0])
    with pytest.raises(ValueError, match="positive"):
        stats.compare_independent([0.0], [1.0])


def test_what_nobody_can_say_is_not_promised_to_more_blocks(tmp_path: Path) -> None:
    # A trial has too few requests for a p99.
    few = replace(STUDY, stacks=(replace(SLOW, throughput_rps=2_000),))
    found = held(tmp_path, few, few)
    assert found.sentence == (
        "No metric is clearly worse by more than 5%; 1 of 3 have no verdict, because no usable trial of base has this metric."
    )
