import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from weir.model.errors import TargetError, UsageError
from weir.stacks.build import base_environment, build, content_hash
from weir.stacks.manifest import Stack, read_manifest

Write = Callable[..., Stack]


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """A function that writes a stack with that build command into a source folder, with a cache of the test's own."""
    monkeypatch.setenv("WEIR_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "thing"
    folder.mkdir()

    def write(command: str, needs: str = "[]") -> Stack:
        (folder / "stack.toml").write_text(
            f"""
schema = 1
id = "thing"
title = "Thing"
model = "none"
[build]
command = '{command}'
artifact = "made"
needs = {needs}
[run]
command = ["serve", "{{port}}"]
[serves]
hello = {{}}
"""
        )
        return read_manifest(folder / "stack.toml")

    return write


def run(argv: list[str], cwd: Path, env: dict[str, str], log: Path) -> int:
    with log.open("ab") as out:
        return subprocess.run(argv, cwd=cwd, env=env, stdout=out, stderr=out, check=False).returncode


def test_a_stack_is_built_once_and_again_when_its_content_changes(stack: Write) -> None:
    builds: list[Path] = []
    thing = stack("printf 12345 > made")
    first = build(thing, run, on_build=builds.append)
    assert build(thing, run, on_build=builds.append) == first
    assert first.artifact_bytes == 5
    (thing.folder / "app.py").write_text("new")
    second = build(thing, run, on_build=builds.append)
    assert second.folder != first.folder
    assert len(builds) == 2


def test_nothing_is_written_into_the_source_folder(stack: Write) -> None:
    thing = stack("touch made")
    build(thing, run)
    assert [path.name for path in thing.folder.iterdir()] == ["stack.toml"]


def test_a_failed_build_names_its_log_and_is_started_over_the_next_time(stack: Write) -> None:
    thing = stack("echo no such package; exit 7")
    for _ in range(2):
        with pytest.raises(TargetError, match=r"exit status 7; log: .*\.log") as error:
            build(thing, run)
        assert "no such package" in error.value.message


def test_a_build_without_its_artifact_has_failed(stack: Write) -> None:
    with pytest.raises(TargetError, match=r"build\.artifact: the build left no 'made'"):
        build(stack("true"), run)


def test_a_missing_toolchain_is_named_before_anything_is_built(stack: Write) -> None:
    with pytest.raises(UsageError, match="needs no-such-tool>=3, not found on the PATH") as error:
        build(stack("touch made", '["no-such-tool>=3"]'), run)
    assert error.value.hint == "weir doctor"


def test_the_hash_does_not_follow_what_a_build_or_an_editor_leaves_behind(stack: Write) -> None:
    thing = stack("touch made")
    before = content_hash(thing)
    (thing.folder / "__pycache__").mkdir()
    (thing.folder / "__pycache__" / "app.pyc").write_bytes(b"x")
    assert content_hash(thing) == before


def test_a_stack_does_not_inherit_variables_that_tune_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEB_CONCURRENCY", "9")
    monkeypatch.setenv("UV_CACHE_DIR", "/somewhere")
    environment = base_environment()
    assert "WEB_CONCURRENCY" not in environment
    assert environment["UV_CACHE_DIR"] == "/somewhere"
