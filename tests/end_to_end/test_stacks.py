"""`weir stacks` and `weir doctor` as a user meets them."""

import json
import os
import signal
import socket
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest
import typer

from tests.end_to_end.conftest import END_S, StartWeir, Study, Weir, servers_of
from tests.end_to_end.ordeal import pids_of
from weir.cli import stacks as cli_stacks
from weir.stacks.manifest import read_stack

pytestmark = pytest.mark.usefixtures("stacks")


def test_the_list_names_every_stack_with_what_it_serves_and_what_its_variants_lack_beyond_it(
    stacks: Path, weir: Weir
) -> None:
    manifest = stacks / "slow" / "stack.toml"
    needs = '[build]\ncommand = "true"\nneeds = ["no-such-tool"]\n[variants.new]\nneeds = ["no-such-tool>=2"]\n[variants.old]\n'
    manifest.write_text(manifest.read_text() + needs)
    listed = {stack["id"]: stack for stack in json.loads(weir("stacks", "list", "--json").stdout)}
    assert listed["fastapi-uvicorn"]["serves"] == ["hello", "echo"]
    assert listed["good"]["missing"] == []
    assert (listed["slow"]["missing"], listed["slow"]["missing_of_variants"]) == (
        ["no-such-tool"],
        {"new": ["no-such-tool>=2"]},
    )
    lines = weir("stacks", "list").stdout.splitlines()
    assert any(line.startswith("spring-webflux-r2dbc-pg ") for line in lines), "names are whole on a narrow terminal"


def test_a_check_says_of_every_stack_whether_it_answers_right(tmp_path: Path, weir: Weir) -> None:
    done = weir("stacks", "check", "good", "answers-wrong", "--json")
    assert done.returncode == 3
    good, wrong = json.loads(done.stdout)
    assert (good["ok"], good["problem"]) == (True, None)
    assert good["workloads"] == ["hello"]
    assert good["answered"] > 0
    assert good["compared"] > 0
    assert not wrong["ok"]
    assert "wrong response" in wrong["problem"]
    assert servers_of(tmp_path) == []


@pytest.mark.parametrize(
    "name",
    [
        "socket-select",
        pytest.param("node-fastify", marks=pytest.mark.needs("node")),
        pytest.param("go-net-http", marks=[pytest.mark.needs("go"), pytest.mark.thorough]),
        pytest.param("spring-webflux", marks=[pytest.mark.needs("javac", "mvn"), pytest.mark.thorough]),
        pytest.param("rust-axum", marks=pytest.mark.thorough),
    ],
)
def test_a_stack_of_each_language_is_built_from_nothing_and_passes(weir: Weir, name: str) -> None:
    done = weir("stacks", "check", name, timeout_s=600)
    assert done.returncode == 0, done.stdout
    assert f"{name:<28} right: hello" in done.stdout


@pytest.mark.needs("go")
def test_a_compiled_stack_is_built_once_and_passes(weir: Weir, monkeypatch: pytest.MonkeyPatch) -> None:
    # The user's cache keeps the build for later runs of this test.
    monkeypatch.delenv("WEIR_CACHE")
    done = weir("stacks", "check", "go-net-http")
    assert done.returncode == 0, done.stdout
    assert "building go-net-http" not in weir("stacks", "check", "go-net-http").stderr


@pytest.mark.parametrize("arguments", [(), ("good", "--all")])
def test_a_check_of_nothing_or_of_some_and_all_says_what_it_expects(weir: Weir, arguments: tuple[str, ...]) -> None:
    done = weir("stacks", "check", *arguments)
    assert done.returncode == 2
    assert "expected names of stacks, or --all" in done.stderr


@pytest.mark.parametrize(
    ("mode", "problem"),
    [
        ("wrong-now-and-then", "under load: workload hello: GET /: wrong response: body: found 'goodbye'"),
        pytest.param("ignores-sigterm", "it ignored SIGTERM: weir killed it after 5 s", marks=pytest.mark.thorough),
        ("leaves-processes", "it ended and left processes behind: sleep"),
        ("fails-under-load", "requests failed (check "),
        pytest.param("starts-late", "not ready within 20 s: GET /: ", marks=pytest.mark.soak),
    ],
)
def test_a_check_finds_a_stack_that_misbehaves_now_and_then_or_in_the_end(
    tmp_path: Path, weir: Weir, mode: str, problem: str
) -> None:
    done = weir("stacks", "check", mode)
    assert done.returncode == 3
    assert problem in done.stdout
    assert "log: " in done.stdout
    assert servers_of(tmp_path) == []


@pytest.mark.soak
@pytest.mark.parametrize(("mode", "is_right"), [("answers-wrong", True), ("good", False), ("ignores-sigterm", False)])
def test_a_check_of_all_passes_a_stack_that_is_flawed_on_purpose_only_where_a_wrong_answer_is_found(
    stacks: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], mode: str, is_right: bool
) -> None:
    manifest = stacks / mode / "stack.toml"
    manifest.write_text(manifest.read_text() + "[variants.flawed]\nanswers_wrong = true\n")
    monkeypatch.setattr(cli_stacks, "read_all_stacks", lambda: [read_stack(f"{mode}[flawed]")])
    with nullcontext() if is_right else pytest.raises(typer.Exit):
        cli_stacks.check(all_=True, json_=True)
    (checked,) = json.loads(capsys.readouterr().out)
    assert checked["ok"] is is_right
    assert checked["problem"]


