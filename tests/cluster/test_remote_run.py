"""Tests studies whose loads come from agents on a real cluster, while their stacks run here."""

import json
import os
import re
import shlex
import shutil
import signal
from pathlib import Path

import pytest

from tests.cluster.conftest import Nodes, StartNodes, StartWeir, Weir, agents, engines, processes, scenario_of_files
from tests.end_to_end import conftest as end_to_end
from tests.end_to_end.conftest import END_S
from tests.end_to_end.ordeal import read_until, wait_for_load, wait_until
from tests.support.kept import kept_trials
from weir import __version__
from weir.model.errors import ExitCode
from weir.model.load_records import LoadSummary
from weir.model.run_types import Trial
from weir.store import RunReader

pytestmark = pytest.mark.usefixtures("stacks")

stacks = end_to_end.stacks
study = end_to_end.study
Study = end_to_end.Study


def whole_load(trial: Trial) -> LoadSummary:
    """Returns the agents' summary of the whole load."""
    summary = trial.result.whole_load or trial.result.summary
    assert summary is not None
    return summary


def test_a_study_runs_with_loads_from_the_clusters_nodes(
    study: Study, weir: Weir, nodes: Nodes, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    file = study("good", "other", blocks=2)
    done = weir("run", file, "--out", out, "--cluster", nodes.address, "--agent-threads", "2,1")
    assert done.returncode == 0, done.stderr
    with RunReader(out / "run.weir") as reader:
        info = reader.info
    trials = kept_trials(out)
    assert info.placement.advertised_address is not None
    assert len(info.environment["agents"]) == 2
    assert len(trials) == 4
    for trial in trials:
        summary = whole_load(trial)
        assert info.placement.advertised_address in summary.target
        assert sum(agent.requests.ok for agent in summary.agents or []) == summary.requests.ok > 0
        assert [agent.generator.threads for agent in summary.agents or []] == [2, 1]
    # On a busy machine half a second may pass without a sample.
    assert any(trial.result.resources is not None and trial.result.resources.cpu_s > 0 for trial in trials)
    assert engines() == []


def test_a_run_of_agents_is_resumed_with_agents_alone(study: Study, weir: Weir, nodes: Nodes, tmp_path: Path) -> None:
    out = tmp_path / "run"
    weir("run", study("good"), "--out", out, "--cluster", nodes.address, "--agent-threads", "2,1")
    done = weir("run", "--resume", out)
    assert done.returncode == ExitCode.USAGE
    assert "add --cluster ADDRESS" in done.stderr
    for flags, found in (
        (("--agent-threads", "2"), "2"),
        (("--agents", "2"), "1,1"),
        (("--agent-threads", "1,2"), "1,2"),
    ):
        done = weir("run", "--resume", out, "--cluster", nodes.address, *flags)
        assert done.returncode == ExitCode.USAGE
        assert f"load threads of each agent: found {found}, expected the run's numbers: 2,1" in done.stderr
        assert "try: --agents 2 --agent-threads 2,1" in done.stderr
    done = weir("run", "--resume", out, "--cluster", nodes.address, "--agent-threads", "2,1")
    assert done.returncode == 0, done.stderr


def test_what_only_loads_of_this_machine_can_have_is_refused(
    study: Study, weir: Weir, nodes: Nodes, tmp_path: Path
) -> None:
    file = study("good", method="tap = true")
    done = weir("run", file, "--out", tmp_path / "run", "--cluster", nodes.address, "--agents", "2")
    assert done.returncode == ExitCode.USAGE
    assert "method.tap: found together with --cluster" in done.stderr


@pytest.mark.parametrize(
    ("warmup_s", "is_under_way"),
    [
        pytest.param(0, False, id="as its load begins", marks=pytest.mark.thorough),
        pytest.param(3, True, id="under its warm-up", marks=pytest.mark.thorough),
        pytest.param(0, True, id="under its load"),
    ],
)
def test_a_trial_that_loses_an_agent_is_invalid_and_tried_again_with_those_that_are_left(
    study: Study, start_weir: StartWeir, nodes: Nodes, tmp_path: Path, warmup_s: float, is_under_way: bool
) -> None:
    out = tmp_path / "run"
    file = study("good", duration_s=4, warmup_s=warmup_s, method="extension_s = 0")
    process = start_weir("run", file, "--out", out, "--cluster", nodes.address, "--agents", "2")
    assert process.stderr is not None
    said = read_until(process.stderr, "trial 1 of")
    if is_under_way:
        wait_for_load(out / "run.weir")
    wait_until(lambda: len(engines("load")) == 2, "the load of two agents")
    os.kill(agents()[0], signal.SIGKILL)
    _, err = process.communicate(timeout=END_S)
    assert process.returncode == 0, said + err
    with RunReader(out / "run.weir") as reader:
        trials = reader.trials()
    first, *others = trials
    assert first.result.verdict.validity == "invalid"
    assert any("is lost" in text for text in first.result.verdict.texts), first.result.verdict.texts
    (kept,) = kept_trials(out)
    assert kept in others
    assert len(whole_load(kept).agents or []) == 1
    assert any("the other agents (1) generated this load" in text for text in kept.result.verdict.texts)
    # The limit of two agents together is not the limit of one.
    assert whole_load(kept).generator.max_rate_rps is None


def test_a_run_goes_to_the_node_for_stacks_and_comes_back(
    study: Study, weir: Weir, start_nodes: StartNodes, tmp_path: Path
) -> None:
    # weir runs on a head without roles; one node is for stacks, one for loads.
    cluster = start_nodes({}, {"weir_stack": 1}, {"weir_load": 1})
    checked = weir("cluster", "check", cluster.address, "--json")
    assert checked.returncode == 0, checked.stderr
    # Only the node for stacks needs weir.
    assert [(node["roles"], node["weir"]) for node in json.loads(checked.stdout)["nodes"] if "weir" in node] == [
        (["stack"], f"weir {__version__}")
    ]
    out = tmp_path / "run"
    typed = (
        "run",
        str(study("good")),
        "--out",
        str(out),
        "--cluster",
        cluster.address,
        "--agents",
        "1",
        "--agent-threads",
        "2",
    )
    done = weir(*typed)
    assert done.returncode == 0, done.stderr
    assert "the stacks run on" in done.stderr
    assert (out / "report.html").is_file()
    (trial,) = kept_trials(out)
    with RunReader(out / "run.weir") as reader:
        assert reader.info.placement.advertised_address is not None
        assert reader.info.command == shlex.join(["weir", *typed])
    assert trial.result.summary is not None
    assert trial.result.summary.requests.ok > 0
    assert [agent.generator.threads for agent in trial.result.summary.agents or []] == [2]
    assert all((out / log).is_file() for log in trial.result.logs.values())


@pytest.mark.thorough
def test_a_study_with_a_scenario_of_files_goes_to_the_node_for_stacks_with_them(
    study: Study, weir: Weir, start_nodes: StartNodes, tmp_path: Path
) -> None:
    cluster = start_nodes({}, {"weir_stack": 1}, {"weir_load": 1})
    out = tmp_path / "run"
    file = study("good", load=scenario_of_files(tmp_path))
    done = weir("run", file, "--out", out, "--cluster", cluster.address, "--agents", "1")
    assert done.returncode == 0, done.stderr
    (trial,) = kept_trials(out)
    with RunReader(out / "run.weir") as reader:
        assert reader.info.study == "mine"
    assert trial.result.summary is not None
    assert trial.result.summary.steps is not None
    assert trial.result.summary.steps["who"].ok > 0


@pytest.mark.thorough
def test_what_cannot_be_kept_here_stays_on_its_node(
    study: Study, start_weir: StartWeir, start_nodes: StartNodes, tmp_path: Path
) -> None:
    cluster = start_nodes({}, {"weir_stack": 1}, {"weir_load": 1})
    out = tmp_path / "run"
    process = start_weir("run", study("good"), "--out", out, "--cluster", cluster.address, "--agents", "1")
    assert process.stderr is not None
    read_until(process.stderr, "trial 1 of 1")
    # A folder with this name is in the way of the run file.
    (out / "run.weir").mkdir()
    _, err = process.communicate()
    assert process.returncode == ExitCode.USAGE, err
    assert f"{out / 'run.weir'}: cannot be written: Is a directory" in err
    kept = re.search(r"copy the result from (\S+) on ", err)
    assert kept is not None, err
    assert len(kept_trials(Path(kept.group(1)))) == 1
    shutil.rmtree(Path(kept.group(1)).parent)
    assert list((out / "run.weir").iterdir()) == []

    process = start_weir(
        "run", study("good", blocks=3), "--out", tmp_path / "other", "--cluster", cluster.address, "--agents", "1"
    )
    assert process.stderr is not None
    read_until(process.stderr, "trial 2 of 3")
    (there,) = [pid for pid, words in processes() if "--driven" in words and "--out" in words]
    os.kill(there, signal.SIGKILL)
    _, err = process.communicate()
    assert process.returncode == ExitCode.TARGET, err
    assert "signal 9 ended weir; the run file keeps the finished trials" in err
    assert f"try: weir run --resume {tmp_path / 'other'} --cluster {cluster.address} --agents 1" in err
    with RunReader(tmp_path / "other" / "run.weir") as reader:
        # On a busy machine trial 2 may end before the kill.
        assert 1 <= len(reader.trials()) < 3
