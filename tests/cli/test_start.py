"""How `weir` begins."""

import subprocess
import sys

import pytest

# They take longer to import than all else.
FOR_FINDINGS = {"scipy", "jinja2"}
FOR_DATABASES = {"psycopg", "pymysql"}
FOR_THE_LIVE_PAGE = {"starlette", "uvicorn", "weir.live"}


def modules_of(statement: str) -> set[str]:
    printed = subprocess.run(
        [sys.executable, "-c", f"import sys; {statement}; print(*sys.modules)"], capture_output=True, text=True, check=True
    ).stdout
    return set(printed.split())


@pytest.mark.parametrize("command", ["load", "run", "ui", "report", "audit", "doctor", "stacks", "study"])
def test_a_command_begins_without_what_only_findings_databases_and_the_live_page_need(command: str) -> None:
    loaded = modules_of(f"import weir.cli.{command}")
    assert not (FOR_FINDINGS | FOR_DATABASES | FOR_THE_LIVE_PAGE) & loaded
    assert f"weir.cli.{command}" in loaded


def test_no_command_is_loaded_before_it_is_called() -> None:
    assert "weir.cli.run" not in modules_of("import weir.cli")
