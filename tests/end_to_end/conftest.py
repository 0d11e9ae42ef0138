"""Studies of real processes: small stacks that work or misbehave, and `weir` as a user runs it."""

import json
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.support.warm_weir import WarmServer, WarmWeir

MODES = (
    "good", "other", "never-listens", "dies-at-start", "never-answers", "answers-wrong", "dies-under-load",
    "fails-under-load", "slow", "slower", "slowest", "warms-up", "hoards-memory", "wrong-now-and-then", "starts-late",
    "ignores-sigterm", "leaves-processes", "writes-elsewhere", "one-at-a-time", "closes-once", "ends-slowly",
)  # fmt: skip
SERVER = Path(__file__).with_name("server.py")
END_S = 200.0
"""This long timeout only ends failed tests: a busy machine may take many times as long as an idle one."""

Study = Callable[..., Path]
Weir = Callable[..., "subprocess.CompletedProcess[str]"]
StartWeir = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def stacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes a folder with a stack for every mode that weir finds, and a cache of the test's own."""
    root = tmp_path / "stacks"
    for mode in MODES:
        folder = root / mode
        folder.mkdir(parents=True)
        (folder / "server.py").write_bytes(SERVER.read_bytes())
        (folder / "stack.toml").write_text(
            f"""
schema = 1
id = "{mode}"
title = "A server that is {mode}"
model = "thread per connection"
[run]
command = ["{{python}}", "server.py", "{{port}}", "{mode}", "{{host}}"]
env = {{ ELSEWHERE = "{tmp_path / "elsewhere"}" }}
ready = {{ path = "/", timeout_s = {2 if mode.startswith("never") else 20} }}
[serves]
hello = {{}}
"""
        )
    monkeypatch.setenv("WEIR_STACKS", str(root))
    monkeypatch.setenv("WEIR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_COLOR", "1")
    return root


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """Returns a function that writes a study of some stacks; the first one is the baseline.

    `matrix`, `load` and `method` are further lines of these tables, `rest` has further tables. weir repeats a trial in
    which the machine stood still, as in any study. It does so more often here, because tests run beside each other.
    """

    def write(
        *names: str, workloads: Sequence[str] = ("hello",), connections: str = "[4]", matrix: str = "", load: str = "", method: str = "",
        rest: str = "", blocks: int = 1, duration_s: float = 0.5, warmup_s: float = 0, aa: bool = False, retries: int = 5,
    ) -> Path:  # fmt: skip
        path = tmp_path / "mine.toml"
        path.write_text(
            f"""
schema = 1
title = "Mine"
question = "Which is better?"
[load]
duration_s = {duration_s}
timeout_s = 2
{load}
[method]
blocks = {blocks}
baseline = "{names[0]}"
{f'aa = "{names[0]}"' if aa else ""}
warmup_s = {warmup_s}
pause_s = 0
retries = {retries}
{method}
[matrix]
stacks = {json.dumps(names)}
workloads = {json.dumps(workloads)}
connections = {connections}
{matrix}
{rest}
"""
        )
        return path

    return write


@pytest.fixture
def start_weir(tmp_path: Path, warm_server: WarmServer) -> Iterator[StartWeir]:
    """Returns a function that starts `weir ARGUMENTS…` in the test's folder; kills processes that still run in the
    end."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str | Path) -> "subprocess.Popen[str]":
        process = WarmWeir(warm_server, list(map(str, arguments)), tmp_path)
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def weir(start_weir: StartWeir) -> Weir:
    """Returns a function that runs `weir ARGUMENTS…` to its end. No traceback may ever reach a user."""

    def run(*arguments: str | Path, timeout_s: float = END_S) -> "subprocess.CompletedProcess[str]":
        process = start_weir(*arguments)
        out, err = process.communicate(timeout=timeout_s)
        assert "Traceback" not in err, err
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    return run


def lives(pid: int) -> bool:
    """Returns whether a process runs. A zombie does not run."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def servers_of(folder: Path) -> list[int]:
    """Returns running servers that weir started from the cache in `folder`, found by their working directory."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                inside = (entry / "cwd").readlink().is_relative_to(folder / "cache")
            except OSError:
                continue
            if inside and lives(int(entry.name)):
                found.append(int(entry.name))
    return found
