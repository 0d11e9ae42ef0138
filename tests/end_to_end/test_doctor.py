"""`weir doctor` for generators: found ones, instructions for missing ones, and those that weir installs."""

import json
import shutil
from pathlib import Path

import pytest

from tests.end_to_end.conftest import Weir
from weir.generators.registry import TOOLS


def test_the_doctor_says_of_every_generator_where_it_is_or_how_to_get_it(
    tmp_path: Path, weir: Weir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEIR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/sbin:/sbin:/bin")
    (tmp_path / "hey").write_text("#!/bin/sh\n")
    (tmp_path / "hey").chmod(0o755)
    done = weir("doctor", "--json")
    assert done.returncode == 0, done.stderr
    found = {finding["what"]: finding for finding in json.loads(done.stdout)}
    assert found.keys() >= TOOLS.keys()
    assert found["hey"]["ok"]
    assert found["hey"]["found"] == f"hey, {tmp_path / 'hey'}"
    for name in ("jmeter", "k6", "locust"):
        assert not found[name]["ok"]
        assert not found[name]["required"]
        assert found[name]["needed_by"] == f'generator = "{name}"'
        assert found[name]["remedy"] == "weir doctor --install"


def test_the_doctor_installs_what_it_can_and_says_why_not_the_rest(
    tmp_path: Path, weir: Weir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEIR_CACHE", str(tmp_path / "cache"))
    # Maven is missing; uv is beside weir.
    (tmp_path / "sed").symlink_to(shutil.which("sed") or "")
    monkeypatch.setenv("PATH", str(tmp_path))
    done = weir("doctor", "--install", "--json")
    assert done.returncode == 2, done.stderr
    assert "weir: jmeter: installing needs mvn, not found on the PATH" in done.stderr
    assert "weir: k6: installing needs go>=1.21, not found on the PATH" in done.stderr
    assert "installing locust; log: " in done.stderr
    found = {finding["what"]: finding for finding in json.loads(done.stdout)}
    assert found["locust"]["ok"], done.stderr
    assert str(tmp_path / "cache") in found["locust"]["found"]
    assert not found["jmeter"]["ok"]
