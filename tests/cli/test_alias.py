"""`weir alias`."""

import subprocess

import pytest
from typer.testing import CliRunner

from weir.cli.commands import app
from weir.model.errors import UsageError


def test_an_alias_for_each_tool_or_for_those_that_are_asked_for() -> None:
    assert CliRunner().invoke(app, ["alias"]).stdout.splitlines() == [
        f"alias {tool}='weir {tool}'" for tool in ("wrk", "wrk2", "hey", "ab")
    ]
    assert CliRunner().invoke(app, ["alias", "ab"]).stdout == "alias ab='weir ab'\n"


def test_a_tool_that_there_is_no_front_end_for_is_told() -> None:
    error = CliRunner().invoke(app, ["alias", "siege"]).exception
    assert isinstance(error, UsageError)
    assert "'siege'" in error.message


@pytest.mark.parametrize("shell", [pytest.param(shell, marks=pytest.mark.needs(shell)) for shell in ("bash", "zsh", "fish")])
def test_the_shells_understand_them(shell: str) -> None:
    aliases = CliRunner().invoke(app, ["alias", "wrk"]).stdout
    script = f"{aliases}alias wrk\n" if shell != "fish" else f"{aliases}functions wrk\n"
    done = subprocess.run([shell], input=script, capture_output=True, text=True, check=True)
    assert "weir wrk" in done.stdout
