"""Tests the agent that runs on a node, without a cluster."""

import json
import os
import signal
import stat
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.ordeal import wait_until
from weir.cluster import agent as agent_module
from weir.cluster.agent import Agent, get_ray_variables
from weir.cluster.archive import pack_folder

# At the end of its lease an agent ends its process, which is here the test's process.
FOREVER_S = 1e9
SLEEPS = [sys.executable, "-c", "import sys; print('there', flush=True); sys.stdin.read(); print('bye', flush=True)"]


def all_news(agent: Agent, is_enough: Callable[[list[tuple[str, object]]], bool]) -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = []
    while not is_enough(found):
        found += [(kind, what) for _, kind, what in agent.output(1.0)]
    return found


@pytest.fixture
def napped() -> Iterator[threading.Event]:
    """An event that is set when the main thread gets the signal to nap; the old handler comes back after the test."""
    had = signal.getsignal(agent_module.NAP)
    yield threading.Event()
    signal.signal(agent_module.NAP, had)


def test_rays_thread_is_told_to_nap_while_all_that_an_engine_says_may_wait(napped: threading.Event) -> None:
    agent = Agent(FOREVER_S, naps=True)
    signal.signal(agent_module.NAP, lambda *_: napped.set())
    agent.output(0.0, (b"tick",))
    agent.start(7, [sys.executable, "-c", "import sys; [print(line.strip(), flush=True) for line in sys.stdin]"])
    assert not agent.is_steady
    agent.write(7, b"tick\n")
    # The handler runs between two steps of the main thread, so the thread must not block in one step.
    wait_until(napped.is_set, "the nap")
    agent.write(7, b"now\n")
    assert all_news(agent, lambda news: news[-1:] == [("line", b"now\n")])
    assert not agent.is_steady
    agent.write(7, b"tick\n")
    agent.close_input(7)
    all_news(agent, ended)
    assert not agent.is_steady


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Agent:
    monkeypatch.setenv("WEIR_CACHE", str(tmp_path / "cache"))
    return Agent(FOREVER_S)


def ended(news: list[tuple[str, object]]) -> bool:
    return bool(news) and news[-1][0] == "end"


def test_lines_go_both_ways_and_the_end_has_the_status_and_the_errors(agent: Agent) -> None:
    script = "import sys; [print(line.strip()[::-1], flush=True) for line in sys.stdin]; print('oh', file=sys.stderr); sys.exit(3)"
    agent.start(7, [sys.executable, "-c", script])
    agent.write(7, b"abc\n")
    agent.write(7, b"def\n")
    agent.close_input(7)
    assert all_news(agent, ended) == [("line", b"cba\n"), ("line", b"fed\n"), ("end", (3, b"oh\n"))]


