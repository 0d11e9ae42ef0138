import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from weir.model.errors import UsageError
from weir.model.requirements import UnmetRequirement
from weir.stacks import toolchain as tools
from weir.stacks.manifest import read_manifest
from weir.stacks.toolchain import Tool, build_base_environment, detect_runtime, find_tool, find_unmet_needs


@pytest.fixture(autouse=True)
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose PATH has only the files in `bin`, and whose JDKs are the folders in `jvm`; tests fill both."""
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(tools, "build_search_path", lambda: str(tmp_path / "bin"))
    monkeypatch.setattr(tools, "_JDK_FOLDERS", (str(tmp_path / "jvm"),))


def program(path: Path, said: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{said}'\n")
    path.chmod(0o755)
    return path


def jdk(home: Path, version: str) -> Path:
    for tool in ("java", "javac"):
        program(home / "bin" / tool, f"{tool} {version} 2026-01-01")
    return home


@pytest.mark.parametrize(
    ("said", "need", "met"),
    [
        ("v20.19.1", "thing>=20", True),
        ("thing 1.9", "thing>=1.10", False),
        ("thing 1.10", "thing>=1.9", True),
        ("thing version go1.22.4 linux", "thing>=1.22", True),
        ("thing 17", "thing>=17.0", True),
        ("no number", "thing>=1", False),
        ("\x1b[1mApache thing 3.8.7\x1b[m", "thing>=3.6", True),
        ("no number", "thing", True),
    ],
)
def test_a_need_with_a_version_is_met_by_that_version_and_newer_ones(
    tmp_path: Path, said: str, need: str, met: bool
) -> None:
    program(tmp_path / "bin" / "thing", said)
    assert isinstance(find_tool(need), Tool) is met


def test_a_tool_that_is_too_old_is_named_with_the_version_that_was_found(tmp_path: Path) -> None:
    where = program(tmp_path / "bin" / "thing", "thing 2.1 of 2020")
    (unmet,) = find_unmet_needs(["thing>=3", "thing>=2", "thing"])
    assert str(unmet) == f"thing>=3, found 2.1 ({where})"


def test_the_oldest_installed_jdk_that_will_do_is_taken_where_the_path_holds_none(tmp_path: Path) -> None:
    homes = {version: jdk(tmp_path / "jvm" / f"jdk-{version}", version) for version in ("25", "9.0.4", "21.0.2")}
    environment = build_base_environment(["java>=21", "javac>=17"])
    assert environment["JAVA_HOME"] == str(homes["21.0.2"])
    assert environment["PATH"].split(os.pathsep)[0] == str(homes["21.0.2"] / "bin")
    assert find_tool("java>=22") == Tool(homes["25"] / "bin" / "java")


def test_the_jdk_of_the_path_is_taken_before_an_installed_one_and_that_of_java_home_before_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jdk(tmp_path / "jvm" / "jdk-21", "21")
    jdk(tmp_path, "17.0.15")
    assert "JAVA_HOME" not in build_base_environment(["java>=17"])
    assert build_base_environment(["java>=17"])["PATH"] == str(tmp_path / "bin")
    chosen = jdk(tmp_path / "chosen", "25")
    monkeypatch.setenv("JAVA_HOME", str(chosen))
    assert build_base_environment(["java>=17"])["JAVA_HOME"] == str(chosen)


def test_a_java_home_that_is_too_old_is_passed_over_and_not_handed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(jdk(tmp_path / "old", "11.0.2")))
    newer = jdk(tmp_path / "jvm" / "jdk-25", "25.0.1")
    assert build_base_environment(["java>=21"])["JAVA_HOME"] == str(newer)


def test_without_a_jdk_that_will_do_the_one_that_there_is_is_named(tmp_path: Path) -> None:
    assert find_tool("java>=21") == UnmetRequirement("java>=21")
    old = jdk(tmp_path / "jvm" / "jdk-17", "17.0.15")
    assert str(find_tool("java>=21")) == f"java>=21, found 17.0.15 ({old / 'bin' / 'java'})"


def test_a_runtime_without_a_compiler_does_not_pass_for_a_jdk(tmp_path: Path) -> None:
    jdk(tmp_path / "bin" / "..", "17.0.1")
    (tmp_path / "bin" / "javac").unlink()
    assert isinstance(find_tool("java>=17"), Tool)
    assert find_tool("javac>=17") == UnmetRequirement("javac>=17")


def test_what_runs_a_process_is_asked_and_a_program_that_runs_by_itself_is_not(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as run_by_python:
        assert detect_runtime(run_by_python.pid) == f"Python {platform.python_version()}"
        run_by_python.communicate(b"\n")
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as by_itself:
        assert detect_runtime(by_itself.pid) == ""
        by_itself.communicate()
    assert detect_runtime(by_itself.pid) == ""


def test_a_stack_does_not_inherit_variables_that_tune_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEB_CONCURRENCY", "9")
    monkeypatch.setenv("UV_CACHE_DIR", "/somewhere")
    environment = build_base_environment()
    assert "WEB_CONCURRENCY" not in environment
    assert environment["UV_CACHE_DIR"] == "/somewhere"


@pytest.mark.parametrize("need", ["java>21", "java >= 21", "", "java>=new", "-rf"])
def test_a_need_that_says_nothing_is_refused_with_what_was_expected(tmp_path: Path, need: str) -> None:
    manifest = tmp_path / "thing" / "stack.toml"
    manifest.parent.mkdir()
    manifest.write_text(
        f"""
schema = 1
id = "thing"
title = "Thing"
model = "none"
[build]
command = "true"
needs = ["{need}"]
[run]
command = ["serve", "{{port}}"]
[serves]
hello = {{}}
"""
    )
    with pytest.raises(UsageError, match=r"stack\.toml: build\.needs: found .*expected a tool such as 'mvn'"):
        read_manifest(manifest)
