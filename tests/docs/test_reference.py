"""The generated pages of docs/reference agree with the code and are complete."""

import doctest
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.reference import tables
from scripts.reference.__main__ import PAGES
from scripts.reference.tables import Sections, anchor, attribute_docs, table
from weir.load_spec import SETTINGS
from weir.model.errors import ExitCode
from weir.model.variables import Variable
from weir.stacks.manifest import BUILD_FIELDS, RUN_FIELDS

READ = re.compile(r"""(?:environ(?:\.get\(|\[)|getenv\(|env::var(?:_os)?\()["'](\w+)["']""")


def rows(page: str) -> Iterator[list[str]]:
    """Returns the rows of all tables, cell by cell."""
    for line in page.splitlines():
        if line.startswith("| `") or re.match(r"\| \d", line):
            yield [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_the_code_says(repository: Path, name: str) -> None:
    assert (repository / "docs" / "reference" / name).read_text() == PAGES[name](), "run: make reference"


@pytest.mark.parametrize("name", PAGES)
def test_every_row_of_a_page_has_a_meaning(name: str) -> None:
    found = list(rows(PAGES[name]()))
    assert len(found) >= len(ExitCode)
    assert [row[0] for row in found if not row[-1]] == []


def test_the_page_of_the_commands_has_every_option_that_help_shows(repository: Path) -> None:
    page = PAGES["cli.md"]()
    # Typer reads the same functions in another way than the page.
    sources = "\n".join(path.read_text() for path in (repository / "src/weir/cli").glob("*.py"))
    options = re.findall(r"\bOption\((.*?)help=", sources, re.DOTALL)
    shown = {
        flag
        for option in options
        if "hidden=True" not in option
        for flag in re.findall(r'"(--?[a-zA-Z][\w-]*)"', option)
    }
    shown |= {flag for setting in SETTINGS.values() for flag in setting.flags.split("/")}
    assert len(shown) > 100
    named = set(re.findall(r"`(--?[a-zA-Z][\w-]*)`", page))
    assert {flag for flag in shown if flag not in named} <= {"-h", "--help", "-V", "--version"}
    assert {"-c", "--connections", "--csv", "--assume-cv"} <= named


def test_a_default_of_zero_is_shown() -> None:
    assert "| `--port` | a whole number from 0 to 65535 | `0` |" in PAGES["cli.md"]()


def test_every_exit_code_and_every_variable_has_its_row() -> None:
    assert [row[0] for row in rows(PAGES["exit-codes.md"]())] == [str(code.value) for code in ExitCode]
    assert [row[0] for row in rows(PAGES["environment.md"]())] == [f"`{one.value}`" for one in Variable]


def test_the_variables_are_those_that_the_code_reads(repository: Path) -> None:
    sources = [*(repository / "src").rglob("*.py"), *(repository / "engine" / "crates").glob("*/src/**/*.rs")]
    text = "\n".join(path.read_text() for path in sources)
    own_servers = {
        str(tomllib.loads(path.read_text()).get("own_server", Variable.PATH))
        for path in (repository / "services").glob("*.toml")
    }
    read = {*READ.findall(text), *own_servers}
    assert {*read, *re.findall(r"\bWEIR_[A-Z_]+\b", text)} <= {one.value for one in Variable}
    assert [one.value for one in Variable if one.value not in read and f"(Variable.{one.name}" not in text] == []


def test_the_page_of_manifests_names_every_field() -> None:
    page = PAGES["stack.md"]()
    assert {f"`{{{name}}}`" for name in RUN_FIELDS | BUILD_FIELDS} <= {row[0] for row in rows(page)}
    assert "`{postgres.url}`" in page


def test_a_table_that_stands_twice_is_described_once_and_linked() -> None:
    page = PAGES["stack.md"]()
    assert page.count("`requests_each`") == 1
    assert f"[tables by name]({anchor('`[limits.NAME]`')})" in page.partition("## `[variants.NAME]`\n")[2]


def test_a_link_to_a_heading_is_as_the_docstring_shows() -> None:
    assert doctest.testmod(tables).failed == 0


def test_bars_and_line_breaks_do_not_break_a_table() -> None:
    assert table(["a|b"], [["c\nd"]]) == "| a\\|b |\n|---|\n| c d |\n"


def test_an_object_that_may_be_null_says_so() -> None:
    inner = {
        "title": "Inner",
        "description": "What it is.",
        "properties": {"n": {"type": "integer", "description": "How many."}},
    }
    outer = {"properties": {"inner": {"anyOf": [{"$ref": "#/$defs/Inner"}, {"type": "null"}]}}}
    page = Sections({"Inner": inner}, "json").of(outer, "All")
    assert "| `inner` | [an object](#inner) or null | What it is. |" in page
    assert "## `inner`\n\nWhat it is.\n" in page


class Documented:
    first = 1
    """Of the first,
    over two lines."""
    second: int = 2
    third = 3
    """Of the third."""


def test_docstrings_of_attributes_are_found_by_name() -> None:
    assert attribute_docs(Documented) == {"first": "Of the first, over two lines.", "third": "Of the third."}
