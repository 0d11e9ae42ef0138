"""A stack's process: where it listens, and how it ends."""

import socket

import pytest

from weir.host import Ended
from weir.lab.stack import free_port, how_not_to_end
from weir.model.errors import TargetError


def test_the_counters_of_another_jvm_are_no_file_that_a_stack_has_left() -> None:
    left = ("/tmp/hsperfdata_root/2", "/tmp/tomcat.8080.1/work/x")
    ended = Ended("app", 143, None, killed=False, cpu_user_s=0, cpu_system_s=0, peak_rss_bytes=0, written=left)
    assert list(how_not_to_end(ended)) == [
        "it wrote files outside its folder and left them there: /tmp/tomcat.8080.1/work/x; expected none"
    ]


def test_nothing_is_wrong_with_a_server_that_ends_when_it_is_told_to() -> None:
    ended = Ended("app", None, 15, killed=False, cpu_user_s=0, cpu_system_s=0, peak_rss_bytes=0)
    assert list(how_not_to_end(ended)) == []


def test_a_port_that_is_taken_on_another_address_of_this_machine_is_not_free() -> None:
    with socket.create_server(("127.0.0.2", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(TargetError, match=f"--port: {port}: .*; expected a free port"):
            free_port(port)
    assert free_port(port) == port
