"""The examples of the guides on stacks and on CI are valid, and the line for CI works in a separate repository."""

import os
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY
from tests.support.markdown import blocks
from weir.stacks.manifest import Manifest
from weir.stacks.workload import Workload
from weir.study.file import StudyFile

OWN_STACK = (REPOSITORY / "docs" / "guides" / "own-stack.md").read_text()
GATE = (REPOSITORY / "docs" / "guides" / "ci-gate.md").read_text()
TUTORIAL = (REPOSITORY / "docs" / "tutorial.md").read_text()


def tables(text: str) -> list[dict[str, Any]]:
    """Returns the TOML blocks of a page."""
    return [tomllib.loads(block.code) for block in blocks(text) if block.language == "toml"]


def test_every_part_of_a_manifest_that_the_guide_shows_fits_the_first_one() -> None:
    whole, *parts = [table for table in tables(OWN_STACK) if "request" not in table]
    assert len(parts) == 3
    Manifest.model_validate(whole)
    for part in parts:
        run = {**whole["run"], **part.get("run", {})}
        Manifest.model_validate({**whole, **part, "run": run})


def test_the_workload_that_the_guide_shows_is_one() -> None:
    (workload,) = [table for table in tables(OWN_STACK) if "request" in table]
    Workload.model_validate(workload)


def test_the_objective_of_the_gate_fits_a_study() -> None:
    (objective,) = tables(GATE)
    study = {
        "schema": 1,
        "title": "t",
        "question": "q",
        "load": {"duration_s": 1},
        "method": {"blocks": 1, "baseline": "a"},
    }
    matrix = {"stacks": ["a"], "workloads": ["hello"], "connections": [1]}
    StudyFile.model_validate({**study, "matrix": matrix, **objective})


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.org"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Makes a repository with a server, and with a second commit that is much slower than the first one."""
    files = {block.file: block.code for block in blocks(TUTORIAL) if block.file}
    folder = tmp_path / "checkout"
    folder.mkdir()
    server = files["stacks/tiny/server.py"].replace("import sys\n", "import sys\nimport time\n")

    def write_server(sleep_s: float) -> None:
        # The server mostly sleeps, so that other processes on its CPU change little.
        body = '        body = b"Hello'
        (folder / "server.py").write_text(server.replace(body, f"        time.sleep({sleep_s})\n{body}"))

    write_server(0.03)
    (folder / "run.sh").write_text(f'#!/bin/sh\nexec {sys.executable} server.py "$1"\n')
    (folder / "run.sh").chmod(0o755)
    git(tmp_path, "init", "--quiet", "checkout")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "before")
    write_server(0.2)
    git(folder, "commit", "--quiet", "--all", "--message", "after")
    git(folder, "update-ref", "refs/remotes/origin/main", "HEAD^")
    return folder


@pytest.mark.thorough
@pytest.mark.timeout(400)
def test_the_line_of_the_gate_fails_a_commit_that_made_it_slower(tmp_path: Path, project: Path) -> None:
    (line,) = [block.code for block in blocks(GATE) if block.language == "sh"]
    # The comparison ends when its interval is narrow enough. On a busy machine this takes more blocks.
    short = "-c 4 -d 1s --warmup 500ms --precision 50% --budget 4m --path /hello --ready /hello"
    done = subprocess.run(
        ["sh", "-c", line.replace("--git", f"{short} --git")],
        cwd=project,
        env={**os.environ, "PATH": f"{sysconfig.get_path('scripts')}:{os.environ['PATH']}", "WEIR_CACHE": str(tmp_path / "cache")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "throughput<0.95: true for HEAD" in done.stderr
    assert (project / "gate.md").read_text().startswith("**origin/main answers ")
