"""Tests the priority of JIT compilers during a warm-up."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from weir.lab.jit_priority import prioritize_jit_threads
from weir.stacks.toolchain import Tool, find_tool

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="a higher priority takes root")
WAITS = "class Waits { public static void main(String[] none) throws Exception { System.out.println(); System.in.read(); } }"
"""A program that prints a line when it runs, and ends when its standard input is closed."""
STARTS_ONE_THAT_WAITS = """
import subprocess, sys, threading
def compile():
    open(f"/proc/self/task/{threading.get_native_id()}/comm", "w").write("C2 CompilerThre")
    print(flush=True)
    sys.stdin.read()
if len(sys.argv) == 1:
    subprocess.run([sys.executable, __file__, "below"])
else:
    threading.Thread(target=compile).start()
"""


@contextmanager
def running(*command: str | Path) -> Iterator[int]:
    """Starts a program and yields its process id after its first line."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdout.readline()
            yield process.pid
        finally:
            process.stdin.close()


def niceness(pid: int, *, compilers: bool) -> set[int]:
    """Returns the nice values of a process's compiler threads, or of its other threads."""
    found = set()
    for thread in Path(f"/proc/{pid}/task").iterdir():
        # A JVM ends compiler threads that have nothing to do.
        with suppress(OSError):
            if ("Compiler" in (thread / "comm").read_text()) == compilers:
                found.add(os.getpriority(os.PRIO_PROCESS, int(thread.name)))
    assert found
    return found


@pytest.fixture
def own() -> int:
    """The nice value of this process and its children."""
    return os.getpriority(os.PRIO_PROCESS, 0)


@as_root
@pytest.mark.parametrize("jdk", ["java>=17", "java>=25"])
def test_the_compilers_of_a_jvm_go_first_while_it_is_warmed_up_and_are_as_they_were_afterwards(
    tmp_path: Path, jdk: str, own: int
) -> None:
    java = find_tool(jdk)
    if not isinstance(java, Tool):
        pytest.skip(f"{java}: apt-get install openjdk-17-jdk-headless, or a newer one")
    source = tmp_path / "Waits.java"
    source.write_text(WAITS)
    with running(java.path, source) as pid:
        with prioritize_jit_threads([pid]):
            assert niceness(pid, compilers=True) == {-10}
            assert niceness(pid, compilers=False) == {own}
        assert niceness(pid, compilers=True) == niceness(pid, compilers=False) == {own}


@as_root
def test_the_compilers_of_what_a_stack_started_are_found_too(tmp_path: Path, own: int) -> None:
    program = tmp_path / "above.py"
    program.write_text(STARTS_ONE_THAT_WAITS)
    with running(sys.executable, program) as pid:
        below = int(Path(f"/proc/{pid}/task/{pid}/children").read_text())
        with prioritize_jit_threads([pid]):
            assert niceness(below, compilers=True) == {-10}
        assert niceness(below, compilers=True) == {own}


def test_what_is_gone_or_may_not_be_changed_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(which: int, who: int, niceness: int) -> None:
        raise PermissionError(which, who, niceness)

    monkeypatch.setattr(os, "setpriority", refuse)
    program = tmp_path / "above.py"
    program.write_text(STARTS_ONE_THAT_WAITS)
    with running(sys.executable, program, "alone") as pid, prioritize_jit_threads([pid, 2**22 + 1]):
        assert niceness(pid, compilers=True) != {-10}


@as_root
def test_a_thread_that_ended_hides_no_compiler_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: int
) -> None:
    program = tmp_path / "above.py"
    program.write_text(STARTS_ONE_THAT_WAITS)
    read_text = Path.read_text

    def read(path: Path) -> str:
        # The main thread, which is the first one, is as one that has just ended.
        if path == Path(f"/proc/{pid}/task/{pid}/children"):
            raise FileNotFoundError(path)
        return read_text(path)

    with running(sys.executable, program, "alone") as pid:
        monkeypatch.setattr(Path, "read_text", read)
        with prioritize_jit_threads([pid]):
            assert niceness(pid, compilers=True) == {-10}
        assert niceness(pid, compilers=True) == {own}


@pytest.mark.parametrize("given_up", ["pass", pytest.param("os.setuid(65534)", marks=as_root)])
def test_whether_compilers_may_go_first_is_what_the_kernel_says_to_this_process(given_up: str, own: int) -> None:
    tries = f"""
import os, weir.lab.jit_priority as compilers
{given_up}
print(compilers.can_raise_priority(), os.getpriority(os.PRIO_PROCESS, 0), flush=True)
os.setpriority(os.PRIO_PROCESS, 0, -10)
"""
    asked = subprocess.run([sys.executable, "-c", tries], capture_output=True, text=True, check=False)
    assert asked.stdout.split() == [str(asked.returncode == 0), str(own)]
