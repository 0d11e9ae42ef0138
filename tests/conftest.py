"""Parts that all tests share: programs that may be missing, free ports, and the engine's own servers."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from xdist.scheduler import LoadScopeScheduling

from tests.support.browser import chromium
from tests.support.warm_weir import WarmServer
from weir.generators.external_tool import Tool
from weir.generators.registry import get_tool
from weir.lab.stack_process import find_free_port
from weir.paths import find_cache_folder, find_engine_binary
from weir.stacks.toolchain import build_search_path, find_unmet_needs

if TYPE_CHECKING:
    from playwright.sync_api import Browser

REPOSITORY = Path(__file__).resolve().parent.parent
# The path of stacks' tools, and Debian's folder for servers, which a user's PATH may lack.
SEARCH_PATH = os.pathsep.join([build_search_path(), "/usr/sbin", "/sbin"])


_LONGEST_ROOMS = ("tests/cluster/", "tests/end_to_end/")
# Limits on the files and logs that a failed test shows.
_MOST_FILES = 20
_MOST_LOGS = 3
_LOG_LINES = 15

# The time of an example depends on the other load of the machine.
hypothesis.settings.register_profile("no deadline", deadline=None)
hypothesis.settings.load_profile("no deadline")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "needs(*commands): left out where one of these programs is missing (scripts/system-packages installs them)",
    )
    # scripts/bench-peers puts generators here that Debian does not have.
    os.environ["PATH"] = os.pathsep.join(
        [os.environ.get("PATH", os.defpath), str(find_cache_folder() / "bench-peers" / "bin")]
    )
    # A shell lets background processes ignore SIGINT, and pytest's children would inherit this.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Moves the slowest folders to the front, so that several processes end at about the same time."""
    items.sort(key=lambda item: not item.nodeid.startswith(_LONGEST_ROOMS))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """Lets one process run all tests of a file, because they share servers, or all tests of a folder that shares a
    cluster."""
    return _ByFile(config, log)


class _ByFile(LoadScopeScheduling):  # type: ignore[misc]  # it ships no types
    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "tests/cluster" if file.startswith("tests/cluster/") else file


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds a failed test's folder and the ends of its logs to the report of the test."""
    report = yield
    folder = getattr(item, "funcargs", {}).get("tmp_path")
    if report.failed and folder is not None:
        report.sections.append(("left behind", left_behind(folder)))
    return report


def left_behind(folder: Path) -> str:
    """Returns the path of a test's folder, its newest files, and the ends of its newest logs."""
    files = sorted(
        (path for path in folder.rglob("*") if path.is_file()), key=lambda path: path.stat().st_mtime, reverse=True
    )
    lines = [
        str(folder),
        *(f"  {path.relative_to(folder)} ({path.stat().st_size:,} bytes)" for path in files[:_MOST_FILES]),
    ]
    for log in [path for path in files if path.suffix == ".log"][:_MOST_LOGS]:
        lines += [f"--- {log}", *log.read_text(errors="replace").splitlines()[-_LOG_LINES:]]
    return "\n".join(lines)


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("needs"):
        for command in marker.args:
            if shutil.which(command, path=SEARCH_PATH) is None:
                pytest.skip(f"{command} is not installed; scripts/system-packages says how to get it")


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def engine() -> Path:
    """The `weir-engine` of this environment."""
    return find_engine_binary()


@pytest.fixture(scope="session")
def warm_server() -> Iterator[WarmServer]:
    """The process that forks every `weir` of this session."""
    with WarmServer() as server:
        yield server


@pytest.fixture(scope="session")
def installed() -> Callable[[str], Tool]:
    """Returns a function that finds or installs a tool, and skips the test if the tool is not available."""

    def find(name: str) -> Tool:
        found = get_tool(name)
        recipe = found.installation
        if recipe is not None and found.find() is None and not find_unmet_needs(recipe.needs):
            recipe.install()
        if found.find() is None:
            pytest.skip(f"{name} is not installed: {found.install_hint}")
        return found

    return find


@pytest.fixture
def free_port() -> Callable[[], int]:
    """A function that returns a port on which nothing listens. It is below the ephemeral range, because another test or
    a worker of Ray may listen on any ephemeral port a moment later."""
    return find_free_port


@pytest.fixture
def serve(engine: Path) -> Iterator[Callable[..., str]]:
    """Returns a function that starts `weir-engine serve ARGUMENTS…` and returns its address, such as `serve("delay",
    "--wait", "10ms")`."""
    with ExitStack() as stack:

        def start(*arguments: str) -> str:
            # The server ends even if this process is killed, because its standard input is a pipe from here.
            process = subprocess.Popen(
                [engine, "serve", *arguments, "--listen", "127.0.0.1:0"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            stack.enter_context(process)
            stack.callback(process.terminate)
            assert process.stdout is not None
            listening = json.loads(process.stdout.readline())
            address: str = listening["address"]
            return address

        yield start


@pytest.fixture(scope="session")
def bundle() -> None:
    """Makes sure that the web bundle exists."""
    for name in ("report.js", "live.js"):
        if not (files("weir") / "_web" / name).is_file():
            pytest.skip("the web bundle is not built; `make setup` builds it")


@pytest.fixture(scope="session")
def browser(bundle: None) -> "Iterator[Browser]":
    """Headless Chromium."""
    path = chromium()
    if path is None:
        pytest.skip("chromium is not installed; apt-get install chromium")
    # Imported here, because most tests need no browser.
    from playwright.sync_api import expect, sync_playwright

    # This long timeout only ends failed tests: on a busy machine short steps may take many times longer.
    expect.set_options(timeout=60_000)
    with sync_playwright() as playwright:
        # In a container, root has no user namespace for the sandbox.
        running = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield running
        running.close()