@pytest.mark.skipif(os.geteuid() != 0, reason="who is not root is not told of other processes' files")
def test_a_check_names_the_files_that_a_stack_leaves_outside_its_folder(tmp_path: Path, weir: Weir) -> None:
    done = weir("stacks", "check", "writes-elsewhere")
    assert done.returncode == 3
    assert (
        f"it wrote files outside its folder and left them there: {tmp_path / 'elsewhere'}; expected none" in done.stdout
    )


def test_a_started_stack_can_be_loaded_and_ends_with_ctrl_c(
    tmp_path: Path, start_weir: StartWeir, weir: Weir, free_port: Callable[[], int]
) -> None:
    port = free_port()
    process = start_weir("stacks", "start", "good", "--port", str(port))
    assert process.stdout is not None
    assert f"good listens on http://127.0.0.1:{port}/" in process.stdout.readline()
    watch = process.stdout.readline().split()
    assert weir(*watch[1:], "-d", "300ms", "-c", "2").returncode == 0
    assert servers_of(tmp_path)
    process.send_signal(signal.SIGINT)
    assert process.wait(END_S) == 0
    assert servers_of(tmp_path) == []


def test_a_started_stack_that_ends_is_told_of(tmp_path: Path, start_weir: StartWeir) -> None:
    process = start_weir("stacks", "start", "good")
    assert process.stdout is not None
    assert "good listens on" in process.stdout.readline()
    for pid in servers_of(tmp_path):
        os.kill(pid, signal.SIGKILL)
    assert process.wait(END_S) == 3
    process = start_weir("stacks", "start", "good")
    assert process.stdout is not None
    assert "good listens on" in process.stdout.readline()
    os.kill(pids_of("host", process.pid)[0], signal.SIGKILL)
    assert process.wait(END_S) == 3


def test_a_port_in_use_is_named_with_the_command_that_shows_by_whom(weir: Weir) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = weir("stacks", "start", "good", "--port", str(port))
    assert done.returncode == 3
    assert f"--port: {port}: Address already in use" in done.stderr
    assert "ss -ltnp" in done.stderr


def test_a_missing_toolchain_ends_a_run_before_anything_is_measured(stacks: Path, weir: Weir, study: Study) -> None:
    manifest = stacks / "other" / "stack.toml"
    manifest.write_text(manifest.read_text() + '[build]\ncommand = "true"\nneeds = ["no-such-tool"]\n')
    done = weir("run", study("good", "other"), "--out", "out")
    assert done.returncode == 2
    assert "other: needs no-such-tool, not found on the PATH" in done.stderr
    assert "weir doctor" in done.stderr
    assert "trial 1" not in done.stderr


def test_the_doctor_names_what_is_missing_and_who_needs_it(stacks: Path, weir: Weir) -> None:
    manifest = stacks / "other" / "stack.toml"
    manifest.write_text(manifest.read_text() + '[build]\ncommand = "true"\nneeds = ["no-such-tool"]\n')
    done = weir("doctor", "--json")
    assert done.returncode == 0, done.stdout
    found = {finding["what"]: finding for finding in json.loads(done.stdout)}
    assert found["weir-engine"]["ok"]
    assert not found["no-such-tool"]["ok"]
    assert found["no-such-tool"]["needed_by"] == "other"
    assert found["no-such-tool"]["remedy"]


def test_the_doctor_has_a_command_for_every_runtime_that_is_missing(
    tmp_path: Path, weir: Weir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = {finding["what"].partition(">=")[0]: finding for finding in json.loads(weir("doctor", "--json").stdout)}
    for tool in ("mvn", "go", "cargo"):
        assert not found[tool]["ok"]
        assert found[tool]["remedy"].startswith(("apt-get install ", "rustup "))
        assert found[tool]["needed_by"]


def test_a_run_leaves_out_what_it_cannot_run_where_it_may_and_resumes_without_it(
    stacks: Path, tmp_path: Path, weir: Weir, study: Callable[..., Path]
) -> None:
    manifest = stacks / "slow" / "stack.toml"
    manifest.write_text(manifest.read_text() + '[build]\ncommand = "true"\nneeds = ["no-such-tool"]\n')
    done = weir("run", study("good", "other", "slow"), "--out", "out", "--skip-missing")
    assert done.returncode == 0, done.stderr
    assert "slow is left out: it needs no-such-tool, not found on the PATH" in done.stderr
    again = weir("run", "--resume", "out")
    assert again.returncode == 0, again.stderr
    assert again.stdout == done.stdout


def test_weir_alone_shows_commands_that_exist(weir: Weir) -> None:
    shown = weir().stdout
    commands = {line.split()[1] for line in shown.splitlines() if line.startswith("  weir ")}
    assert commands == {"demo", "stacks", "load", "run", "report", "capacity", "gate", "ui", "audit", "doctor"}
    for command in commands:
        assert weir(command, "--help").returncode == 0
