"""Tests commits of a real repository in the cache."""

import subprocess
import sys
from pathlib import Path

import pytest

from weir.model.errors import TargetError, UsageError
from weir.stacks import checkout
from weir.stacks.checkout import check_out

pytestmark = pytest.mark.needs("git")


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "init.defaultBranch=main"]
    return subprocess.run(["git", "-C", folder, *identity, *words], check=True, capture_output=True, text=True).stdout


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with the tags `one` and `two`, and an uncommitted change."""
    monkeypatch.setenv("WEIR_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "--quiet")
    for tag in ("one", "two"):
        (folder / "app").mkdir(exist_ok=True)
        (folder / "app" / "answer").write_text(tag)
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "-m", tag)
        git(folder, "tag", tag)
    (folder / "app" / "answer").write_text("changed")
    return folder


def run(command: str, folder: Path, log: Path) -> int:
    with log.open("w") as output:
        return subprocess.run(["sh", "-c", command], cwd=folder, stdout=output, stderr=output).returncode


def test_each_reference_gives_its_own_files_in_the_same_folder_of_the_repository(project: Path) -> None:
    found = [check_out(project / "app", one, None, run) for one in ("one", "HEAD", ".")]
    assert [(one / "answer").read_text() for one in found] == ["one", "two", "changed"]
    assert found[2] == project / "app"


def test_the_repository_of_the_user_does_not_change(project: Path) -> None:
    before = git(project, "status", "--porcelain"), git(project, "worktree", "list"), git(project, "branch", "--all")
    check_out(project, "one", "echo built > result", run)
    assert (
        git(project, "status", "--porcelain"),
        git(project, "worktree", "list"),
        git(project, "branch", "--all"),
    ) == before


def test_a_commit_is_built_once_for_each_command(project: Path) -> None:
    for _ in range(2):
        folder = check_out(project, "one", "echo built >> result", run)
    assert (folder / "result").read_text() == "built\n"
    other = check_out(project, "one", "echo other >> result", run)
    assert (other / "result").read_text() == "other\n"


def test_a_failed_build_is_told_with_its_last_lines_and_tried_again(project: Path) -> None:
    with pytest.raises(TargetError, match=r"(?s)exit status 7.*log: .*no compiler"):
        check_out(project, "one", "echo no compiler; exit 7", run)
    assert check_out(project, "one", "true", run).is_dir()


def test_a_reference_that_does_not_exist_is_named(project: Path) -> None:
    with pytest.raises(UsageError, match="found 'main-2', expected a branch"):
        check_out(project, "main-2", None, run)


def test_without_a_repository_the_error_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a git repository"):
        check_out(tmp_path, "main", None, run)


def test_changes_in_a_submodule_are_an_error(project: Path, tmp_path: Path) -> None:
    part = tmp_path / "part"
    part.mkdir()
    git(part, "init", "--quiet")
    (part / "file").write_text("a")
    git(part, "add", ".")
    git(part, "commit", "--quiet", "-m", "a")
    git(project, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(part), "part")
    git(project, "commit", "--quiet", "-m", "part")
    (project / "part" / "file").write_text("b")
    with pytest.raises(UsageError, match="changes in the submodule part"):
        check_out(project, "one", None, run)


def test_a_clone_in_use_stays_when_older_clones_are_removed(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkout, "_KEPT", 0)
    in_use = "import sys, pathlib; from weir.stacks.checkout import check_out; "
    in_use += "print(check_out(pathlib.Path('.'), 'one', None, None), flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", in_use], cwd=project, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        used = Path(other.stdout.readline().strip())
        check_out(project, "two", None, run)
        assert (used / "app" / "answer").is_file()
        other.communicate()
    check_out(project, "two", None, run)
    assert not used.exists()
