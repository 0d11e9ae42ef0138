"""Studies with other programs as generators: placed, run, watched, audited, and left out if they fail."""

import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import pytest

from tests.end_to_end.conftest import Study, Weir, servers_of
from tests.support.kept import kept_trials
from tests.support.tiers import cases
from weir.generators.registry import get_tool

pytestmark = [
    pytest.mark.usefixtures("stacks"),
    pytest.mark.skipif(get_tool("wrk").find() is None, reason="wrk is not there: apt-get install wrk"),
]

Program = Callable[[str, str], None]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Returns a function that puts a shell script before all other programs of its name."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def put(name: str, script: str) -> None:
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)

    return put


def rows(run: Path, query: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(f"file:{run / 'run.weir'}?mode=ro", uri=True) as connection:
        return connection.execute(query).fetchall()


def of_trials(run: Path, columns: str, generator: str) -> list[tuple[Any, ...]]:
    return rows(
        run,
        f"SELECT {columns} FROM trial JOIN cell ON cell.id = cell_id WHERE generator = '{generator}' ORDER BY trial.id",
    )


@pytest.mark.parametrize(
    ("script", "problem"),
    cases(
        [
            ("echo boom; exit 3", "ab: the program ended with exit status 3"),
            ("echo boom", "ab: weir cannot read the tool's report"),
            ("echo boom; kill -9 $$", "ab: the program ended by signal 9"),
        ],
        kept=1,
    ),
)
def test_a_tool_that_fails_loses_its_own_trials_and_the_others_stand_side_by_side(
    tmp_path: Path, weir: Weir, study: Study, program: Program, script: str, problem: str
) -> None:
    program("ab", script)
    mine = study("good", matrix='generators = ["weir", "wrk", "ab"]', duration_s=1, warmup_s=0.2, blocks=2, retries=3)
    done = weir("run", mine, "--out", "out")
    assert done.returncode == 4, done.stderr
    run = tmp_path / "out"
    # Each trial of ab was tried as often as allowed, and all of its output is kept.
    failed = of_trials(run, "attempt, validity, reasons, summary, logs", "ab")
    assert sorted(attempt for attempt, *_ in failed) == [1, 1, 2, 2, 3, 3, 4, 4]
    for _, validity, reasons, summary, logs in failed:
        assert (validity, summary) == ("invalid", None)
        assert [reason["kind"] for reason in json.loads(reasons)] == ["generator failed"]
        assert problem in json.loads(reasons)[0]["fact"]
        assert "boom" in (run / json.loads(logs)["ab output.txt"]).read_text()
    assert "the limit of ab is unknown: ab: " in done.stderr
    # wrk's trials count, with its reported figures and resources but without intervals.
    counted = [
        row
        for validity, *row in of_trials(run, "validity, summary, reported_result, window, logs", "wrk")
        if validity != "invalid"
    ]
    assert len(counted) == 2
    for summary, result, window, logs in counted:
        assert json.loads(summary)["generator"]["peak_rss_bytes"] > 100_000
        assert json.loads(summary)["generator"]["max_rate_rps"] > 0
        assert json.loads(result)["throughput_rps"]["value"] == json.loads(summary)["throughput_rps"]
        assert json.loads(window)["why"] == "a generator other than weir's reports no intervals"
        assert "Requests/sec:" in (run / json.loads(logs)["wrk output.txt"]).read_text()
    intervals = (
        "SELECT DISTINCT generator FROM interval JOIN trial ON trial.id = trial_id JOIN cell ON cell.id = cell_id"
    )
    assert rows(run, intervals) == [("weir",)]
    # weir watched the server under every generator.
    watched = "SELECT DISTINCT generator FROM sample JOIN trial ON trial.id = trial_id JOIN cell ON cell.id = cell_id WHERE t_s > 0.5"
    assert {("weir",), ("wrk",)} <= set(rows(run, watched))
    (same,) = json.loads(weir("report", "out", "--json").stdout)["generators"]
    assert [one["generator"] for one in same["generators"]] == ["weir", "wrk", "ab"]
    assert [len(one["evidence"]["used"]) for one in same["generators"]] == [2, 2, 0]
    assert "ab: not measured, because no trial is usable." in done.stdout.replace("\n", " ")
    assert "Generators side by side" in (run / "report.html").read_text()
    assert servers_of(tmp_path) == []


@pytest.mark.soak
def test_a_tool_that_hangs_is_ended_and_loses_its_own_trials(
    tmp_path: Path, weir: Weir, study: Study, program: Program
) -> None:
    program("ab", "echo begun; exec sleep 1000")
    mine = study("good", matrix='generators = ["weir", "ab"]', duration_s=1, retries=0)
    done = weir("run", mine, "--out", "out", timeout_s=200)
    assert done.returncode == 4, done.stderr
    ((validity, reasons, logs),) = of_trials(tmp_path / "out", "validity, reasons, logs", "ab")
    assert validity == "invalid"
    assert "ab: the program did not end after a load of 1 s" in json.loads(reasons)[0]["fact"]
    assert "begun" in (tmp_path / "out" / json.loads(logs)["ab output.txt"]).read_text()
    assert [one for (one,) in of_trials(tmp_path / "out", "validity", "weir")] != ["invalid"]
    assert servers_of(tmp_path) == []


def test_a_study_goes_on_with_the_generators_that_are_here_and_is_resumed_with_them(
    tmp_path: Path, weir: Weir, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    # weir installs JMeter into its cache, and nowhere else.
    monkeypatch.setenv("WEIR_CACHE", str(tmp_path / "cache"))
    mine = study("good", matrix='generators = ["weir", "wrk", "jmeter"]', duration_s=1)
    refused = weir("run", mine, "--out", "out")
    assert refused.returncode == 2
    assert "matrix.generators: jmeter: not found on the PATH" in refused.stderr
    assert "use --skip-missing" in refused.stderr
    assert weir("study", "check", mine).returncode == 2
    done = weir("run", mine, "--out", "out", "--skip-missing")
    assert done.returncode == 0, done.stderr
    assert "weir: generator jmeter is left out: jmeter: not found on the PATH" in done.stderr
    assert rows(tmp_path / "out", "SELECT generator FROM cell ORDER BY id") == [("weir",), ("wrk",)]
    again = weir("run", "--resume", "out")
    assert again.returncode == 0, again.stderr
    assert again.stdout == done.stdout


def test_a_check_says_which_programs_make_the_load(weir: Weir, study: Study) -> None:
    done = weir("study", "check", study("good", matrix='generators = ["weir", "wrk"]', duration_s=1, blocks=3))
    assert done.returncode == 0, done.stderr
    assert f"generator wrk: {get_tool('wrk').find()}" in done.stdout
    assert "generator wrk" in done.stdout
    assert "3 blocks, 1 comparison;" in done.stdout


def test_stacks_are_compared_within_a_generator(tmp_path: Path, weir: Weir, study: Study) -> None:
    done = weir("run", study("slow", "slower", matrix='generators = ["wrk"]', duration_s=1, blocks=2), "--out", "out")
    assert done.returncode == 0, done.stderr
    findings = json.loads(weir("report", "out", "--json").stdout)
    assert findings["generators"] == []
    (point,) = findings["points"]
    ratio = next(one["ratio"] for one in point["comparisons"] if one["metric"] == "throughput_rps")
    # On a busy machine the servers may differ little, so the test takes the expected ratio from the run's own trials.
    throughput = {
        (trial.block, trial.cell.stack): trial.result.summary.throughput_rps
        for trial in kept_trials(tmp_path / "out")
        if trial.result.summary is not None
    }
    ratios = [throughput[block, "slower"] / throughput[block, "slow"] for block in (1, 2)]
    assert ratio == pytest.approx(geometric_mean(ratios))


@pytest.mark.skipif(os.geteuid() != 0, reason="listening in takes root")
def test_what_the_kernel_saw_stands_beside_what_each_generator_says(tmp_path: Path, weir: Weir, study: Study) -> None:
    mine = study("slow", matrix='generators = ["weir", "wrk"]', method="tap = true", duration_s=1)
    done = weir("run", mine, "--out", "out")
    assert done.returncode == 0, done.stderr
    for generator in ("weir", "wrk"):
        ((tap, summary, reasons),) = of_trials(tmp_path / "out", "tap, summary, reasons", generator)[-1:]
        seen, said = json.loads(tap), json.loads(summary)
        # The tap listens to all four connections; the server takes 10 ms per response.
        assert seen["connections"] >= 4
        assert abs(seen["requests"] - said["requests"]["completed"]) <= 8 + 0.01 * said["requests"]["completed"]
        assert seen["response_time_us"]["p50"] > 10_000
        assert said["response_time_us"]["p50"] > 0.95 * seen["response_time_us"]["p50"]
        assert not {"counts", "not tapped"} & {reason["kind"] for reason in json.loads(reasons)}
    (same,) = json.loads(weir("report", "out", "--json").stdout)["generators"]
    for one in same["generators"]:
        assert [ratio["quantile"] for ratio in one["against_kernel"]] == ["p50", "p99"]
