"""Runs each command in docs/guides/load.md, with a shorter time and other servers."""

import os
import re
import shlex
from collections.abc import Callable

import pytest

from tests.conftest import REPOSITORY
from tests.end_to_end import test_load_transport
from tests.end_to_end.conftest import Weir
from tests.end_to_end.test_load_transport import Nginx

Serve = Callable[..., str]
nginx = test_load_transport.nginx


GUIDE = (REPOSITORY / "docs" / "guides" / "load.md").read_text()
BLOCKS = [
    [words[1:] for line in block.splitlines() if (words := shlex.split(line, comments=True)) and words[0] == "weir"]
    for block in re.findall(r"```sh\n(.*?)```", GUIDE, re.DOTALL)
]


def shortened(command: list[str]) -> list[str]:
    if command[0] != "load" or "-n" in command:
        return command
    if "-d" in command:
        at = command.index("-d") + 1
        return [*command[:at], "500ms", *command[at + 1 :]]
    return [*command, "-d", "500ms"]


def run_block(block: list[list[str]], weir: Weir, here: dict[str, str]) -> None:
    for command in block:
        told = shortened(command)
        for printed, real in here.items():
            told = [part.replace(printed, real) for part in told]
        done = weir(*told)
        # Whether an objective is met depends on the machine.
        assert done.returncode == 0 or ("--objective" in command and done.returncode == 1), (command, done.stderr)


def is_plain(block: list[list[str]]) -> bool:
    return not any(part.startswith(("https:", "unix:")) for command in block for part in command)


@pytest.mark.parametrize(
    "block", [block for block in BLOCKS if is_plain(block)], ids=lambda block: " ".join(block[0][2:])
)
def test_the_commands_of_a_block_of_the_guide_work(block: list[list[str]], weir: Weir, serve: Serve) -> None:
    run_block(block, weir, {"http://127.0.0.1:8000": f"http://{serve('null')}", "PID": str(os.getpid())})


@pytest.mark.needs("nginx", "openssl")
def test_the_commands_on_tls_and_unix_sockets_work(weir: Weir, nginx: Nginx) -> None:
    blocks = [block for block in BLOCKS if not is_plain(block)]
    assert blocks
    for block in blocks:
        run_block(block, weir, {"https://127.0.0.1:8443": nginx.https, "/run/app.sock": str(nginx.socket)})


def test_every_flag_that_the_guide_names_is_there(weir: Weir) -> None:
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", GUIDE))
    helped = weir("load", "--help").stdout + weir("report", "--help").stdout
    # These flags belong to the server in the example.
    assert {flag for flag in named if not re.search(rf"{flag}(?![\w-])", helped)} == {"--every", "--for"}
