"""Tests the ports of a real process and its child."""

import subprocess
import sys

from weir.observe.listening_ports import find_listening_ports

LISTENER = "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True)"


def test_ports_of_a_process_and_of_its_descendants_are_found() -> None:
    child = f"{LISTENER}; input()"
    script = f"{LISTENER}; import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        ports = [int(process.stdout.readline()) for _ in range(2)]
        assert find_listening_ports(process.pid) == sorted(ports)


def test_a_process_that_listens_on_nothing_has_no_ports() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert find_listening_ports(process.pid) == []
