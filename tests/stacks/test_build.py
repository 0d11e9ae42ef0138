import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from weir.model.errors import TargetError, UsageError
from weir.stacks import toolchain as tools
from weir.stacks.build import build, hash_content
from weir.stacks.manifest import Stack, read_manifest

Write = Callable[..., Stack]


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Returns a function that writes a stack with this build command into a source folder; the cache is the test's
    own."""
    monkeypatch.setenv("WEIR_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "thing"
    folder.mkdir()

    def write(command: str, needs: str = "[]", more: str = "", after: str = "") -> Stack:
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
{more}
[run]
command = ["serve", "{{port}}"]
[serves]
hello = {{}}
{after}
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
    with pytest.raises(TargetError, match=r"build\.artifact: found no 'made', expected the build to create it"):
        build(stack("true"), run)


def test_a_variant_that_needs_a_newer_jdk_is_built_for_that_one(
    stack: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools, "_JDK_FOLDERS", (str(tmp_path / "jvm"),))
    monkeypatch.setattr(tools, "build_search_path", lambda: "/usr/bin:/bin")
    for tool in ("java", "javac"):
        for version in ("3017", "3021"):
            program = tmp_path / "jvm" / version / "bin" / tool
            program.parent.mkdir(parents=True, exist_ok=True)
            program.write_text(f"#!/bin/sh\necho '{tool} {version}'\n")
            program.chmod(0o755)
    plain = stack("java > made", '["javac>=3017"]', after='[variants.newer]\nneeds = ["java>=3021"]')
    (newer,) = plain.variants()
    assert [(build(one, run).folder / "made").read_text() for one in (plain, newer, plain)] == [
        "java 3017\n",
        "java 3021\n",
        "java 3017\n",
    ]
    assert hash_content(plain) != hash_content(newer)


def test_a_missing_toolchain_is_named_before_anything_is_built(stack: Write) -> None:
    with pytest.raises(UsageError, match="needs no-such-tool>=3, not found on the PATH") as error:
        build(stack("touch made", '["no-such-tool>=3"]'), run)
    assert error.value.hint == "weir doctor"


def test_the_hash_does_not_follow_what_a_build_or_an_editor_leaves_behind(stack: Write) -> None:
    thing = stack("touch made")
    before = hash_content(thing)
    (thing.folder / "__pycache__").mkdir()
    (thing.folder / "__pycache__" / "app.pyc").write_bytes(b"x")
    assert hash_content(thing) == before


def test_what_lies_beside_a_stack_is_built_with_it_and_again_when_that_changes(stack: Write, tmp_path: Path) -> None:
    thing = stack("cat ../parent ../shared/a ../other/parent > made", more='beside = ["parent", "shared", "*/parent"]')
    for name in ("parent", "shared/a", "other/parent", "other/source"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    first = build(thing, run)
    assert (first.folder / "made").read_text() == "parentshared/aother/parent"
    assert not (first.folder.parent / "other" / "source").exists()
    (tmp_path / "other" / "source").write_text("changed")
    assert build(thing, run) == first
    (tmp_path / "shared" / "a").write_text("changed")
    assert (build(thing, run).folder / "made").read_text() == "parentchangedother/parent"


def test_what_should_lie_beside_a_stack_and_does_not_is_named(stack: Write) -> None:
    with pytest.raises(
        UsageError, match=r"stack\.toml: build\.beside: found 'parent', expected a pattern that matches files in "
    ):
        build(stack("touch made", more='beside = ["parent"]'), run)


@pytest.mark.parametrize("pattern", ["../parent", "/etc/passwd", "**/parent", ""])
def test_a_build_takes_nothing_from_elsewhere(stack: Write, pattern: str) -> None:
    with pytest.raises(
        UsageError, match=r"build\.beside: found .*; '.*': expected a file or folder beside the stack's"
    ):
        stack("touch made", more=f'beside = ["{pattern}"]')


def test_a_variant_that_is_built_otherwise_has_a_build_of_its_own_and_another_shares_the_stacks(stack: Write) -> None:
    variants = """
[variants.other]
build = { command = "printf other > else", artifact = "else" }
[variants.same]
args = ["--same"]
"""
    plain = stack("printf plain > made", after=variants)
    other, same = plain.variants()
    assert (build(other, run).folder / "else").read_text() == "other"
    assert build(plain, run).artifact_bytes == 5
    assert build(same, run).folder == build(plain, run).folder != build(other, run).folder
