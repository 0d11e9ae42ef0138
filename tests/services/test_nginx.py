"""What nginx is told. The tests of the lab start it."""

from pathlib import Path

import pytest

from weir.services.manifest import read_service
from weir.services.nginx import nginx_configuration


def test_every_process_of_the_stack_is_behind_it_and_its_settings_reach_it() -> None:
    settings = {**read_service("nginx").settings, "keepalive": "7"}
    text = nginx_configuration(settings, port=8080, stack_ports=[9001, 9002], folder=Path("/somewhere"))
    assert text.count("server 127.0.0.1:") == 2
    for said in ("listen 127.0.0.1:8080 ", "server 127.0.0.1:9001;", "server 127.0.0.1:9002;", "keepalive 7;", "worker_processes 1;"):
        assert said in text
    assert text.count("{") == text.count("}")


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"keepalive": "0"}, "keepalive: found '0'"),
        ({"worker_process": "2"}, "worker_process: unknown setting; expected one of: worker_proc"),
    ],
)
def test_a_setting_that_means_nothing_is_named(settings: dict[str, str], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_service("nginx").check(settings)