def test_lines_that_may_wait_wait_for_one_that_may_not_and_come_with_it(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weir.cluster.agent.HELD_S", 3600.0)
    agent.start(7, [sys.executable, "-c", "import sys; [print(line.strip(), flush=True) for line in sys.stdin]"])
    agent.write(7, b"tick 1\ntick 2\nnow\n")
    patient = (b"tick",)
    news = agent.output(30.0, patient)
    assert news == [(7, "line", b"tick 1\n"), (7, "line", b"tick 2\n"), (7, "line", b"now\n")]
    agent.write(7, b"tick 3\n")
    agent.close_input(7)
    assert agent.output(30.0, patient) == [(7, "line", b"tick 3\n"), (7, "end", (0, b""))]


def test_lines_that_may_wait_do_not_where_there_are_as_many_as_go_at_once(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weir.cluster.agent.HELD_S", 3600.0)
    agent.start(7, [sys.executable, "-c", "for _ in range(8): print('tick')"])
    patient = (b"tick",)
    while agent._output.qsize() < 9:
        time.sleep(0.01)
    assert [len(agent.output(30.0, patient, 3)) for _ in range(3)] == [3, 3, 3]


def test_what_is_written_to_one_that_has_ended_is_lost_without_an_error(agent: Agent) -> None:
    agent.start(1, [sys.executable, "-c", ""])
    all_news(agent, ended)
    agent.write(1, b"x\n")
    agent.close_input(1)
    agent.signal(1, 9)


def test_nothing_stays_open_of_engines_that_have_ended(agent: Agent) -> None:
    def run(number: int) -> None:
        agent.start(number, [sys.executable, "-c", "import sys; print('out'); print('err', file=sys.stderr)"])
        assert all_news(agent, ended) == [("line", b"out\n"), ("end", (0, b"err\n"))]

    run(0)
    before = len(os.listdir("/proc/self/fd"))
    for number in range(1, 6):
        run(number)
    assert len(os.listdir("/proc/self/fd")) == before


def test_of_two_agents_that_unpack_the_same_at_once_the_slower_leaves_nothing_behind(
    agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = tmp_path / "programs"
    content.mkdir()
    (content / "postgres").write_text("#!/bin/sh\n")
    archive = pack_folder(content, "programs")
    open_archive = tarfile.open

    def open_late(**arguments: Any) -> tarfile.TarFile:
        monkeypatch.setattr(tarfile, "open", open_archive)
        # The other agent unpacks in its own process.
        with monkeypatch.context() as other:
            other.setattr(os, "getpid", lambda: 1)
            agent.unpack(archive)
        return open_archive(**arguments)

    monkeypatch.setattr(tarfile, "open", open_late)
    folder = Path(agent.unpack(archive))
    assert (folder / "postgres").is_file()
    assert list(folder.parent.iterdir()) == [folder]


def test_a_file_is_kept_by_its_content_and_can_be_run(agent: Agent) -> None:
    import hashlib

    content = b"#!/bin/sh\necho here\n"
    digest = hashlib.sha256(content).hexdigest()
    assert agent.find(digest, "tool") is None
    path = agent.keep(content, "tool")
    assert agent.find(digest, "tool") == path == agent.keep(content, "tool")
    assert subprocess.check_output([path]) == b"here\n"
    assert agent.run_command([path]) == ("here\n", 0)


def test_nobody_else_on_its_node_reads_a_file_that_is_kept_and_everybody_gets_to_programs_that_are_unpacked(
    agent: Agent, tmp_path: Path
) -> None:
    before = os.umask(0o022)
    try:
        kept = Path(agent.keep(b"a key", "client.key"))
        program = tmp_path / "programs" / "postgres"
        program.parent.mkdir()
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        folder = Path(agent.unpack(pack_folder(program.parent, "programs")))
    finally:
        os.umask(before)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (kept, kept.parent)] == [0o700, 0o700]
    assert [stat.S_IMODE(path.stat().st_mode) for path in (folder / "postgres", folder, folder.parent)] == [
        0o755,
        0o755,
        0o755,
    ]
    # An older weir left the folder readable for all users.
    kept.parent.chmod(0o755)
    agent.keep(b"a key", "client.key")
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700


def test_an_engine_hears_nothing_of_ray_and_a_weir_only_how_it_joins_the_cluster(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    joining = {
        "RAY_USE_TLS": "1",
        "RAY_TLS_CA_CERT": "/ca.pem",
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": "/token",
    }
    for name, value in {**joining, "RAY_JOB_ID": "7"}.items():
        monkeypatch.setenv(name, value)
    assert get_ray_variables() == joining
    script = "import json, os; print(json.dumps({name: value for name, value in os.environ.items() if name.startswith('RAY_')}))"
    for number, environment in enumerate(({}, get_ray_variables())):
        agent.start(number, [sys.executable, "-c", script], environment)
        (_, line), _ = all_news(agent, ended)
        assert isinstance(line, bytes)
        assert json.loads(line) == environment


def test_without_news_there_is_an_empty_answer_in_time(agent: Agent) -> None:
    assert agent.output(0.01) == []


def test_without_a_question_it_ends_its_engines_and_itself(tmp_path: Path) -> None:
    script = f"""
import json, threading, time
from weir.cluster.agent import Agent
# Longer than a busy machine takes to start a program.
agent = Agent(3.0)
print(agent.start(1, {SLEEPS!r}), flush=True)
time.sleep(60)
"""
    began = time.monotonic()
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        engine = int(process.stdout.readline())
        assert process.wait() == 1
    assert time.monotonic() - began < 30
    assert not Path(f"/proc/{engine}").exists()


def test_the_facts_are_plain_values(agent: Agent) -> None:
    facts = agent.facts()
    assert json.loads(json.dumps(facts)) == facts
    assert facts["cpus"]


def test_it_needs_nothing_of_weir_on_its_node() -> None:
    # The agent's pickled code must not refer to a module that only weir has.
    script = """
import sys
from ray import cloudpickle
from weir.cluster import agent
cloudpickle.register_pickle_by_value(agent)
sys.stdout.buffer.write(cloudpickle.dumps(agent.Agent))
"""
    pickled = subprocess.check_output([sys.executable, "-c", script])
    loads = "import sys, pickle; sys.modules['weir'] = None; print(pickle.load(sys.stdin.buffer)(1e9).now_ns() > 0)"
    assert subprocess.check_output([sys.executable, "-c", loads], input=pickled) == b"True\n"
