"""Follows docs/tutorial.md from an empty folder, with shorter loads and fewer blocks."""

import os
import re
import shlex
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.end_to_end import conftest as end_to_end
from tests.support.markdown import Block, blocks

start_weir = end_to_end.start_weir
weir = end_to_end.weir

SECTIONS = re.split(r"^## ", (REPOSITORY / "docs" / "tutorial.md").read_text(), flags=re.MULTILINE)[1:]
SHORTER = {
    "-d 5s": "-d 500ms",
    "--no-keepalive": "--no-keepalive -d 500ms --warmup 200ms --budget 9s",
    "duration_s = 3": "duration_s = 0.5",
    "blocks = 4": "blocks = 2",
    "warmup_s = 1": "warmup_s = 0.2\npause_s = 0.2\nextension_s = 0\nretries = 5",
}


class Reader:
    """A reader who follows the tutorial in a folder."""

    def __init__(
        self,
        folder: Path,
        environment: pytest.MonkeyPatch,
        start: end_to_end.StartWeir,
        weir: end_to_end.Weir,
        port: int,
    ) -> None:
        self.folder = folder
        self.printed: dict[str, str] = {}
        """The tutorial's printed output by command."""
        self._environment = environment
        self._start = start
        self._weir = weir
        self._here = {"127.0.0.1:8000": f"127.0.0.1:{port}", "--port 8000": f"--port {port}"}

    def follow(self, section: str) -> None:
        """Makes the files and runs the commands of a section in their order; stops its server in the end."""
        servers = []
        for block in blocks(section):
            if block.file is not None:
                self._write(block)
            elif block.language == "sh":
                for line in block.code.splitlines():
                    match shlex.split(os.path.expandvars(self._translated(line)), comments=True):
                        case ["export", assignment]:
                            self._environment.setenv(*assignment.split("=", 1))
                        case ["weir", "stacks", "start", *rest]:
                            server = self._start("stacks", "start", *rest)
                            servers.append(server)
                            assert server.stdout is not None
                            pid = re.search(r"listens on .* \(PID (\d+),", server.stdout.readline())
                            assert pid is not None
                            self._here["PID"] = pid[1]
                        case ["weir", *rest]:
                            done = self._weir(*rest)
                            # Depends on the machine: whether an objective is met, and whether a trial counts.
                            allowed = {0, 1} if "--objective" in rest else {0, 4} if rest[0] == "compare" else {0}
                            assert done.returncode in allowed, (line, done.stdout, done.stderr)
                            self.printed[line] = done.stdout
                        case words:
                            pytest.fail(f"the tutorial has a command that this test does not know: {words}")
        for server in servers:
            server.send_signal(signal.SIGINT)
            server.communicate(timeout=200)
            assert server.returncode == 0

    def _write(self, block: Block) -> None:
        path = self.folder / str(block.file)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self._translated(block.code))

    def _translated(self, text: str) -> str:
        for printed, other in {**self._here, **SHORTER}.items():
            text = text.replace(printed, other)
        return text


def test_every_step_of_the_tutorial_works(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    start_weir: end_to_end.StartWeir,
    weir: end_to_end.Weir,
    free_port: Callable[[], int],
) -> None:
    for name, value in {"PWD": str(tmp_path), "WEIR_CACHE": str(tmp_path / "cache"), "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("WEIR_STACKS", raising=False)
    reader = Reader(tmp_path, monkeypatch, start_weir, weir, free_port())
    # This test needs no setup by the first block, because it already has the environment.
    before, set_up, rest = SECTIONS[0].partition(blocks(SECTIONS[0])[0].code)
    assert set_up.splitlines()[:2] == ["make setup", 'export PATH="$PWD/.venv/bin:$PATH"']
    for section in [before.rpartition("```")[0] + rest.partition("```")[2], *SECTIONS[1:]]:
        reader.follow(section)
    assert "verdict: " in reader.printed["weir load http://127.0.0.1:8000/ -c 20 -d 5s --watch PID"]
    assert (tmp_path / "first.html").is_file()
    (compared,) = (text for line, text in reader.printed.items() if line.startswith("weir compare"))
    assert "CPU µs/req" in compared
    assert "right: hello" in reader.printed["weir stacks check tiny"]
    assert "block 4" not in reader.printed["weir study check tiny.toml"]
    answer = reader.printed["weir run tiny.toml"]
    assert "What does http.server cost over bare sockets?" in answer
    assert re.search(r"^http\.server +\d", answer, re.MULTILINE)
    assert "indicative" in answer
    assert reader.printed["weir report runs/tiny-1"] == answer
    assert reader.printed["weir findings runs/tiny-1"]
    assert (tmp_path / "runs" / "tiny-1" / "report.html").is_file()


def test_everything_that_the_test_shortens_is_in_the_tutorial() -> None:
    text = "\n".join(SECTIONS)
    assert [printed for printed in SHORTER if printed not in text] == []


def test_the_fair_other_side_is_one(repository: Path) -> None:
    # In both servers the same number of connections may wait.
    manifest = (repository / "stacks" / "python" / "socket-thread" / "stack.toml").read_text()
    assert "backlog = { default = 128" in manifest
    assert "request_queue_size = 128" in "\n".join(SECTIONS)
