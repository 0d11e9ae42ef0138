"""A real Ray cluster with several nodes, all on this machine."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.end_to_end import conftest as end_to_end
from weir.cluster.agents import LOST_S

NODES = Path(__file__).parent.parent / "support" / "ray_nodes.py"

start_weir = end_to_end.start_weir
weir = end_to_end.weir
StartWeir = end_to_end.StartWeir
Weir = end_to_end.Weir


@dataclass(frozen=True)
class Nodes:
    address: str
    raylets: tuple[int, ...]
    """Process ids; the first is the head's."""


StartNodes = Callable[..., Nodes]


@contextmanager
def running_nodes(*resources: dict[str, float], namespaces: bool = False) -> Iterator[Nodes]:
    """Starts a cluster with one node for each of `resources`; with `namespaces` all but the first are in namespaces.

    The cluster ends with the block, because even an idle cluster takes a tenth of a CPU from the tests that follow.
    """
    command = [sys.executable, str(NODES), json.dumps(resources), *(["--namespaces"] if namespaces else [])]
    pipe = subprocess.PIPE
    # The `with` closes the streams of the process and waits for its end.
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            assert process.stderr is not None
            pytest.fail(f"Ray cannot start nodes on this machine: {process.stderr.read().strip()[-500:]}")
        said = json.loads(line)
        yield Nodes(said["address"], tuple(said["raylets"]))


@pytest.fixture
def start_nodes() -> Iterator[StartNodes]:
    """Returns a function that starts a cluster like `running_nodes` until the test ends."""
    with ExitStack() as stack:
        yield lambda *resources, **how: stack.enter_context(running_nodes(*resources, **how))


@pytest.fixture(scope="package")
def nodes() -> Iterator[Nodes]:
    """A head without roles, and two nodes for loads, each with room for four agents. All tests that kill no node share
    it."""
    with running_nodes({}, {"weir_load": 4}, {"weir_load": 4}) as found:
        yield found


def assert_losses_noticed_in_time(output: str) -> None:
    """Asserts that weir noticed each lost agent in `output` after `LOST_S`, or after twice this time on a busy
    machine."""
    silences = re.findall(
        r"no (?:reply|interval) (?:for|within) ([\d.]+) s|\(([\d.]+) s after its last reply\)", output
    )
    assert silences, output
    assert max(float(silence or after) for silence, after in silences) <= 2 * LOST_S, output


def agents() -> list[int]:
    """Returns the process ids of all agents on this machine."""
    return [pid for pid, words in processes() if words[0].startswith("ray::Agent")]


def engines(*subcommands: str) -> list[int]:
    """Returns the process ids of the engines that agents started, or of those with these subcommands."""
    found = [(pid, words) for pid, words in processes() if "/from-driver/" in words[0]]
    return [pid for pid, words in found if not subcommands or words[1] in subcommands]


def processes() -> Iterator[tuple[int, list[str]]]:
    """Returns the processes of these tests with their command lines; processes of parallel tests are left out."""
    run = "PYTEST_XDIST_TESTRUNUID"
    mine = f"{run}={os.environ[run]}".encode() if run in os.environ else b""
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                command, environment = (folder / "cmdline").read_bytes(), (folder / "environ").read_bytes()
            except OSError:
                continue
            if mine in environment:
                yield int(folder.name), command.decode("utf-8", "replace").split("\0")


def scenario_of_files(folder: Path) -> str:
    """Returns a line of a study's load: a scenario file that names a file of rows. Its step has the name `who`."""
    (folder / "names.csv").write_text("name\none\n")
    (folder / "shop").mkdir()
    feeder = '[feeders.rows]\nformat = "csv"\nfile = "../names.csv"\n'
    (folder / "shop" / "buy.toml").write_text(feeder + '[[steps]]\nname = "who"\npath = "/{{csv rows.name}}"\n')
    return 'scenario = "shop/buy.toml"'
