"""What takes longer: kills by the hundred, every stack under real load, a study at the scale on which claims rest."""

import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.end_to_end.conftest import StartWeir, Weir, lives, servers_of
from tests.end_to_end.test_interruption import END_S, children, finished, wait_until
from weir.stacks.manifest import manifest_files, read_manifest

KILLS = 100
ALL_STACKS = [
    stack.manifest.id if variant is None else f"{stack.manifest.id}[{variant}]"
    for stack in map(read_manifest, manifest_files())
    for variant in (None, *stack.manifest.variants)
]


@pytest.mark.soak
@pytest.mark.usefixtures("stacks")
def test_a_hundred_kills_at_any_moment_leave_no_process_and_a_run_that_resumes(
    tmp_path: Path, start_weir: StartWeir, weir: Weir, study: Callable[..., Path]
) -> None:
    path = study("good", "other", blocks=2, duration_s=0.3, retries=2)
    draw = random.Random(1)
    for kill in range(KILLS):
        out = f"out-{kill}"
        process = start_weir("run", path, "--out", out)
        # Anywhere in a run of about three seconds, the steps before its first trial included.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=draw.uniform(0.2, 4.0))
        below = children(process.pid)
        engines = [pid for pid, _ in below]
        victim = draw.choice([process.pid, *engines])
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
        _, err = process.communicate(timeout=END_S)
        assert "Traceback" not in err, err
        wait_until(
            lambda pids=engines: not servers_of(tmp_path) and not any(map(lives, pids)),  # type: ignore[misc]
            f"something still runs after kill {kill} of {victim} among {below}",
        )
        if (tmp_path / out / "run.weir").is_file() and kill % 10 == 0:
            before = finished(tmp_path / out / "run.weir")
            assert weir("run", "--resume", out).returncode == 0
            assert finished(tmp_path / out / "run.weir") >= max(before, 4)


@pytest.mark.soak
@pytest.mark.parametrize("label", ALL_STACKS)
def test_every_stack_answers_right_and_without_a_failure_under_load(tmp_path: Path, weir: Weir, label: str) -> None:
    workloads = list(read_manifest(next(p for p in manifest_files() if p.parent.name == label.partition("[")[0])).manifest.serves)
    (tmp_path / "one.toml").write_text(
        f"""
schema = 1
title = "One stack"
question = "Does it hold?"
[matrix]
stacks = ["{label}"]
workloads = {json.dumps(workloads)}
connections = [1, 64]
[load]
duration_s = 5
[method]
blocks = 1
baseline = "{label}"
"""
    )
    done = weir("run", "one.toml", "--out", "out", timeout_s=300)
    assert done.returncode == 0, done.stderr


@pytest.mark.soak
def test_the_first_study_holds_at_the_scale_of_evidence(tmp_path: Path, weir: Weir) -> None:
    done = weir("run", "sync-vs-async", "--scale", "evidence", "--out", "out", timeout_s=3000)
    assert done.returncode == 0, done.stderr
    with sqlite3.connect(tmp_path / "out" / "run.weir") as connection:
        assert connection.execute("SELECT count(DISTINCT block) FROM trial WHERE validity != 'invalid'").fetchone() == (10,)
