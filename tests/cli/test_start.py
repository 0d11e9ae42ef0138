"""Tests the start of `weir`."""

import inspect
import subprocess
import sys
from importlib.metadata import version

import pytest
import typer

import weir
from weir.cli.commands import COMMANDS, command, read_summary
from weir.compat.front_end import TOOLS

# These modules take longer to import than all others.
FOR_FINDINGS = {"scipy", "jinja2"}
FOR_DATABASES = {"psycopg", "pymysql"}
FOR_THE_LIVE_PAGE = {"starlette", "uvicorn", "weir.live"}


def modules_of(statement: str) -> set[str]:
    printed = subprocess.run(
        [sys.executable, "-c", f"import sys; {statement}; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return set(printed.split())


@pytest.mark.parametrize(
    "command", ["load", "locust", "convert", "run", "ui", "report", "audit", "doctor", "stacks", "study"]
)
def test_a_command_begins_without_what_only_findings_databases_and_the_live_page_need(command: str) -> None:
    loaded = modules_of(f"import weir.cli.{command}")
    assert not (FOR_FINDINGS | FOR_DATABASES | FOR_THE_LIVE_PAGE) & loaded
    assert f"weir.cli.{command}" in loaded


def test_findings_begin_without_what_only_intervals_searches_and_fits_need() -> None:
    assert not {"MLRsearch", "scipy.special", "scipy.optimize", "scipy.interpolate", "ruptures"} & modules_of(
        "import weir.findings, weir.report"
    )


def test_only_locusts_own_processes_load_locust() -> None:
    assert not {"gevent", "locust", "requests"} & modules_of(
        "import weir.cli.locust, weir.generators.scripted.locust_plugin"
    )


def test_no_command_is_loaded_before_it_is_called() -> None:
    assert not {"weir.cli.run", "weir.cli.commands", "typer"} & modules_of("import weir.cli")


def test_what_the_package_offers_is_loaded_when_it_is_asked_for() -> None:
    assert not {"pydantic", "weir.scenario", "importlib.metadata"} & modules_of("import weir")
    assert "weir.scenario" in modules_of("from weir import *; Scenario(steps=[Step('GET', '/')])")
    assert weir.__version__ == version("weirbench")
    with pytest.raises(AttributeError, match="Scenery"):
        _ = weir.Scenery


def test_a_load_needs_no_pydantic() -> None:
    assert not {"pydantic", "numpy"} & modules_of("import weir.cli.load, weir.cli.load_source, weir.cli.load_summary")


@pytest.mark.parametrize("tool", TOOLS)
def test_a_front_end_puts_its_load_on_without_slow_modules(tool: str) -> None:
    # The front end starts the engine after these imports and before all others.
    read = f"from weir.compat.front_end import TOOLS, read_command_line; read_command_line({tool!r}, TOOLS[{tool!r}].split()[2:])"
    loaded = modules_of(f"import weir.cli, weir.cli.front_ends; {read}")
    assert not {"typer", "rich", "pydantic", "hdrh", "numpy", "importlib.metadata"} & loaded


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_has_the_first_line_of_each_docstring(name: str) -> None:
    found = command(name)
    text = found.info.help if isinstance(found, typer.Typer) else inspect.getdoc(found)
    assert isinstance(text, str)
    assert read_summary(name) == text.splitlines()[0]


def test_help_imports_no_command() -> None:
    script = "import sys; sys.argv = ['weir', '--help']; import weir.cli; weir.cli.main()"
    loaded = (
        "import atexit; atexit.register(lambda: print('LOADED', 'pydantic' in sys.modules, 'weir.lab' in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {loaded}; {script}"], capture_output=True, text=True, check=False
    )
    assert "LOADED False False" in done.stdout
