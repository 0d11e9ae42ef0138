"""Tests with real processes which trials count in a run, and when the run has enough."""

import itertools
import json
import re
import shutil
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.conftest import Study, Weir, servers_of
from tests.support.kept import kept_trials
from weir.model.errors import ExitCode
from weir.model.run_types import Trial
from weir.store import RunReader

pytestmark = pytest.mark.usefixtures("stacks")


def trials(run: Path) -> list[Trial]:
    with RunReader(run) as reader:
        return reader.trials()


def findings(weir: Weir, run: str) -> Any:
    return json.loads(weir("report", run, "--json").stdout)


def steady_trial(tmp_path: Path, weir: Weir, path: Path, *, warms_up: bool = False) -> tuple[str, Trial]:
    """Runs a study of one trial until it is steady; returns weir's output and the trial.

    Other programs on this machine may disturb the steady state, or hide the warm-up if `warms_up`; then the run is
    repeated.
    """
    for number in range(1, 9):
        done = weir("run", path, "--out", f"out-{number}")
        kept = kept_trials(tmp_path / f"out-{number}")
        assert done.returncode == (0 if kept else ExitCode.NOT_VALID), done.stderr
        if not kept:
            continue
        (trial,) = kept
        window = trial.result.window
        assert window is not None
        if window.steady:
            if not warms_up or trial.result.whole_load is not None:
                return done.stderr, trial
            continue
        assert window.extended
        assert (window.start_s, trial.result.whole_load) == (0, None)
        assert "no steady state, though the load was extended" in "\n".join(trial.result.verdict.texts)
        assert trial.result.verdict.validity == "suspect"
    pytest.fail("never steady: this machine is too busy for this test")


@pytest.mark.timeout(300)
def test_a_load_goes_on_until_the_server_is_warm_and_what_came_before_is_in_no_figure(
    tmp_path: Path, weir: Weir, study: Study
) -> None:
    said, trial = steady_trial(tmp_path, weir, study("warms-up", duration_s=4, retries=0), warms_up=True)
    window, summary, whole = trial.result.window, trial.result.summary, trial.result.whole_load
    assert window is not None
    assert summary is not None
    assert whole is not None
    # The slow first seconds take more than half of the requested 4 s, so weir extends the load.
    assert window.extended
    # The load ends with its last response, which comes within the timeout.
    assert 7.8 < whole.duration_s < 8 + 2 + 0.1
    assert 2.5 < window.start_s < 4.1
    assert f"steady from {window.start_s:.1f} s" in said
    # The server became five times faster; the figures must be those of the warm server only.
    assert summary.throughput_rps > 1.2 * whole.throughput_rps
    assert summary.response_time_us.p75 is not None
    assert summary.response_time_us.p75 < 200_000 < (whole.response_time_us.p95 or 0)
    last = max(tmp_path.glob("out-*"))
    with RunReader(last) as reader:
        counted = [row for row in reader.intervals(trial.id) if row.start_s >= window.start_s]
        assert sum(row.completed for row in counted) == summary.requests.completed
        assert {"response_time_ns", "whole_load_response_time_ns", "whole_load_service_time_ns"} <= set(
            reader.histograms(trial.id)
        )


@pytest.mark.timeout(300)
def test_the_load_of_a_server_that_is_steady_ends_when_it_was_to(tmp_path: Path, weir: Weir, study: Study) -> None:
    path = study("slow", duration_s=4, retries=0)
    for _ in range(3):
        _, trial = steady_trial(tmp_path, weir, path)
        window, whole = trial.result.window, trial.result.whole_load or trial.result.summary
        assert window is not None
        assert whole is not None
        assert window.is_whole == (trial.result.whole_load is None)
        # The thread that checks has the lowest priority, so on a busy machine it checks late.
        assert (whole.duration_s > 7.9) if window.extended else (4 <= whole.duration_s < 7)
        if not window.extended:
            return
        for folder in tmp_path.glob("out-*"):
            shutil.rmtree(folder)
    pytest.fail("never steady at once: this machine is too busy for this test")


