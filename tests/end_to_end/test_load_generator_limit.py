"""Tests the generator's highest rate, measured after a load if the generator was busy. Here the engine pretends to be
busy."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.end_to_end.conftest import Weir
from weir.generators.null_server import measure_on_null_server
from weir.model.load import ClosedLoad, LoadPlan, OpenLoad, Request, Tls

Serve = Callable[..., str]

_ENGINE = """#!{python}
import os, signal, subprocess, sys
if sys.argv[1] != "load":
    os.execv({engine!r}, [{engine!r}, *sys.argv[1:]])
with subprocess.Popen([{engine!r}, *sys.argv[1:]], stdout=subprocess.PIPE, text=True) as load:
    signal.signal(signal.SIGTERM, lambda *_: load.terminate())
    for line in load.stdout:
        head, key, rest = line.partition('"busy_fraction":')
        print(head + key + "{busy}," + rest.partition(",")[2] if key else line, end="", flush=True)
sys.exit(load.returncode)
"""


@pytest.fixture
def engine_that_is_busy(tmp_path: Path, engine: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Returns a function that makes weir use an engine which reports this busy fraction."""

    def install(busy: float) -> None:
        path = tmp_path / "engine"
        path.write_text(_ENGINE.format(python=sys.executable, engine=str(engine), busy=busy))
        path.chmod(0o755)
        monkeypatch.setenv("WEIR_ENGINE", str(path))

    return install


def test_a_busy_generator_is_held_against_what_it_reaches_on_a_server_that_does_nothing(
    tmp_path: Path, weir: Weir, serve: Serve, engine_that_is_busy: Callable[[float], None]
) -> None:
    engine_that_is_busy(0.85)
    done = weir(
        "load",
        f"http://{serve('delay', '--wait', '20ms')}/",
        "-c",
        "4",
        "-d",
        "500ms",
        "--json",
        "r.json",
        "--out",
        "r.weir",
    )
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "r.json").read_text())
    # Four users who wait 20 ms each are far below the generator's limit.
    assert result["generator"]["max_rate_rps"] > 10 * result["throughput_rps"] > 0
    assert "the generator may be the limit: " in done.stdout
    assert " that the generator reaches on a server that does nothing" in done.stdout
    again = weir("report", "r.weir")
    assert again.stdout == done.stdout
    assert "that the generator reaches on a server that does nothing" in (tmp_path / "r.html").read_text()


@pytest.mark.parametrize(
    ("busy", "arguments"),
    [(0.84, []), (0.99, ["--no-generator-limit"]), (0.99, ["--abort-on", "errors>=0%", "-d", "1h"])],
)
def test_the_highest_rate_is_measured_only_where_it_says_something(
    weir: Weir, serve: Serve, engine_that_is_busy: Callable[[float], None], busy: float, arguments: list[str]
) -> None:
    engine_that_is_busy(busy)
    done = weir("load", f"http://{serve('null')}/", "-c", "4", "-d", "300ms", *arguments, "--json", "-")
    generator = json.loads(done.stdout)["generator"]
    assert generator["busy_fraction"] == busy
    assert generator["max_rate_rps"] is None


@pytest.mark.parametrize(
    "target", ["https://example.invalid/a?b=c", "unix:/no/such/socket:/path", "unix:/no/such/socket"]
)
def test_the_highest_rate_is_measured_with_the_request_wherever_it_goes(target: str) -> None:
    plan = LoadPlan(
        Request("POST", target, (("X-A", "b"),), b"{}"), OpenLoad(10.0, 4), 60.0, tls=Tls(insecure=True), requests=3
    )
    assert measure_on_null_server(plan, duration_s=0.2) > 100


def test_the_highest_rate_of_users_who_think_is_that_of_users_who_do_not() -> None:
    plan = LoadPlan(Request("GET", "http://example.invalid/"), ClosedLoad(((0.0, 0.0), (10.0, 8.0)), pace_s=60.0), 60.0)
    assert measure_on_null_server(plan, duration_s=0.2) > 100
