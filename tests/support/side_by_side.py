"""Runs a tool and weir's front end for it with the same command lines on the same servers; compares reports of one
layout."""

import json
import os
import re
import shlex
import subprocess
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

WEIR = str(Path(sysconfig.get_path("scripts")) / "weir")
BODY = '{"text": "a small question"}'
_END_S = 200.0
"""This long timeout only ends failed tests: a busy machine may take many times as long as an idle one."""
_AT_A_TIME = 8


@dataclass(frozen=True)
class Done:
    """The result of one command line."""

    code: int
    out: str
    err: str
    files: Mapping[str, str]
    """Files that the program wrote into its folder."""


@dataclass(frozen=True)
class Both:
    """The results of both programs."""

    tool: Done
    weir: Done


def chosen_lines(request: pytest.FixtureRequest, lines: Sequence[str]) -> list[str]:
    """Returns the lines that are the parameter `line` of a selected test in this module."""
    items = [
        item for item in request.session.items if isinstance(item, pytest.Function) and item.module is request.module
    ]
    chosen = {item.callspec.params.get("line") for item in items if hasattr(item, "callspec")}
    return [line for line in lines if line in chosen]


@contextmanager
def side_by_side(
    tool: str, lines: Sequence[str], places: Mapping[str, str], folder: Path
) -> Iterator[Callable[[str], Both]]:
    """Yields a function that returns both programs' results for one of `lines`. Several run at a time, because only the
    layout of their reports matters.

    Args:
        tool: the tool's name.
        lines: command lines without the tool, which all start at once. `{name}` is one of the places; `body.json`
            exists. Other lines run when a test needs them.
        places: the texts that replace `{name}`.
        folder: the folder in which each run gets a folder of its own.
    """

    def run(program: Sequence[str], line: str, place: Path) -> Done:
        place.mkdir(parents=True)
        (place / "body.json").write_text(BODY)
        words = [re.sub(r"\{(\w+)\}", lambda match: places[match[1]], word) for word in shlex.split(line)]
        done = subprocess.run(
            [*program, *words], cwd=place, env=environment, capture_output=True, text=True, timeout=_END_S
        )
        written = {path.name: path.read_text() for path in sorted(place.iterdir()) if path.name != "body.json"}
        return Done(done.returncode, done.stdout, done.stderr, written)

    # A copy, because pytest adds and removes each test's name in its own environment. The kernel refuses to start a
    # program (EFAULT) if its environment becomes shorter meanwhile.
    environment = dict(os.environ)
    pool = ThreadPoolExecutor(_AT_A_TIME)
    jobs: dict[str, tuple[Future[Done], Future[Done]]] = {}

    def begin(line: str) -> None:
        if line not in jobs:
            place = folder / f"{len(jobs)}"
            jobs[line] = (
                pool.submit(run, [tool], line, place / "tool"),
                pool.submit(run, [WEIR, tool], line, place / "weir"),
            )

    def give(line: str) -> Both:
        begin(line)
        of_tool, of_weir = jobs[line]
        return Both(of_tool.result(), of_weir.result())

    for line in lines:
        begin(line)

    try:
        yield give
    finally:
        # If only some tests were selected, the rest is not needed.
        pool.shutdown(cancel_futures=True)


@contextmanager
def running_servers(engine: Path, servers: Mapping[str, Sequence[str]]) -> Iterator[dict[str, str]]:
    """Runs the engine's own servers; yields their addresses by name.

    Args:
        engine: the binary.
        servers: arguments of `serve`, by name.
    """
    with ExitStack() as stack:
        places = {}
        for name, arguments in servers.items():
            # The server ends even if this process is killed, because its standard input is a pipe from here.
            command = [str(engine), "serve", *arguments, "--listen", "127.0.0.1:0"]
            server = stack.enter_context(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            stack.callback(server.terminate)
            assert server.stdout is not None
            places[name] = json.loads(server.stdout.readline())["address"]
        yield places


def shape(text: str) -> list[str]:
    """Returns the lines with # for each number except its decimals, without bars and widths of columns."""

    def number(match: re.Match[str]) -> str:
        return "#" + ("." + "0" * len(match[1]) if match[1] else "")

    return [
        re.sub(r" +", " ", re.sub(r"\d+(?:\.(\d+))?", number, line.replace("■", ""))).rstrip()
        for line in text.splitlines()
    ]
