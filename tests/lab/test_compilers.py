"""Where a runtime's compilers work while a stack is primed."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from weir.lab.compilers import compilers_aside
from weir.model.run import Placement
from weir.stacks.tools import Tool, find_tool

WAITS = "class Waits { public static void main(String[] none) throws Exception { System.out.println(); System.in.read(); } }"
"""A program that says when it runs, and ends when its standard input is closed."""
STARTS_ONE_THAT_WAITS = """
import subprocess, sys, threading
ours = f"/proc/self/task/{threading.get_native_id()}/comm"
if len(sys.argv) == 1:
    subprocess.run([sys.executable, __file__, "below"])
else:
    open(ours, "w").write("C2 CompilerThre")
    print(flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def two_cpus() -> tuple[int, int]:
    """Two CPUs that this process may use."""
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) < 2:
        pytest.skip("needs two CPUs")
    return usable[0], usable[1]


@contextmanager
def bound(cpu: int, *command: str | Path) -> Iterator[int]:
    """The PID of a program that runs on one CPU and has said that it does."""
    with subprocess.Popen(
        ["taskset", "-c", str(cpu), *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdout.readline()
            yield process.pid
        finally:
            process.stdin.close()


def cpus_by_thread(pid: int) -> dict[str, list[set[int]]]:
    """The CPUs of the threads of a process, by their names."""
    found: dict[str, list[set[int]]] = {}
    for thread in Path(f"/proc/{pid}/task").iterdir():
        found.setdefault((thread / "comm").read_text().strip(), []).append(os.sched_getaffinity(int(thread.name)))
    return found


def compilers(threads: dict[str, list[set[int]]]) -> list[set[int]]:
    return [cpus for name, each in threads.items() if "Compiler" in name for cpus in each]


@pytest.mark.needs("taskset")
@pytest.mark.parametrize("jdk", ["java>=17", "java>=25"])
def test_the_compilers_of_a_jvm_leave_its_cpu_while_it_is_primed_and_come_back(tmp_path: Path, two_cpus: tuple[int, int], jdk: str) -> None:
    java = find_tool(jdk)
    if not isinstance(java, Tool):
        pytest.skip(f"{java}: apt-get install openjdk-17-jdk-headless, or a newer one")
    source = tmp_path / "Waits.java"
    source.write_text(WAITS)
    beside, own = two_cpus
    with bound(own, java.path, "-XX:ActiveProcessorCount=1", source) as pid:
        with compilers_aside([pid], Placement(load=(beside,), stack=(own,), services=(), control=(beside,))):
            primed = cpus_by_thread(pid)
        after = cpus_by_thread(pid)
    assert len(compilers(primed)) >= 2
    assert all(cpus == {beside} for cpus in compilers(primed))
    assert all(cpus == {own} for name, each in primed.items() if "Compiler" not in name for cpus in each)
    assert all(cpus == {own} for each in after.values() for cpus in each)


@pytest.mark.needs("taskset")
def test_the_compilers_of_what_a_stack_started_are_found_too(tmp_path: Path, two_cpus: tuple[int, int]) -> None:
    program = tmp_path / "above.py"
    program.write_text(STARTS_ONE_THAT_WAITS)
    beside, own = two_cpus
    with bound(own, sys.executable, program) as pid:
        below = int(Path(f"/proc/{pid}/task/{pid}/children").read_text())
        with compilers_aside([pid], Placement(load=(beside,), stack=(own,), services=(), control=(beside,))):
            assert cpus_by_thread(below) == {"C2 CompilerThre": [{beside}]}
        assert cpus_by_thread(below) == {"C2 CompilerThre": [{own}]}


@pytest.mark.needs("taskset")
def test_compilers_stay_where_no_cpu_is_beside_the_stacks(tmp_path: Path) -> None:
    program = tmp_path / "above.py"
    program.write_text(STARTS_ONE_THAT_WAITS)
    own = min(os.sched_getaffinity(0))
    with (
        bound(own, sys.executable, program, "alone") as pid,
        compilers_aside([pid], Placement(load=(own,), stack=(own,), services=(), control=(own,))),
    ):
        assert cpus_by_thread(pid) == {"C2 CompilerThre": [{own}]}


def test_processes_that_are_gone_or_belong_to_nobody_are_passed_over() -> None:
    with compilers_aside([2**22 + 1], Placement(load=(0,), stack=(1,), services=(), control=(0,))):
        pass
