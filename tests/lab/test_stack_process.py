"""Tests a stack's process: the address where it listens, and its end."""

import os
import random
import socket
from pathlib import Path

import pytest

from tests.support.listening import listening
from weir.host import Ended, Host
from weir.lab.stack_process import find_exit_problems, find_free_port, running_stack
from weir.lab.trial_services import Services
from weir.load_spec import LoadSpec
from weir.model.errors import TargetError
from weir.model.load import ClosedLoad
from weir.model.run_types import Cell, Placement
from weir.stacks.build import BuiltStack
from weir.stacks.manifest import Manifest, Stack
from weir.stacks.workload import Workload
from weir.study.file import Method
from weir.study.study import PlannedCell


def test_the_counters_of_another_jvm_are_no_file_that_a_stack_has_left() -> None:
    left = ("/tmp/hsperfdata_root/2", "/tmp/tomcat.8080.1/work/x")
    ended = Ended("app", 143, None, killed=False, cpu_user_s=0, cpu_system_s=0, peak_rss_bytes=0, written=left)
    assert list(find_exit_problems(ended)) == [
        "it wrote files outside its folder and left them there: /tmp/tomcat.8080.1/work/x; expected none"
    ]


def test_nothing_is_wrong_with_a_server_that_ends_when_it_is_told_to() -> None:
    ended = Ended("app", None, 15, killed=False, cpu_user_s=0, cpu_system_s=0, peak_rss_bytes=0)
    assert list(find_exit_problems(ended)) == []


def test_a_port_that_is_taken_on_another_address_of_this_machine_is_not_free() -> None:
    with socket.create_server(("127.0.0.2", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(TargetError, match=f"--port: {port}: .*; expected a free port"):
            find_free_port(port)
    assert find_free_port(port) == port


def test_a_port_that_is_found_is_none_that_a_connection_gets_before_the_server_listens() -> None:
    first, last = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    for _ in range(20):
        assert not first <= find_free_port() <= last


OF_AGENTS = "127.0.0.2"
"""Another address of this machine's loopback device."""


@pytest.mark.parametrize(
    ("advertised_address", "service", "command", "listens_on", "asked_at"),
    [
        (None, "delay", ["--bind", "{host}"], "127.0.0.1", "127.0.0.1"),
        (OF_AGENTS, "delay", ["--bind", "{host}"], OF_AGENTS, OF_AGENTS),
        pytest.param(
            OF_AGENTS, "nginx", ["--bind", "{host}"], "127.0.0.1", OF_AGENTS, marks=pytest.mark.needs("nginx")
        ),
        pytest.param(
            OF_AGENTS, "nginx", ["--bind", "127.0.0.1"], "127.0.0.1", OF_AGENTS, marks=pytest.mark.needs("nginx")
        ),
    ],
    ids=[
        "loads of this machine",
        "agents",
        "agents, a proxy in front",
        "agents, a proxy in front of one that is told no address",
    ],
)
def test_a_stack_listens_where_it_is_asked_and_nowhere_else(
    tmp_path: Path, advertised_address: str | None, service: str, command: list[str], listens_on: str, asked_at: str
) -> None:
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    placement = Placement(load=cpus, stack=cpus, services=(), control=cpus, advertised_address=advertised_address)
    manifest = Manifest.model_validate(
        {
            "schema": 1,
            "id": "s",
            "title": "S",
            "model": "m",
            "run": {"command": ["{python}", "-m", "http.server", *command, "{port}"]},
            "services": {service: {}},
            "serves": {"w": {}},
        }
    )
    stack = Stack(manifest, tmp_path)
    workload = Workload.model_validate({"schema": 1, "id": "w", "title": "W", "request": {"path": "/"}, "answer": {}})
    planned = PlannedCell(
        Cell(1, "s", None, "w", ClosedLoad(1)),
        stack,
        workload,
        LoadSpec(duration_s=1),
        Method.model_validate({"blocks": 1, "baseline": "s"}),
        services=stack.services_for(workload),
    )
    with (
        Host() as host,
        Services(host) as services,
        services.running(planned, placement, log_of=lambda name: tmp_path / f"{name}.log") as needed,
        running_stack(
            host,
            BuiltStack(stack, tmp_path, None),
            planned,
            placement=placement,
            logs=[tmp_path / "app.log"],
            inputs=random.Random(1),
            fields=needed.fields,
            front=needed.front,
        ) as running,
    ):
        # At this moment the stack has answered correctly at its base URL.
        assert running.base_url.startswith(f"http://{asked_at}:")
        assert listening(running.pids[0]) == {listens_on}