def test_where_failures_are_a_result_the_trial_counts_and_their_share_is_shown(
    tmp_path: Path, weir: Weir, study: Study
) -> None:
    # Every connection carries enough requests for the server to fail, however long they take.
    fails = study("good", "fails-under-load", duration_s=60, load="loops = 100", method='failures = "measure"')
    done = weir("run", fails, "--out", "out")
    assert done.returncode == 0, done.stderr
    (summary,) = [
        trial.result.summary for trial in kept_trials(tmp_path / "out") if trial.cell.stack == "fails-under-load"
    ]
    assert summary is not None
    share = summary.requests.failed / summary.requests.intended
    assert share > 0.1
    stacks = {stack["stack"]: stack for stack in findings(weir, "out")["points"][0]["stacks"]}
    assert stacks["fails-under-load"]["failed_share"] == pytest.approx(share)
    assert stacks["good"]["failed_share"] == 0
    # Refused requests do not count as throughput.
    (throughput,) = [
        one["value"] for one in stacks["fails-under-load"]["measures"] if one["metric"] == "throughput_rps"
    ]
    assert throughput == pytest.approx(summary.requests.ok / summary.duration_s)
    assert f"{share:.1%} failed" in done.stdout


def test_a_run_ends_when_its_intervals_are_narrow_enough(tmp_path: Path, weir: Weir, study: Study) -> None:
    # A busy machine changes the throughput of servers, but hardly their memory.
    method = 'width = 0.5\nwidth_of = "pss_bytes"\nmost_blocks = 20'
    done = weir("run", study("slow", "slower", blocks=2, method=method), "--out", "out")
    assert done.returncode == 0, done.stderr
    assert "runs until every ratio of pss_bytes is known to ±50.0%, in at most 20 blocks" in done.stderr
    stopped = findings(weir, "out")["stopped"]
    assert stopped["rule"] == "width", stopped["text"]
    assert 2 <= stopped["blocks"] < 20
    assert len(kept_trials(tmp_path / "out")) == 2 * stopped["blocks"]
    assert "every interval is within ±50.0%" in done.stdout


def test_a_run_ends_before_a_block_that_its_budget_does_not_allow_also_when_it_is_resumed(
    tmp_path: Path, weir: Weir, study: Study
) -> None:
    path = study("good", "other", blocks=40, method="budget_s = 7")
    done = weir("run", path, "--out", "out")
    assert done.returncode == 0, done.stderr
    assert "budget" in done.stdout
    found = trials(tmp_path / "out")
    assert 2 <= len(found) < 80
    # When the last block began, its duration was not known.
    assert sum(trial.result.phases_s["total"] for trial in found[:-2]) < 7
    assert findings(weir, "out")["stopped"]["rule"] == "budget"
    again = weir("run", "--resume", "out")
    assert again.returncode == 0, again.stderr
    assert len(trials(tmp_path / "out")) == len(found)
    assert findings(weir, "out")["stopped"]["rule"] == "budget"


def test_a_budget_without_room_for_a_block_is_an_error_before_anything_starts(
    tmp_path: Path, weir: Weir, study: Study
) -> None:
    done = weir("run", study("good", "other", method="budget_s = 2"), "--out", "out")
    assert done.returncode == 2
    assert "method.budget_s: found 2, expected at least 4: one block of 2 trials takes that long" in done.stderr
    assert not (tmp_path / "out" / "run.weir").exists()


