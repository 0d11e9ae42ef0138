"""Every `weir` command line in the documentation has an existing command and existing options. No test runs one."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from tests.support.markdown import PAGES, blocks, name_of, prose
from weir.cli.commands import app
from weir.compat.flags import ToolExit
from weir.compat.front_end import TOOLS, read_command_line
from weir.model.errors import UsageError

URL = "http://127.0.0.1:8000/"
SEPARATORS = frozenset(["|", ";", "&", "&&", "||", ">", ">>", "<", "(", ")"])


def shown(text: str) -> Iterator[list[str]]:
    """Returns the words after `weir` in all command lines of a page, in shell blocks and in prose."""
    scripts = [block.code.replace("\\\n", " ") for block in blocks(text) if block.language == "sh"]
    spans = re.findall(r"`((?:[A-Z_]+=\S+ )*(?:[\w./]+/)?weir(?: [^`]*)?)`", prose(text))
    for line in [*(line for script in scripts for line in script.splitlines()), *spans]:
        if "weir" not in line:
            continue
        reader = shlex.shlex(line, posix=True, punctuation_chars=True)
        reader.whitespace_split = True
        command: list[str] = []
        for word in [*reader, ";"]:
            if word not in SEPARATORS:
                command.append(word)
                continue
            while command and re.match(r"[A-Z_]+=", command[0]):
                del command[0]
            if command and command[0].rpartition("/")[2] == "weir":
                yield command[1:]
            command = []


def why_wrong(words: list[str]) -> str | None:
    """Returns the error of weir's parsers for a command line, or None."""
    if words and words[0] in TOOLS:
        return why_not_of_tool(*words)
    if words and words[0] in ("jmeter", "k6", "locust"):
        return why_not_of_recorded(*words)
    command: Any = get_command(app)
    context = command.make_context("weir", [], resilient_parsing=True)
    rest = list(words)
    while hasattr(command, "commands") and rest and not rest[0].startswith("-"):
        name = rest.pop(0)
        if name.isupper():
            return None
        command = command.get_command(context, name)
        if command is None:
            return f"{name}: no such command"
        context = command.make_context(name, [], parent=context, resilient_parsing=True)
    # Resilient parsing would hide errors.
    context.resilient_parsing = False
    try:
        _, left, _ = parsed(command, context, rest)
    except Exception as error:
        return str(error)
    return f"{left}: more than it takes" if left else None


def why_not_of_tool(tool: str, *words: str) -> str | None:
    """Returns the front end's error for a tool's command line, or None; help and a tool's mere name are no errors."""
    try:
        read_command_line(tool, [URL if word == "URL" else word for word in words])
    except ToolExit:
        return None
    except UsageError as error:
        return error.message if words else None
    return None


def why_not_of_recorded(tool: str, *words: str) -> str | None:
    """Returns Locust's error for a command line, or None; a flag's mere name in prose is no error. For JMeter and k6,
    returns the first option of weir among the tool's arguments."""
    command: Any = get_command(app)
    context = command.make_context("weir", [], resilient_parsing=True)
    context = command.get_command(context, tool).make_context(tool, list(words), parent=context, resilient_parsing=True)
    arguments = context.params["arguments"] or []
    if tool != "locust":
        own = [word for word in arguments if word in ("--engine", "--watch", "--weir-json", "--strict", "--live")]
        return f"{own[0]}: an option of weir" if own else None
    # Runs in a separate process, because Locust's import patches the process.
    code = "import sys; from locust.argument_parser import get_parser; get_parser(default_config_files=[]).parse_args(sys.argv[1:])"
    parsing = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    errors = [
        line for line in parsing.stderr.splitlines() if " error: " in line and "expected one argument" not in line
    ]
    return errors[0] if errors else None


def parsed(command: Any, context: Any, words: list[str]) -> Any:
    """Returns the parsed words. In prose the last option may lack its value."""
    try:
        return command.make_parser(context).parse_args(list(words))
    except Exception as error:
        if "requires an argument" not in str(error):
            raise
        return command.make_parser(context).parse_args([*words, "VALUE"])


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_command_lines_name_commands_and_options_that_there_are(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # hey and ab read this body.
    (tmp_path / "request.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    wrong = {shlex.join(words): why for words in shown(page.read_text()) if (why := why_wrong(words))}
    assert wrong == {}


def test_the_guides_show_commands() -> None:
    assert sum(len(list(shown(page.read_text()))) for page in PAGES) > 100


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("weir load URL -c 4 --duration 10s", None),
        ("weir stacks check NAME", None),
        ("weir COMMAND --help", None),
        ("weir --version", None),
        ("weir load --json", None),
        ("weir wrk -t2 -c100 -d30s URL", None),
        ("weir wrk --help", None),
        ("weir wrk -R 5 URL", "found -R, expected a flag of wrk"),
        ("weir laod URL", "laod: no such command"),
        ("weir locust --out a.weir -f FILE.py -u 1 --tags a b", None),
        ("weir locust --userss 1", "-c: error: unrecognized arguments: --userss"),
        ("weir k6 --watch 1 run script.js", None),
        ("weir jmeter -n -t plan.jmx --watch 1", "--watch: an option of weir"),
        ("weir stacks chek NAME", "chek: no such command"),
        ("weir gate A B C", "['C']: more than it takes"),
    ],
)
def test_a_line_is_held_against_the_parsers(line: str, wrong: str | None) -> None:
    assert why_wrong(line.split()[1:]) == wrong


def test_an_option_that_is_not_there_is_found() -> None:
    assert "--durations" in (why_wrong(["load", "URL", "--durations", "10s"]) or "")


def test_command_lines_are_found_wherever_they_stand() -> None:
    script = "```sh\nA=b .venv/bin/weir run x.toml | cat   # weir no\nweir gate a b >> c; make\n```\n"
    text = f"{script}so `weir report RUN` and `A=b weir` are, `weir-engine serve` is not\n"
    assert list(shown(text)) == [["run", "x.toml"], ["gate", "a", "b"], ["report", "RUN"], []]
