"""How `weir` begins."""

import subprocess
import sys
from importlib.metadata import version

import pytest

import weir
from weir.compat.front_end import TOOLS

# They take longer to import than all else.
FOR_FINDINGS = {"scipy", "jinja2"}
FOR_DATABASES = {"psycopg", "pymysql"}
FOR_THE_LIVE_PAGE = {"starlette", "uvicorn", "weir.live"}


def modules_of(statement: str) -> set[str]:
    printed = subprocess.run(
        [sys.executable, "-c", f"import sys; {statement}; print(*sys.modules)"], capture_output=True, text=True, check=True
    ).stdout
    return set(printed.split())


@pytest.mark.parametrize("command", ["load", "locust", "convert", "run", "ui", "report", "audit", "doctor", "stacks", "study"])
def test_a_command_begins_without_what_only_findings_databases_and_the_live_page_need(command: str) -> None:
    loaded = modules_of(f"import weir.cli.{command}")
    assert not (FOR_FINDINGS | FOR_DATABASES | FOR_THE_LIVE_PAGE) & loaded
    assert f"weir.cli.{command}" in loaded


def test_findings_begin_without_what_only_intervals_searches_and_fits_need() -> None:
    assert not {"MLRsearch", "scipy.special", "scipy.optimize", "scipy.interpolate", "ruptures"} & modules_of(
        "import weir.findings, weir.report"
    )


def test_only_workers_of_a_locustfile_load_what_it_runs_on() -> None:
    assert not {"gevent", "requests", "geventhttpclient"} & modules_of("import weir.cli.locust")


def test_a_worker_of_a_locustfile_begins_without_what_reads_records_and_draws() -> None:
    loaded = modules_of("from gevent import monkey; monkey.patch_all(); import weir.compat.locust.worker")
    assert not {"typer", "rich", "pydantic", "numpy", "weir.model.records"} & loaded


def test_no_command_is_loaded_before_it_is_called() -> None:
    assert not {"weir.cli.run", "weir.cli.commands", "typer"} & modules_of("import weir.cli")


def test_what_the_package_offers_is_loaded_when_it_is_asked_for() -> None:
    assert not {"pydantic", "weir.scenario", "importlib.metadata"} & modules_of("import weir")
    assert "weir.scenario" in modules_of("from weir import *; Scenario(steps=[Step('GET', '/')])")
    assert weir.__version__ == version("weirbench")
    with pytest.raises(AttributeError, match="Scenery"):
        _ = weir.Scenery


@pytest.mark.parametrize("tool", TOOLS)
def test_a_front_end_puts_its_load_on_without_what_reads_records_and_draws(tool: str) -> None:
    # The engine is started after these, and before anything else is imported.
    loaded = modules_of(f"import weir.cli, weir.cli.front_ends, weir.compat.{tool}")
    assert not {"typer", "rich", "pydantic", "hdrh", "numpy", "weir.model.records", "importlib.metadata"} & loaded