@pytest.mark.parametrize(
    ("method", "problem"),
    [
        ("width = 0.05", "expected most_blocks or budget_s, too"),
        ("most_blocks = 4", "expected also width"),
        ("width = 0.05\nmost_blocks = 1", "expected at least blocks = 2"),
        ('budget_s = "20 min"', "budget_s: found '20 min'; should be a valid number"),
        ('failures = "ignore"', "failures"),
        ('width_of = "happiness"\nwidth = 0.1\nbudget_s = 60', "width_of"),
    ],
)
def test_rules_that_do_not_fit_together_are_errors_that_say_what_fits(
    tmp_path: Path, weir: Weir, study: Study, method: str, problem: str
) -> None:
    done = weir("run", study("good", "other", blocks=2, method=method), "--out", "out")
    assert done.returncode == 2
    assert "mine.toml: method" in done.stderr
    assert problem in done.stderr


def test_nothing_of_a_trial_is_left_when_the_next_one_starts(tmp_path: Path, weir: Weir, study: Study) -> None:
    assert weir("run", study("good", "other", blocks=2), "--out", "out").returncode == 0
    with sqlite3.connect(tmp_path / "out" / "run.weir") as connection:
        rows = connection.execute("SELECT started_unix_ns, phases_s FROM trial ORDER BY id").fetchall()
    spans = [(started, started + json.loads(phases)["total"] * 1e9) for started, phases in rows]
    # The two clocks may differ by a millisecond between two trials. weir confirms a stop after all processes of the
    # trial have ended.
    assert all(ended <= started + 1e6 for (_, ended), (started, _) in itertools.pairwise(spans))
    assert servers_of(tmp_path) == []


def test_what_a_trial_takes_beside_its_load_is_printed(tmp_path: Path, weir: Weir, study: Study) -> None:
    assert weir("run", study("good", "other"), "--out", "out").returncode == 0
    table = weir("report", "out", "--times").stdout
    for heading in ("ready", "check", "warmup", "pause", "load", "observe", "stop", "between", "outside the load"):
        assert heading in table
    assert "good" in table


QUICK = """
[[override]]
where = { stack = "slow" }
method = { warmup_s = 3 }
[scales.quick.method]
blocks = 2
"""


def test_a_quick_run_answers_for_its_short_trials_first_and_goes_on_with_the_long_ones(
    tmp_path: Path, weir: Weir, stacks: Path, study: Study
) -> None:
    manifest = stacks / "slow" / "stack.toml"
    manifest.write_text(manifest.read_text() + '[build]\ncommand = "true"\n')
    path = study("good", "other", "slow", duration_s=0.3, rest=QUICK)
    first = weir("run", path, "--scale", "quick", "--fast", "--out", "out")
    assert first.returncode == 0, first.stderr
    assert "first answer after about 7 s: good, other; the run ends there" in first.stderr
    assert "building slow" not in first.stderr
    assert "This is an interim answer, from 4 of 6 trials." in first.stdout
    assert {trial.cell.stack for trial in trials(tmp_path / "out")} == {"good", "other"}
    assert findings(weir, "out")["stopped"]["rule"] == "first_answer"
    done = weir("run", "--resume", "out")
    assert done.returncode == 0, done.stderr
    assert "interim" not in done.stdout + done.stderr
    assert Counter(trial.cell.stack for trial in kept_trials(tmp_path / "out")) == {"good": 2, "other": 2, "slow": 2}
    assert findings(weir, "out")["stopped"]["rule"] == "blocks"


def test_a_quick_run_prints_an_interim_answer_after_each_block_but_the_last(
    tmp_path: Path, weir: Weir, study: Study
) -> None:
    path = study("good", "other", duration_s=0.3, rest="[scales.quick.method]\nblocks = 3\n")
    done = weir("run", path, "--scale", "quick", "--out", "out")
    assert done.returncode == 0, done.stderr
    assert re.findall(r"weir: interim answer, after (\d) blocks? of good, other:", done.stderr) == ["1", "2"]
    assert "This is an interim answer, from 4 of 6 trials." in done.stderr
    assert "interim" not in done.stdout


def test_a_run_that_has_no_interim_answer_cannot_end_with_its_first(weir: Weir, study: Study) -> None:
    done = weir("run", study("good", "other"), "--fast")
    assert done.returncode == 2
    assert "--fast: found the scale default, expected the scale quick" in done.stderr
