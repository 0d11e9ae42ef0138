"""Tests nginx's configuration. The tests of the lab start nginx."""

from pathlib import Path

import pytest

from weir.services.manifest import read_service
from weir.services.nginx import build_nginx_configuration, find_dropped_servers


def test_every_process_of_the_stack_is_behind_it_and_its_settings_reach_it() -> None:
    settings = {**read_service("nginx").settings, "keepalive": "7", "keepalive_timeout": "3"}
    text = build_nginx_configuration(settings, port=8080, stack_ports=[9001, 9002], folder=Path("/somewhere"))
    assert text.count("server 127.0.0.1:") == 2
    for said in (
        "listen 127.0.0.1:8080 ",
        "server 127.0.0.1:9001;",
        "server 127.0.0.1:9002;",
        "keepalive 7;",
        "keepalive_timeout 3s;",
        "worker_processes 1;",
    ):
        assert said in text
    assert text.count("{") == text.count("}")


def test_the_processes_that_it_left_out_are_those_that_its_log_names_once_each() -> None:
    failed = "recv() failed (104: Connection reset by peer) while reading response header from upstream"
    reset = f"2026/11/24 12:04:17 [error] 3#3: *249 {failed}"
    disabled = "2026/11/24 12:04:17 [warn] 3#3: *249 upstream server temporarily disabled while reading response header from upstream"
    about = 'client: 127.0.0.1, server: , request: "GET /u HTTP/1.1", upstream: "http://127.0.0.1:{}/u", host: "127.0.0.1:8080"'
    log = "\n".join(f"{said}, {about.format(port)}" for said in (reset, disabled) for port in (9001, 9002, 9001))
    assert find_dropped_servers(log) == {"127.0.0.1:9001", "127.0.0.1:9002"}
    assert find_dropped_servers(f"{reset}, {about.format(9003)}") == set()


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
