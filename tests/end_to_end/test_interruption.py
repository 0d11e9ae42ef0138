"""Tests what is left after a part of a run dies: no process, and all finished trials."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.end_to_end.conftest import END_S, StartWeir, Study, Weir, lives, servers_of
from tests.end_to_end.ordeal import accepted, finished_rows, is_connected, pids_of, read_until, roles, wait_until
from tests.support.tiers import cases
from weir.store import RunReader

pytestmark = pytest.mark.usefixtures("stacks")


def assert_trial_3_was_the_last(run: Path) -> None:
    """Asserts that both trials before trial 3 are finished. On a busy machine trial 3 may end before the signal comes."""
    assert 2 <= len(finished_rows(run)) < 4


def start_third_trial(start_weir: StartWeir, path: Path) -> "subprocess.Popen[str]":
    process = start_weir("run", path, "--out", "out")
    assert process.stderr is not None
    read_until(process.stderr, "trial 3 of 4")
    return process


def test_ctrl_c_keeps_what_was_finished_and_the_run_can_be_resumed(
    tmp_path: Path, start_weir: StartWeir, weir: Weir, study: Study
) -> None:
    process = start_third_trial(start_weir, study("good", "other", blocks=2))
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=END_S)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "weir run --resume" in err
    assert out
    assert (tmp_path / "out" / "report.html").exists()
    assert servers_of(tmp_path) == []
    run = tmp_path / "out" / "run.weir"
    assert_trial_3_was_the_last(run)
    resumed = weir("run", "--resume", "out")
    assert resumed.returncode == 0, resumed.stderr
    assert len(accepted(run)) == 4


def test_kill_9_of_weir_leaves_no_process_and_a_run_that_resumes(
    tmp_path: Path, start_weir: StartWeir, weir: Weir, study: Study
) -> None:
    process = start_third_trial(start_weir, study("good", "other", blocks=2))
    engines = [pid for pid, _ in roles(process.pid)]
    process.kill()
    process.communicate(timeout=END_S)
    wait_until(lambda: not servers_of(tmp_path) and not any(map(lives, engines)), "something still runs")
    run = tmp_path / "out" / "run.weir"
    assert_trial_3_was_the_last(run)
    assert weir("run", "--resume", "out/run.weir").returncode == 0
    assert len(accepted(run)) == 4


def test_kill_9_of_the_host_ends_the_run_with_its_results_kept(
    tmp_path: Path, start_weir: StartWeir, weir: Weir, study: Study
) -> None:
    process = start_third_trial(start_weir, study("good", "other", blocks=2))
    os.kill(pids_of("host", process.pid)[0], signal.SIGKILL)
    _, err = process.communicate(timeout=END_S)
    assert process.returncode == 3
    assert "weir-engine host ended unexpectedly by signal 9" in err
    assert "Traceback" not in err
    wait_until(lambda: not servers_of(tmp_path), "a server still runs")
    assert weir("run", "--resume", "out").returncode == 0
    assert len(accepted(tmp_path / "out" / "run.weir")) == 4


@pytest.mark.parametrize(
    ("number", "said"),
    cases(
        [
            (signal.SIGKILL, "weir-engine load ended unexpectedly by signal 9"),
            (signal.SIGTERM, "another process ended the generator after"),
        ],
        kept=1,
    ),
)
def test_an_end_of_the_generator_rejects_its_trial_alone(
    tmp_path: Path, start_weir: StartWeir, study: Study, number: int, said: str
) -> None:
    process = start_third_trial(start_weir, study("good", "other", blocks=2, duration_s=1, retries=5))
    wait_until(lambda: any(map(is_connected, pids_of("generator", process.pid))), "no generator came")
    os.kill(pids_of("generator", process.pid)[0], number)
    _, err = process.communicate(timeout=END_S)
    assert process.returncode == 0, err
    assert servers_of(tmp_path) == []
    run = tmp_path / "out" / "run.weir"
    assert len(accepted(run)) == 4
    with RunReader(run) as reader:
        ended = [trial for trial in reader.trials() if said in "\n".join(trial.result.verdict.texts)]
    assert [trial.result.verdict.validity for trial in ended] == ["invalid"], err


@pytest.mark.thorough
def test_a_run_does_not_go_on_with_another_stack(
    tmp_path: Path, start_weir: StartWeir, weir: Weir, study: Study
) -> None:
    process = start_third_trial(start_weir, study("good", "other", blocks=2))
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=END_S)
    server = tmp_path / "stacks" / "good" / "server.py"
    before = server.read_text()
    server.write_text(before + "# changed\n")
    refused = weir("run", "--resume", "out")
    assert refused.returncode == 2
    assert "the environment has changed since the run began: the files of good" in refused.stderr
    server.write_text(before)
    assert weir("run", "--resume", "out").returncode == 0


def test_resuming_what_is_not_a_run_is_an_error(tmp_path: Path, weir: Weir) -> None:
    (tmp_path / "run.weir").write_text("not a database, but long enough to be looked at as one" * 10)
    done = weir("run", "--resume", "run.weir")
    assert done.returncode == 2
    assert "run.weir" in done.stderr
    assert weir("run", "--resume", "nowhere").returncode == 2
