"""Tests databases whose clients are an extra of the package."""

import importlib
import sys

import pytest

from weir.model.errors import UsageError
from weir.services.database import find_database_kind


@pytest.mark.parametrize(("service", "client"), [("postgres", "psycopg"), ("mariadb", "pymysql")])
def test_a_database_without_its_client_names_the_command_that_installs_it(
    service: str, client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, f"weir.services.{service}", raising=False)
    monkeypatch.setitem(sys.modules, client, None)
    with pytest.raises(UsageError, match=f"service {service}: {client} is not installed here") as caught:
        find_database_kind(service)
    assert caught.value.hint == "pip install 'weirbench[databases]'"


def test_frames_without_polars_name_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "weir.frames", raising=False)
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match=r"pip install 'weirbench\[frames\]'"):
        importlib.import_module("weir.frames")
