"""Tests which Locust `weir locust` runs, and with which recorder. tests/end_to_end/locust tests the programs that
`--python` names."""

import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import weir.paths
from weir.generators.scripted.locust_version import LOWEST, RANGE, find_python
from weir.generators.scripted.tools import prepare_locust
from weir.model.errors import ExitCode, UsageError

ROOT = Path(__file__).parents[3]


def test_the_range_is_that_of_the_extra_and_its_highest_version_is_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["optional-dependencies"]["locust"] == [f"locust{RANGE}"]
    assert f"locust=={metadata.version('locust')} " in (ROOT / "requirements" / "dev.txt").read_text()


def test_weirs_own_python_is_found() -> None:
    assert find_python(None) == sys.executable


def test_a_missing_locust_is_an_error_with_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> str:
        raise metadata.PackageNotFoundError("locust")

    monkeypatch.setattr(metadata, "version", missing)
    with pytest.raises(UsageError, match=r"weir's environment: found no Locust, expected locust>=") as refused:
        find_python(None)
    assert refused.value.hint == "pip install 'weirbench[locust]'"
    assert refused.value.exit_code == ExitCode.USAGE


@pytest.mark.parametrize("version", ["2.31.9", "3.0", "1.6"])
def test_a_locust_outside_the_range_is_refused(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda _: version)
    with pytest.raises(UsageError, match=f"found Locust {version}, expected"):
        find_python(None)


@pytest.mark.parametrize("version", [".".join(map(str, LOWEST)), "2.47.0", "2.99.1.dev3"])
def test_a_locust_of_the_range_is_taken(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda _: version)
    assert find_python(None) == sys.executable


def test_a_missing_recorder_is_an_error_with_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weir.paths, "find_spec", lambda _: None)
    with pytest.raises(UsageError, match=r"weir_locust_recorder: not found in /") as refused:
        prepare_locust([], sys.executable)
    assert refused.value.hint == "in a checkout of weir, run: make setup; otherwise: pip install weirbench-locust"
    assert refused.value.exit_code == ExitCode.USAGE
