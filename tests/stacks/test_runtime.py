"""Tests how many CPUs real runtimes see if they get their CPUs in the way of a stack's processes."""

import doctest
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from weir.stacks import runtime
from weir.stacks.manifest import read_manifest
from weir.stacks.runtime import Runtime, add_cpu_environment

COUNT_JAVA = "class Count { public static void main(String[] a) { System.out.println(Runtime.getRuntime().availableProcessors()); } }"
COUNT_GO = 'package main\nimport ("os"; "runtime"; "strconv")\nfunc main() { os.Stdout.WriteString(strconv.Itoa(runtime.GOMAXPROCS(0))) }\n'
TOLD = 7
"""More CPUs than this machine's affinity allows, so a runtime cannot find this number by itself."""


def seen(command: list[str], of: Runtime | None, **own: str) -> int:
    tool = shutil.which(command[0])
    if tool is None:
        pytest.skip(f"{command[0]} is not on the PATH")
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    environment = {**kept, **add_cpu_environment(own, of, TOLD)}
    done = subprocess.run([tool, *command[1:]], env=environment, capture_output=True, text=True, timeout=60, check=True)
    return int(done.stdout)


def test_the_examples_in_the_docstrings_hold() -> None:
    found = doctest.testmod(runtime)
    assert found.attempted > 0
    assert found.failed == 0


def test_a_jvm_sees_the_cpus_that_it_is_told_unless_its_stack_says_otherwise(tmp_path: Path) -> None:
    source = tmp_path / "Count.java"
    source.write_text(COUNT_JAVA)
    assert seen(["java", str(source)], "jvm") == TOLD
    assert seen(["java", "-XX:ActiveProcessorCount=3", str(source)], "jvm") == 3
    assert seen(["java", str(source)], "jvm", JAVA_TOOL_OPTIONS="-XX:ActiveProcessorCount=2") == 2


def test_node_gets_a_thread_pool_of_the_cpus_that_it_is_told_and_sees_those_that_it_is_bound_to() -> None:
    assert seen(["node", "-p", "process.env.UV_THREADPOOL_SIZE"], "node") == TOLD
    if shutil.which("taskset") is None:
        pytest.skip("taskset is not on the PATH")
    one = str(min(os.sched_getaffinity(0)))
    assert seen(["taskset", "-c", one, "node", "-p", "os.availableParallelism()"], "node") == 1


def test_python_sees_the_cpus_that_it_is_told() -> None:
    pythons = [sys.executable, *(str(path) for path in Path.home().glob(".pyenv/versions/3.1[3-9]*/bin/python"))]
    count = "import os, sys; print(os.process_cpu_count() if sys.version_info >= (3, 13) else os.environ['PYTHON_CPU_COUNT'])"
    for python in pythons:
        assert seen([python, "-c", count], "python") == TOLD
        assert seen([python, "-c", count], "python", PYTHON_CPU_COUNT="3") == 3


def test_a_go_program_runs_on_the_cpus_that_it_is_told(tmp_path: Path) -> None:
    source = tmp_path / "count.go"
    source.write_text(COUNT_GO)
    assert seen(["go", "run", str(source)], "go") == TOLD


@pytest.mark.parametrize(
    ("command", "needs", "said", "expected"),
    [
        ("java", "[]", "", "jvm"),
        ("venv/bin/sanic", '["uv"]', "", "python"),
        ("./server", '["go>=1.22"]', "", "go"),
        ("./server", "[]", "", None),
        ("./start.sh", '["mvn"]', 'runtime = "node"', "node"),
        ("java", "[]", 'runtime = "none"', None),
    ],
)
def test_a_manifest_says_its_runtime_or_its_command_and_needs_do(
    tmp_path: Path, command: str, needs: str, said: str, expected: Runtime | None
) -> None:
    path = tmp_path / "thing" / "stack.toml"
    path.parent.mkdir()
    path.write_text(
        f"""
schema = 1
id = "thing"
title = "Thing"
model = "one process"
[build]
command = "true"
needs = {needs}
[run]
command = ["{command}", "{{port}}"]
{said}
[serves]
hello = {{}}
"""
    )
    assert read_manifest(path).runtime == expected
