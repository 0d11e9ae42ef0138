"""Tests programs that run on one CPU."""

import os
import sys
from pathlib import Path

import pytest

from bench import machine
from bench.machine import BenchError, run_on

CPU = min(os.sched_getaffinity(0))


def test_a_program_s_output_cpu_and_memory_are_read_off(tmp_path: Path) -> None:
    # The program runs long enough for several readings of its memory.
    script = "import time; held = bytearray(40_000_000); time.sleep(0.5); print('done')"
    finished = run_on(CPU, [sys.executable, "-c", script], tmp_path, 1)
    assert finished.output == "done\n"
    assert finished.cpu_user_s + finished.cpu_system_s > 0
    assert finished.peak_rss_bytes is not None
    assert finished.peak_rss_bytes > 40_000_000


def test_a_program_that_fails_is_an_error_with_its_own_words(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=r"ended with exit code 3: no such thing"):
        run_on(CPU, ["/bin/sh", "-c", "echo no such thing >&2; exit 3"], tmp_path, 1)


def test_a_program_that_hangs_is_ended_and_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "PATIENCE_S", 0.0)
    with pytest.raises(BenchError, match="did not end"):
        run_on(CPU, ["/bin/sh", "-c", f"echo $$ > {tmp_path}/pid; exec sleep 600"], tmp_path, 0.3)
    assert not running(int((tmp_path / "pid").read_text()))


def test_a_program_does_not_outlive_an_interrupt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []

    def interrupted(pid: int, limit_s: float) -> int | None:
        started.append(pid)
        raise KeyboardInterrupt

    monkeypatch.setattr(machine, "_watch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_on(CPU, ["sleep", "600"], tmp_path, 600)
    assert not running(started[0])


def running(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()
