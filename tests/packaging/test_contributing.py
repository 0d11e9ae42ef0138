"""CONTRIBUTING.md promises a stack in ten lines. The tests run its example as printed."""

import json
import os
import re
import subprocess
from pathlib import Path


def example(repository: Path) -> dict[str, str]:
    """Returns the code blocks that follow the names of the example's files, by file name."""
    text = (repository / "CONTRIBUTING.md").read_text()
    return dict(re.findall(r"`stacks/python/wsgiref/([\w.]+)`:\n\n```\w+\n(.*?)```", text, re.DOTALL))


def test_the_example_of_a_stack_has_ten_lines(repository: Path) -> None:
    files = example(repository)
    assert set(files) == {"stack.toml", "server.py"}
    assert sum(len(content.splitlines()) for content in files.values()) == 10


def test_the_example_of_a_stack_passes_its_check(repository: Path, tmp_path: Path) -> None:
    folder = tmp_path / "stacks" / "wsgiref"
    folder.mkdir(parents=True)
    for name, content in example(repository).items():
        (folder / name).write_text(content)
    environment = {**os.environ, "WEIR_STACKS": str(tmp_path / "stacks"), "WEIR_CACHE": str(tmp_path / "cache")}
    result = subprocess.run(
        [repository / ".venv" / "bin" / "weir", "stacks", "check", "wsgiref", "--json"],
        env=environment,
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    (checked,) = json.loads(result.stdout)
    assert (checked["stack"], checked["workloads"], checked["ok"], checked["problem"]) == (
        "wsgiref",
        ["hello"],
        True,
        None,
    )
