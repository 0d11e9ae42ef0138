"""Runs the output of `weir convert` on a real server; the number of requests must be that of the tool."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.end_to_end.conftest import Weir
from weir.store import RunReader

JMX = Path(__file__).parents[2] / "studies/jmeter/mvc-vs-webflux-ping.jmx"


def load_line(text: str) -> list[str]:
    """Returns the line `weir load …` from the comment at the top."""
    (line,) = (line for line in text.splitlines() if line.startswith("# weir load "))
    return shlex.split(line.removeprefix("# weir "))


def test_a_test_plan_runs_as_a_scenario(tmp_path: Path, weir: Weir, serve: Callable[..., str]) -> None:
    host, _, port = serve("null").partition(":")
    properties = ["-Jthreads=20", "-Jramp=1", "-Jloops=5", f"-Jhost={host}", f"-Jport={port}"]
    done = weir("convert", "-o", "ping.toml", "jmx", JMX, *properties)
    assert done.returncode == 0, done.stderr
    done = weir(*load_line((tmp_path / "ping.toml").read_text()), "--json", "-")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["requests"]["ok"] == 20 * 5


@pytest.mark.parametrize(
    ("line", "requests"),
    [("ab -n 120 -c 10 http://{}/item?a=1", 120), ("hey -n 205 -c 10 -m POST -d hello http://{}/item", 200)],
)
def test_a_command_line_runs_as_weir_load_and_as_a_study(
    line: str, requests: int, tmp_path: Path, weir: Weir, serve: Callable[..., str]
) -> None:
    # The server is so slow that no generator is the limit.
    words = line.format(serve("delay", "--wait", "5ms")).split()
    done = weir("convert", "--command", *words)
    assert done.returncode == 0, done.stderr
    command = shlex.split(done.stdout.splitlines()[-1])
    done = weir(*command[1:], "--json", "-")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["requests"]["ok"] == requests

    done = weir("convert", *words)
    assert done.returncode == 0, done.stderr
    (tmp_path / "study.toml").write_text(done.stdout.replace("blocks = 4", "blocks = 2\nwarmup_s = 0.1\npause_s = 0"))
    done = weir("run", "study.toml", "--out", "out")
    assert done.returncode == 0, done.stderr
    assert "2 trials (2 blocks of 1): at most " in done.stderr
    with RunReader(tmp_path / "out" / "run.weir") as reader:
        counts = [
            trial.result.summary.requests.ok for trial in reader.trials() if trial.result and trial.result.summary
        ]
    # Two trials, and further ones that were tried again.
    assert len(counts) >= 2
    assert set(counts) == {requests}


def test_a_recording_runs_as_a_scenario_with_its_token_and_a_secret_of_the_environment(
    tmp_path: Path, weir: Weir, serve: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    body = json.dumps({"order": "Zk81kd93ma", "password": "recorded-pw-1"})
    host = serve("echo")

    def entry(path: str, text: str) -> dict[str, object]:
        request = {"method": "POST", "url": f"http://{host}{path}", "headers": [], "postData": {"text": text}}
        answer = {"status": 200, "headers": [], "content": {"mimeType": "application/json", "text": text}}
        return {"startedDateTime": f"2026-03-01T10:00:0{len(path)}Z", "time": 5, "request": request, "response": answer}

    entries = [entry("/a", body), entry("/bb", json.dumps({"order": "Zk81kd93ma"}))]
    (tmp_path / "shop.har").write_text(json.dumps({"log": {"entries": entries}}))
    done = weir("convert", "har", "shop.har", "-o", "scenario.toml")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "scenario.toml").read_text()
    assert "recorded-pw-1" not in text
    assert "{{order}}" in text
    line = load_line(text)
    done = weir(*line, "-n", "40", "--out", "kept.weir")
    assert done.returncode == 2
    assert "PASSWORD: steps[0].body" in done.stderr
    monkeypatch.setenv("PASSWORD", "given-at-run-time")
    done = weir(*line, "-n", "40", "--json", "-", "--out", "kept.weir")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["requests"]["ok"] == 40
    assert b"given-at-run-time" not in (tmp_path / "kept.weir").read_bytes()
