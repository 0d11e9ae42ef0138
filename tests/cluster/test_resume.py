"""Tests runs on the node for stacks that continue there, while the folder is here."""

import os
import re
import shlex
import shutil
import signal
from pathlib import Path
from types import ModuleType

import pytest

from tests.cluster.conftest import (
    StartNodes,
    StartWeir,
    Weir,
    agents,
    assert_losses_noticed_in_time,
    engines,
    processes,
    scenario_of_files,
)
from tests.end_to_end import conftest as end_to_end
from tests.end_to_end.conftest import servers_of
from tests.end_to_end.ordeal import read_until, wait_until
from tests.support.kept import kept_trials
from tests.support.synthetic_run import write_run
from weir.cluster.ray_cluster import RayCluster
from weir.cluster.remote_run import resume_remotely
from weir.model.errors import ExitCode, UsageError
from weir.store import RunReader

pytestmark = pytest.mark.usefixtures("stacks")

stacks = end_to_end.stacks
study = end_to_end.study
Study = end_to_end.Study


def finished(out: Path) -> dict[int, int]:
    """Returns the start time of each trial of a run."""
    with RunReader(out / "run.weir") as reader:
        return {trial.id: trial.started_unix_ns for trial in reader.trials()}


@pytest.mark.thorough
@pytest.mark.timeout(300)
def test_a_run_whose_node_is_lost_while_it_goes_on_there_stays_as_it_was_and_goes_on_later(
    study: Study, start_weir: StartWeir, weir: Weir, start_nodes: StartNodes, tmp_path: Path
) -> None:
    cluster = start_nodes({}, {"weir_stack": 1}, {"weir_load": 1})
    out = tmp_path / "run"
    on_cluster = ("--cluster", cluster.address, "--agents", "1")

    typed = ("run", str(study("good", blocks=4, retries=5)), "--out", str(out), *on_cluster)
    process = start_weir(*typed)
    assert process.stderr is not None
    read_until(process.stderr, "trial 2 of 4")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == ExitCode.INTERRUPTED
    assert f"weir run --resume {out / 'run.weir'} --cluster {cluster.address} --agents 1 continues the run" in err
    # On a busy machine the signal may come after the end of trial 2.
    before = finished(out)
    assert 1 <= len(before) < 4

    files = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    process = start_weir("run", "--resume", out, *on_cluster)
    assert process.stderr is not None
    read_until(process.stderr, f"trial {len(before) + 1} of ")
    for agent in agents():
        os.kill(agent, signal.SIGKILL)
    _, err = process.communicate()
    assert process.returncode == ExitCode.TARGET, err
    assert "is lost" in err
    assert_losses_noticed_in_time(err)
    there = re.search(r"finished trials are in (\S+) on ", err)
    assert there is not None, err
    assert before.items() <= finished(Path(there.group(1))).items()
    shutil.rmtree(Path(there.group(1)).parent)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == files

    done = weir("run", "--resume", out, *on_cluster)
    assert done.returncode == 0, done.stderr
    with RunReader(out / "run.weir") as reader:
        assert reader.ended == "complete"
        assert reader.info.command == shlex.join(["weir", *typed])
    trials = kept_trials(out)
    assert len(trials) == 4
    assert before.items() <= finished(out).items()
    assert all((out / log).is_file() for trial in trials for log in trial.result.logs.values())
    assert not list(out.glob(".weir-*"))


@pytest.mark.thorough
@pytest.mark.timeout(300)
def test_of_a_first_run_whose_node_is_lost_what_was_finished_is_here_and_it_goes_on_later(
    study: Study, start_weir: StartWeir, start_nodes: StartNodes, tmp_path: Path
) -> None:
    cluster = start_nodes({}, {"weir_stack": 1}, {"weir_load": 1})
    out = tmp_path / "run"
    on_cluster = ("--cluster", cluster.address, "--agents", "1")

    process = start_weir("run", study("good", blocks=6, load=scenario_of_files(tmp_path)), "--out", out, *on_cluster)
    assert process.stderr is not None
    read_until(process.stderr, "trial 2 of 6")
    wait_until((out / "run.weir").is_file, "no copy came back")
    for agent in agents():
        os.kill(agent, signal.SIGKILL)
    _, err = process.communicate()
    assert process.returncode == ExitCode.TARGET, err
    assert (
        f"weir run --resume {out} --cluster {cluster.address} --agents 1 continues after the trials "
        "that this machine received; other finished trials are in " in err
    )
    before = finished(out)
    assert 1 <= len(before) < 6

    process = start_weir("run", "--resume", out, *on_cluster)
    assert process.stderr is not None
    read_until(process.stderr, "trial 6 of 6")
    wait_until(lambda: len(finished(out)) > len(before), "nothing came back meanwhile")
    _, err = process.communicate()
    assert process.returncode == 0, err
    assert "weir-finished" not in err
    with RunReader(out / "run.weir") as reader:
        assert reader.ended == "complete"
    summaries = [trial.result.summary for trial in kept_trials(out)]
    assert [
        summary is not None and summary.steps is not None and summary.steps["who"].ok > 0 for summary in summaries
    ] == [True] * 6
    assert before.items() <= finished(out).items()
    assert not list(out.glob(".weir-*"))


@pytest.mark.thorough
@pytest.mark.timeout(300)
@pytest.mark.parametrize("who", ["driver", "node"])
def test_a_kill_of_the_driver_or_of_the_node_leaves_of_a_run_there_what_was_finished_and_nothing_running(
    study: Study, start_weir: StartWeir, start_nodes: StartNodes, tmp_path: Path, who: str
) -> None:
    cluster = start_nodes({}, {"weir_stack": 1}, {"weir_load": 1})
    process = start_weir(
        "run",
        study("good", blocks=40, duration_s=2),
        "--out",
        tmp_path / "run",
        "--cluster",
        cluster.address,
        "--agents",
        "1",
    )
    assert process.stderr is not None
    read_until(process.stderr, "trial 2 of 40")
    (words,) = [words for _, words in processes() if "--driven" in words and "--out" in words]
    there = Path(words[words.index("--out") + 1])
    os.kill(process.pid if who == "driver" else cluster.raylets[1], signal.SIGKILL)
    _, err = process.communicate()
    assert process.returncode == (-signal.SIGKILL if who == "driver" else ExitCode.TARGET), err
    wait_until(lambda: not [pid for pid, words in processes() if "--driven" in words], "weir goes on there")
    wait_until(lambda: not (engines() or agents() or servers_of(tmp_path)), "something of it goes on there")
    assert 1 <= len(finished(there)) < 40
    shutil.rmtree(there.parent)


def test_a_run_file_that_is_too_large_to_travel_is_refused_before_anything_travels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_run(tmp_path / "run.weir")
    monkeypatch.setattr("weir.cluster.archive.MOST_BYTES", 1000)
    with pytest.raises(UsageError, match=r"run\.weir: found .* MiB or more, expected at most .* to send to a node"):
        resume_remotely(RayCluster(ModuleType("ray")), path, [], on_line=lambda _: False)
