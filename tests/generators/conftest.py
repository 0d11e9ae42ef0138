"""Puts scripts on the PATH under the names of tools."""

from collections.abc import Callable
from pathlib import Path

import pytest

PutOnPath = Callable[[str, str], None]


@pytest.fixture
def stands_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PutOnPath:
    """Returns a function that puts a shell script on the PATH as a tool. The script prints no version."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    def put(name: str, script: str) -> None:
        (folder / name).write_text(f'#!/bin/sh\ncase "$1" in *version*) exit ;; esac\n{script}\n')
        (folder / name).chmod(0o755)

    return put
