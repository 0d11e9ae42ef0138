"""Tests completion in the way a shell requests it."""

import os
import subprocess
import sysconfig
from pathlib import Path

import pytest

WEIR = Path(sysconfig.get_path("scripts")) / "weir"


def completed(line: str) -> list[str]:
    """Returns the words that bash offers at the end of a command line."""
    words = line.split(" ")
    asked = {**os.environ, "_WEIR_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    done = subprocess.run([WEIR], env=asked, capture_output=True, text=True, check=False, timeout=60)
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("weir cap", ["capacity"]),
        ("weir study ch", ["check"]),
        ("weir run sync", ["sync-vs-async"]),
        ("weir stacks check sanic", ["sanic", "sanic[blocking]"]),
        ("weir load --no-gen", ["--no-generator-limit"]),
        ("weir run no-such-study", []),
    ],
)
def test_commands_options_studies_and_stacks_are_offered(line: str, offered: list[str]) -> None:
    assert completed(line) == offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_a_script_that_asks_weir(shell: str) -> None:
    done = subprocess.run([WEIR, "completion", shell], capture_output=True, text=True, check=True, timeout=60)
    assert f"_WEIR_COMPLETE=complete_{shell}" in done.stdout


def test_bash_takes_the_script_and_completes_with_it() -> None:
    script = f'''
        PATH="{WEIR.parent}:$PATH"
        source <(weir completion bash)
        COMP_WORDS=(weir run socket) COMP_CWORD=2
        _weir_completion weir
        echo "${{COMPREPLY[@]}}"
    '''
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["socket-servers"]
