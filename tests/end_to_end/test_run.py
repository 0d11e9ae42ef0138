"""`weir run` as a user meets it, with real processes: the answer, and every way in which a stack can fail."""

import json
import os
import platform
import pty
import re
import sqlite3
import subprocess
import sysconfig
from contextlib import suppress
from pathlib import Path

import pytest

from tests.end_to_end.conftest import END_S, Study, Weir, servers_of
from tests.support.kept import kept_trials

pytestmark = pytest.mark.usefixtures("stacks")
WEIR = Path(sysconfig.get_path("scripts")) / "weir"


def trials(run: Path) -> list[tuple[str, int, int, str, int]]:
    """Returns stack, block, attempt, validity and finished of every trial in a run file."""
    with sqlite3.connect(f"file:{run / 'run.weir'}?mode=ro", uri=True) as connection:
        return connection.execute(
            "SELECT stack, block, attempt, validity, finished FROM trial JOIN cell ON cell.id = cell_id ORDER BY trial.id"
        ).fetchall()


def test_a_study_of_two_stacks_ends_with_an_answer_a_run_file_and_a_report(
    tmp_path: Path, weir: Weir, study: Study
) -> None:
    done = weir("run", study("good", "other", blocks=2, aa=True), "--out", "out")
    assert done.returncode == 0, done.stderr
    assert "req" in done.stdout
    assert (tmp_path / "out" / "report.html").stat().st_size > 10_000
    assert len(kept_trials(tmp_path / "out")) == 6
    assert servers_of(tmp_path) == []


