"""Tests programs that weir installs: once, completely or not at all, and again if their recipe changes."""

from dataclasses import replace
from pathlib import Path

import pytest

from weir.generators import installation
from weir.generators.installation import Installation
from weir.generators.registry import get_tool
from weir.model.errors import TargetError, UsageError

MINE = Installation("mine", program="bin/mine", needs=())
INSTALL = 'set -eu\necho installing\nmkdir bin\ncp "$0" bin/mine\nchmod +x bin/mine\necho 1.2.3 >version\n'


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns the recipe of a test program, with a cache of its own."""
    monkeypatch.setattr(installation, "DATA", tmp_path / "data")
    monkeypatch.setenv("WEIR_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "data" / "mine" / "install.sh"
    path.parent.mkdir(parents=True)
    path.write_text(INSTALL)
    return path


def test_a_program_is_installed_once(recipe: Path) -> None:
    told: list[str] = []
    assert MINE.find() is None
    program = MINE.install(told.append)
    assert program.is_file()
    assert (MINE.find(), MINE.version()) == (program, "1.2.3")
    assert MINE.install(told.append) == program
    (said,) = told
    name, _, log = said.partition("; log: ")
    assert (name, Path(log).read_text()) == ("mine", "installing\n")


def test_another_recipe_is_another_program(recipe: Path) -> None:
    MINE.install()
    recipe.write_text(INSTALL.replace("1.2.3", "1.2.4"))
    assert MINE.find() is None
    MINE.install()
    assert MINE.version() == "1.2.4"


def test_what_failed_is_not_there_and_begun_anew(recipe: Path) -> None:
    recipe.write_text("mkdir bin\necho half >bin/mine\necho no such registry >&2\nexit 7\n")
    with pytest.raises(TargetError, match=r"mine: installing ended with exit status 7; log: (?s:.*)no such registry"):
        MINE.install()
    assert MINE.find() is None
    with pytest.raises(TargetError, match="exit status 7"):
        MINE.install()


def test_what_it_takes_to_install_it_is_said_when_it_is_missing(recipe: Path) -> None:
    needy = Installation("mine", program="bin/mine", needs=("no-such-tool",))
    with pytest.raises(UsageError, match="mine: installing needs no-such-tool, not found on the PATH"):
        needy.install()


def test_a_tool_on_the_path_comes_before_the_one_in_the_cache(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    tool = replace(get_tool("locust"), installation=MINE)
    assert tool.find() is None
    assert MINE.install() == tool.find() == MINE.find()
    assert tool.version() == "Locust 1.2.3"
    own = tmp_path / "bin" / "locust"
    own.parent.mkdir()
    own.write_text("#!/bin/sh\necho locust 9.8.7 from somewhere\n")
    own.chmod(0o755)
    assert tool.find() == own
    assert tool.version() == "Locust 9.8.7"


def test_every_recipe_locks_what_it_installs_by_hash() -> None:
    locust, jmeter = installation.DATA / "locust", installation.DATA / "jmeter"
    assert "--require-hashes" in (locust / "install.sh").read_text()
    assert (locust / "requirements.txt").read_text().count("--hash=sha256:") > 40
    sums = (jmeter / "sha256.txt").read_text().splitlines()
    assert all(len(line.split("  ")[0]) == 64 for line in sums)
    assert any("ApacheJMeter_http-" in line for line in sums)
