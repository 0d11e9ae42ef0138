"""Tests archives that travel to a node as one file."""

import io
import os
import random
import sys
import tarfile
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import pytest

from weir.cluster.agent import Agent
from weir.cluster.agents import LOST_S, AgentHandle
from weir.cluster.archive import pack_files, pack_folder
from weir.cluster.ray_cluster import Node as ClusterNode
from weir.cluster.ray_cluster import RayCluster
from weir.cluster.remote_run import send_builds
from weir.model.errors import UsageError
from weir.paths import find_cache_folder
from weir.stacks.build import IGNORED, MARKER, build, find_build
from weir.stacks.manifest import read_manifest


def test_files_are_packed_at_their_paths_for_their_owner_alone_and_always_into_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one")
    (tmp_path / "b").write_text("other")
    (tmp_path / "link").symlink_to("b")
    archive = pack_files({"studies/mine.toml": tmp_path / "a", "rows.csv": tmp_path / "link"}, "mine")
    with tarfile.open(fileobj=io.BytesIO(archive)) as found:
        assert [(member.name, member.mode, member.isfile()) for member in found] == [
            ("rows.csv", 0o600, True),
            ("studies/mine.toml", 0o600, True),
        ]
        found.extractall(tmp_path / "there", filter="data")
    assert (tmp_path / "there" / "studies" / "mine.toml").read_text() == "one"
    assert (tmp_path / "there" / "rows.csv").read_text() == "other"
    (tmp_path / "a").chmod(0o644)
    (tmp_path / "later").write_text("other")
    assert pack_files({"rows.csv": tmp_path / "later", "studies/mine.toml": tmp_path / "a"}, "mine") == archive


def test_a_file_that_cannot_be_read_or_is_too_large_to_travel_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match=r"rows\.csv: cannot be read: No such file"):
        pack_files({"rows.csv": tmp_path / "rows.csv"}, "mine")
    monkeypatch.setattr("weir.cluster.archive.MOST_BYTES", 10)
    (tmp_path / "rows.csv").write_text("name\n")
    with pytest.raises(UsageError, match=r"mine: found 0 MiB or more, expected at most 0 MiB to send"):
        pack_files({"rows.csv": tmp_path / "rows.csv"}, "mine")


def test_what_is_too_large_to_travel_is_not_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weir.cluster.archive.MOST_BYTES", 2**19)
    for name in "abc":
        (tmp_path / name).write_bytes(random.Random(name).randbytes(2**20))
    read: list[str] = []

    add = tarfile.TarFile.add

    def note(tar: tarfile.TarFile, path: Path, name: str, **options: Any) -> None:
        read.append(name)
        add(tar, path, name, **options)

    monkeypatch.setattr(tarfile.TarFile, "add", note)
    with pytest.raises(UsageError, match=r"mine: found 1 MiB or more"):
        pack_folder(tmp_path, "mine")
    assert read == ["a"]


def test_environments_of_the_user_do_not_travel_with_his_stacks(tmp_path: Path) -> None:
    stacks = tmp_path / "stacks"
    (stacks / "mine" / ".venv" / "bin").mkdir(parents=True)
    (stacks / "mine" / ".venv" / "bin" / "python").symlink_to(sys.executable)
    (stacks / "mine" / "stack.toml").write_text("")
    there = Path(Agent(3600).unpack(pack_folder(stacks, "WEIR_STACKS", leave_out=IGNORED)))
    assert [path.name for path in there.rglob("*")] == ["mine", "stack.toml"]


def test_a_stack_that_was_built_here_is_not_built_again_where_it_travelled_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEIR_CACHE", str(tmp_path / "cache"))
    sources = tmp_path / "mine"
    sources.mkdir()
    (sources / "stack.toml").write_text(
        """
schema = 1
id = "mine"
title = "Mine"
model = "one process"
build.command = "make"
build.artifact = "made"
run.command = ["{artifact}/python", "{port}"]
serves.hello = {}
"""
    )
    stack = read_manifest(sources / "stack.toml")
    built: list[Path] = []

    def make(_: list[str], folder: Path, __: dict[str, str], ___: Path) -> int:
        built.append(folder)
        (folder / "made").mkdir()
        # Like the Python of a virtual environment: a link to this machine's Python by its path.
        (folder / "made" / "python").symlink_to(sys.executable)
        (folder / "made" / "module.pyc").write_text("compiled")
        os.utime(folder / "made" / "module.pyc", (1_000_000_000, 1_000_000_000))
        return 0

    assert find_build(stack) is None
    build(stack, make)
    folder = find_build(stack)
    assert folder is not None
    archive = pack_folder(folder, "mine", keep_times=True)
    (tmp_path / "cache").rename(tmp_path / "the cache of the machine that it was built on")
    agent = Agent(3600)
    assert not (folder / MARKER).is_file()
    agent.unpack(archive, str(folder))
    again = build(stack, make)
    assert (again.folder / "made" / "python").resolve() == Path(sys.executable).resolve()
    assert (again.folder / "made" / "module.pyc").stat().st_mtime == 1_000_000_000
    assert len(built) == 1
    # An existing build stays, and nothing of the second archive is left.
    agent.unpack(pack_folder(sources, "mine"), str(folder))
    assert (folder / MARKER).is_file()
    assert [path.name for path in folder.parent.iterdir() if path.is_dir()] == [folder.name]


@pytest.mark.parametrize(
    ("other", "has"),
    [
        ({}, False),
        ({}, True),
        ({"architecture": "m68k"}, False),
        ({"libc": "musl 1"}, False),
        ({"cache": "/else"}, False),
    ],
)
def test_what_was_built_here_goes_to_a_node_of_this_kind_that_has_it_not(
    other: dict[str, str], has: bool, tmp_path: Path
) -> None:
    sent: list[Path] = []
    folder = find_cache_folder() / "stacks" / "mine" / "0123"

    class Node(AgentHandle):
        def call(self, method: str, *arguments: Any, timeout_s: float = LOST_S) -> Any:
            assert (method, arguments) == ("apply", (os.path.isfile, str(folder / MARKER)))
            return has

        def put_archive(self, archive: bytes, folder: Path) -> None:
            sent.append(folder)

    node = Node(RayCluster(ModuleType("ray")), None, cast(ClusterNode, None), "node")
    node.facts = {**Agent(3600).facts(), "cache": str(find_cache_folder()), **other}
    send_builds(node, [folder])
    assert sent == ([] if other or has else [folder])