def test_a_quiet_run_prints_its_findings_as_json_and_says_nothing_meanwhile(
    tmp_path: Path, weir: Weir, study: Study
) -> None:
    done = weir("run", study("good", "other"), "--out", "out", "--quiet", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["question"] == "Which is better?"
    assert [line for line in done.stderr.splitlines() if not line.startswith("report: ")] == []


def test_a_run_at_a_terminal_shows_the_load_that_goes_on_and_how_long_the_rest_takes(
    tmp_path: Path, study: Study
) -> None:
    terminal, inside = pty.openpty()
    path = study("good", "other", duration_s=1.5)
    process = subprocess.Popen(
        [WEIR, "run", path, "--out", "out"], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=inside
    )
    os.close(inside)
    said = b""
    # After the last program has ended, reading from its terminal fails.
    with suppress(OSError):
        while part := os.read(terminal, 65536):
            said += part
    os.close(terminal)
    assert process.wait(END_S) == 0
    text = said.decode()
    assert re.search(r"(good|other), hello, 4 connections\S*  ", text), text
    assert re.search(r"[\d,]+ req/s   [\d,]+ answered", text), text
    assert re.search(r"trial 2 of 2, block 1: .*, about \d+ (s|min) left", text), text


def test_a_run_is_compared_with_another_one(tmp_path: Path, weir: Weir, study: Study) -> None:
    for out in ("before", "after"):
        assert weir("run", study("good", "other", blocks=2), "--out", out).returncode == 0
    done = weir("report", "after", "--compare", "before")
    assert done.returncode == 0, done.stderr
    assert re.search(r"\| good \| hello, 4 connections \| throughput \|", done.stdout), done.stdout
    assert "<h2>Against " in (tmp_path / "after" / "report.html").read_text()
    assert weir("report", "after", "--compare", "before", "--json").returncode == 2


def test_every_trial_keeps_its_intervals_samples_histograms_and_log(tmp_path: Path, weir: Weir, study: Study) -> None:
    assert weir("run", study("good", "other"), "--out", "out").returncode == 0
    with sqlite3.connect(tmp_path / "out" / "run.weir") as connection:
        for (trial_id,) in connection.execute("SELECT id FROM trial").fetchall():
            counts = [
                connection.execute(f"SELECT count(*) FROM {table} WHERE trial_id = ?", (trial_id,)).fetchone()[0]
                for table in ("interval", "sample", "cpu_sample", "histogram")
            ]
            assert all(counts), counts
            summary, resources, logs, runtime = connection.execute(
                "SELECT summary, resources, logs, runtime FROM trial WHERE id = ?", (trial_id,)
            ).fetchone()
            completed = connection.execute(
                "SELECT sum(completed) FROM interval WHERE trial_id = ?", (trial_id,)
            ).fetchone()[0]
            assert completed == json.loads(summary)["requests"]["completed"]
            assert json.loads(resources)["cpu_user_s"] > 0
            assert runtime == f"Python {platform.python_version()}"
            assert json.loads(resources)["pss_bytes"] > 1_000_000
            assert "this is" in (tmp_path / "out" / json.loads(logs)["app"]).read_text()


def test_a_report_is_made_again_from_the_run_file_alone(tmp_path: Path, weir: Weir, study: Study) -> None:
    first = weir("run", study("good", "other"), "--out", "out")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out" / "run.weir").rename(tmp_path / "elsewhere" / "run.weir")
    again = weir("report", "elsewhere/run.weir")
    assert again.stdout == first.stdout
    assert (tmp_path / "elsewhere" / "report.html").read_bytes() == (tmp_path / "out" / "report.html").read_bytes()
    as_json = weir("report", "elsewhere", "--json")
    assert json.loads(as_json.stdout)["schema"] == 1


@pytest.mark.parametrize(
    ("mode", "problem"),
    [
        ("never-listens", "not ready within 2 s"),
        ("dies-at-start", "the process ended with exit status 5 before it was ready"),
        ("never-answers", "not ready within 2 s"),
        ("answers-wrong", "wrong response: body: found 'goodbye'"),
        ("wrong-now-and-then", "wrong response: body: found 'goodbye'"),
    ],
)
def test_a_stack_that_does_not_answer_right_is_not_timed(
    tmp_path: Path, weir: Weir, study: Study, mode: str, problem: str
) -> None:
    done = weir("run", study("good", mode), "--out", "out")
    assert done.returncode == 3
    assert problem in done.stderr
    log = Path(done.stderr.partition("log: ")[2].split()[0].rstrip(";"))
    assert f"this is {mode}" in log.read_text()
    assert "try: " in done.stderr
    assert servers_of(tmp_path) == []


@pytest.mark.parametrize(
    ("mode", "problem", "status"),
    [
        ("dies-under-load", "ended with exit status 9 ", 3),
        ("ends-slowly", "ended with exit status 9 right after the load", 3),
        ("fails-under-load", "check ", 4),
    ],
)
def test_a_stack_that_fails_under_load_is_rejected_and_retried_and_the_others_are_kept(
    tmp_path: Path, weir: Weir, study: Study, mode: str, problem: str, status: int
) -> None:
    # Every connection carries enough requests for the server to fail, however long they take.
    done = weir("run", study("good", mode, duration_s=60, load="loops = 20", retries=3), "--out", "out")
    assert done.returncode == status, done.stderr
    assert problem in done.stderr
    found = trials(tmp_path / "out")
    failed = [(attempt, validity) for stack, _, attempt, validity, _ in found if stack == mode]
    assert failed == [(attempt, "invalid") for attempt in range(1, 5)]
    assert [validity for stack, *_, validity, _ in found if stack == "good"][-1] in ("valid", "suspect"), done.stderr
    assert (tmp_path / "out" / "report.html").exists()
    assert servers_of(tmp_path) == []


def test_a_stack_that_has_to_be_killed_counts_and_is_told_so(tmp_path: Path, weir: Weir, study: Study) -> None:
    done = weir("run", study("ignores-sigterm"), "--out", "out")
    assert done.returncode == 0, done.stderr
    assert "it ignored SIGTERM: weir killed it after 5 s" in (tmp_path / "out" / "report.html").read_text()
    assert servers_of(tmp_path) == []


def test_a_run_folder_that_holds_a_run_is_not_overwritten(tmp_path: Path, weir: Weir, study: Study) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "run.weir").write_text("precious")
    done = weir("run", study("good", "other"), "--out", "out")
    assert done.returncode == 2
    assert "found a run, expected none" in done.stderr
    assert (tmp_path / "out" / "run.weir").read_text() == "precious"


def test_a_run_folder_that_cannot_be_made_is_an_error_before_anything_is_measured(
    tmp_path: Path, weir: Weir, study: Study
) -> None:
    (tmp_path / "file").write_text("")
    done = weir("run", study("good", "other"), "--out", "file/out")
    assert done.returncode == 2
    assert "file" in done.stderr
    assert "trial 1" not in done.stderr
