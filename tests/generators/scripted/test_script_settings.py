"""The settings in a user's script that weir looks for: pauses, and the length of a load with k6."""

import json
from pathlib import Path

import pytest

from weir.generators.scripted.script_settings import choose_k6_length, has_pauses


@pytest.mark.parametrize(
    ("tool", "text", "expected"),
    [
        ("k6", "export default () => { http.get(url); sleep(1) }", True),
        ("k6", "export default () => { http.get(url) }", False),
        ("locust", "class A(HttpUser):\n    wait_time = between(1, 2)", True),
        ("locust", "class A(HttpUser):\n    wait_time = constant(0)", False),
        ("jmeter", '<ConstantTimer testname="t" enabled="true">', True),
        ("jmeter", '<ConstantTimer testname="t" enabled="false">', False),
        ("jmeter", '<ThreadGroup enabled="true">', False),
        ("k6", 'http.get("http://a/"); sleep(1); // /*', True),
        ("k6", "http.get(url); // sleep(1)", False),
        ("k6", "/* sleep(1)\n sleep(2) */ http.get(url)", False),
        ("locust", "class A(HttpUser):\n    # wait_time = between(1, 2)", False),
        ("jmeter", '<!-- <ConstantTimer enabled="true"> -->', False),
        ("wrk", "sleep(1)", False),
    ],
)
def test_a_pause_is_found_in_the_text_of_a_script(tmp_path: Path, tool: str, text: str, expected: bool) -> None:
    script = tmp_path / "script"
    script.write_text(text)
    assert has_pauses(tool, script) is expected


def fake_k6(folder: Path, options: object) -> str:
    """Returns a program that prints `options` as k6's command `inspect` prints the options of a script."""
    program = folder / "k6"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps(options)}\nEND\n")
    program.chmod(0o755)
    return str(program)


@pytest.mark.parametrize(
    ("options", "arguments", "expected"),
    [
        ({"vus": None, "duration": None}, [], ["--vus", "20", "--duration", "1.5s"]),
        ({"vus": 3}, [], ["--duration", "1.5s"]),
        ({}, ["-u", "3"], ["--duration", "1.5s"]),
        ({}, ["--vus=3"], ["--duration", "1.5s"]),
        ({"duration": "2s"}, [], []),
        ({"iterations": 10}, [], []),
        ({"stages": [{"duration": "1s", "target": 2}]}, [], []),
        ({"scenarios": {"a": {"executor": "constant-vus"}}}, [], []),
        ({}, ["-d", "3s"], []),
        ({}, ["--iterations=3"], []),
        ({}, ["--stage", "1s:2"], []),
    ],
)
def test_k6_gets_users_and_a_duration_only_if_nothing_else_sets_the_length(
    tmp_path: Path, options: object, arguments: list[str], expected: list[str]
) -> None:
    program = fake_k6(tmp_path, options)
    assert choose_k6_length(program, "script.js", arguments, users="20", duration_s=1.5) == expected


def test_a_script_that_k6_cannot_read_gets_no_options(tmp_path: Path) -> None:
    assert choose_k6_length("/bin/false", "script.js", [], users="20", duration_s=1.5) == []
