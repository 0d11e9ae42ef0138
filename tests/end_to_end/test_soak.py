"""What takes longer: every stack under real load, a study at the scale on which claims rest. Kills by the hundred: `test_crash`."""

import json
import sqlite3
from pathlib import Path

import pytest

from tests.end_to_end.conftest import Weir
from weir.stacks.manifest import manifest_files, read_manifest

ALL_STACKS = [
    stack.manifest.id if variant is None else f"{stack.manifest.id}[{variant}]"
    for stack in map(read_manifest, manifest_files())
    for variant in (None, *stack.manifest.variants)
]


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
