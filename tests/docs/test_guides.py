"""The examples of the guides on stacks and on CI are valid, and the script works on a separate repository."""

import os
import subprocess
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


def test_the_studies_of_the_gate_are_some() -> None:
    study, objective = tables(GATE)
    StudyFile.model_validate(study)
    StudyFile.model_validate({**study, **objective})


def git(folder: Path, *arguments: str) -> None:
    of_somebody = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.org"]
    subprocess.run(["git", *of_somebody, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Makes a project that is a stack, with the guide's script, a short form of its study, and two commits."""
    files = {block.file: block.code for block in blocks(TUTORIAL) if block.file}
    folder = tmp_path / "checkout"
    (folder / "bench").mkdir(parents=True)
    (folder / "stack.toml").write_text(files["stacks/tiny/stack.toml"].replace('"tiny"', '"shop"'))
    server = files["stacks/tiny/server.py"].replace("import sys\n", "import sys\nimport time\n")

    def write_server(sleep_s: float) -> None:
        # The server mostly sleeps, so that other processes on its CPU change little.
        body = '        body = b"Hello'
        (folder / "server.py").write_text(server.replace(body, f"        time.sleep({sleep_s})\n{body}"))

    write_server(0.03)
    (study,) = [block.code for block in blocks(GATE) if "[matrix]" in block.code]
    shortened = (
        study.replace("duration_s = 10", "duration_s = 0.5")
        .replace("connections = [20]", "connections = [4]")
        .replace("blocks = 10", "blocks = 4\nretries = 5\nwarmup_s = 0.2\npause_s = 0")
    )
    (folder / "bench" / "shop.toml").write_text(shortened)
    (script,) = [block.code for block in blocks(GATE) if block.language == "sh" and block.code.startswith("#!")]
    (folder / "bench" / "gate.sh").write_text(script)
    git(tmp_path, "init", "--quiet", "checkout")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "before")
    # The second commit is slower by much more than any threshold.
    write_server(0.2)
    git(folder, "commit", "--quiet", "--all", "--message", "after")
    return folder


@pytest.mark.thorough
def test_the_script_of_the_gate_fails_a_commit_that_made_it_slower(tmp_path: Path, project: Path) -> None:
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)]),
        "TMPDIR": str(tmp_path),
        "WEIR_CACHE": str(tmp_path / "cache"),
    }
    done = subprocess.run(
        ["sh", "bench/gate.sh", "HEAD^"],
        cwd=project,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    table = (project / "runs" / "gate.md").read_text()
    assert done.returncode == 1, f"{done.stderr}\n{table}"
    assert "Worse by more than 5%" in table
    assert "| shop |" in table
    # Only the runs are left.
    assert [path.name for path in tmp_path.iterdir() if path.name not in ("cache", "checkout")] == []
