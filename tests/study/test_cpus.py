import doctest
from pathlib import Path
from typing import Any

import pytest

from weir.model.errors import UsageError
from weir.study import file
from weir.study.file import Cpus, Network
from weir.toml_file import validate


def test_the_examples_in_the_docstrings_hold() -> None:
    found = doctest.testmod(file)
    assert found.attempted > 0
    assert found.failed == 0


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"load": 0}, "load: found 0; expected 'auto', a number of CPUs from 1 on, or a list of CPUs, each once"),
        ({"stack": []}, "stack: found []; expected"),
        ({"stack": [1, 1]}, "stack: found [1, 1]; expected"),
        ({"control": "some"}, "control: found 'some'; expected"),
        ({"control": True}, "control: found True; expected"),
        ({"quota": {"app": 0.001}}, "quota.app: found 0.001, expected at least 0.01 CPUs"),
        ({"quota": {"app": 0.05}, "quota_period_ms": 10}, "quota.app: found 0.05, expected at least 0.1 CPUs"),
        ({"quota_period_ms": 5000}, "quota_period_ms: found 5000"),
        ({"memory": {"app": "512"}}, "found '512', expected a size such as '512 MB'"),
        ({"memory": {"app": "12 kB"}}, "app: expected 1 MiB or more"),
        ({"quotas": {}}, "quotas: unknown key; did you mean 'quota'?"),
    ],
)
def test_what_cannot_be_in_cpus_is_named_with_what_was_expected(table: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as refused:
        validate(Cpus, table, path=Path("mine.toml"))
    assert said in refused.value.message
    assert refused.value.message.count("\n") == 0


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"delay_ms": 20}, 'delay_ms: found without isolation = "netns", expected both'),
        ({"isolation": "docker"}, "isolation: found 'docker'"),
        ({"isolation": "netns", "publish": 0}, "publish: found 0"),
        ({"isolation": "netns", "loss": 1.0}, "loss: found 1.0"),
    ],
)
def test_what_cannot_be_in_network_is_named_with_what_was_expected(table: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as refused:
        validate(Network, table, path=Path("mine.toml"))
    assert said in refused.value.message


@pytest.mark.parametrize("value", ["auto", 1, [0], [2, 3]])
def test_every_role_takes_auto_a_count_or_a_list(value: object) -> None:
    for role in ("load", "stack", "services", "control"):
        assert getattr(validate(Cpus, {role: value}, path=Path("mine.toml")), role) == value


@pytest.mark.parametrize("role", ["stack", "load"])
def test_services_alone_may_go_beside_another_role(role: str) -> None:
    assert validate(Cpus, {"services": role}, path=Path("mine.toml")).services == role
    with pytest.raises(UsageError, match=f"control: found '{role}'; expected 'auto', a number"):
        validate(Cpus, {"control": role}, path=Path("mine.toml"))
