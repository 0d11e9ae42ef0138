"""Tests the study that `weir compare` makes from a comparison at the prompt."""

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from weir.load_spec import LoadSpec, read_flags
from weir.model.errors import UsageError
from weir.model.load import Think, Tls
from weir.scenario import read_scenario
from weir.stacks.manifest import Stack
from weir.stacks.unmanaged import ExternalStack
from weir.study.comparison import Side, choose_path, name_sides, parse_side, write_study
from weir.study.study import Study, parse_study

URL = "http://127.0.0.1:8001"


def titles(*texts: str) -> list[str]:
    return [side.title for side in name_sides([parse_side(text) for text in texts])]


def names(*texts: str) -> list[str]:
    return [side.name for side in name_sides([parse_side(text) for text in texts])]


def study_of(sides: list[Side], spec: LoadSpec, scale: str = "quick", **settings: Any) -> Study:
    named = name_sides(sides)
    defaults: dict[str, Any] = {
        "workload": None, "answer": {"status": 200}, "warmups_s": {side.name: 1.0 for side in named}, "precision": 0.05,
        "budget_s": 120.0, "ready": {},
    }  # fmt: skip
    text = write_study(named, spec, **defaults | settings)
    return parse_study(Path("compare.toml").absolute(), text, tomllib.loads(text), scale)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (f"{URL}/", "url"),
        ("sanic", "stack"),
        ("sanic --port {port}", "command"),
        ("./run.sh {port}", "command"),
        ("sh", "command"),
    ],
)
def test_a_side_is_a_url_a_stack_or_else_a_command(text: str, kind: str) -> None:
    assert parse_side(text).kind == kind


def test_a_word_that_is_neither_a_stack_nor_a_program_is_rejected_with_a_similar_stack() -> None:
    with pytest.raises(UsageError, match="expected a command, a URL or a stack") as raised:
        parse_side("flask-gunicon")
    assert raised.value.hint == "did you mean flask-gunicorn?"
    with pytest.raises(UsageError) as raised:
        parse_side("no-such-stack")
    assert raised.value.hint == "weir stacks list"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("http://127.0.0.1:99999/", "expected http://HOST[:PORT]/PATH with a port from 1 to 65535", "--help"),
        ("http:///a", "expected http://HOST[:PORT]/PATH", "--help"),
        (
            "http://me:secret@127.0.0.1:8000/",
            "found a name and a password in the URL of 127.0.0.1",
            "-H 'Authorization",
        ),
        ("127.0.0.1:8000/items", "expected a URL that begins with http://", "http://127.0.0.1:8000/items"),
        ("localhost", "expected a URL that begins with http://", "http://localhost"),
        ("localhost:8000", "expected a URL that begins with http://", "http://localhost:8000"),
        ("./serve {prot}", "found the unknown field {prot} in './serve {prot}', expected {host} or {port}", "--help"),
        (" ", "found ' ', expected a command, a URL or a stack of weir", "--help"),
    ],
)
def test_a_side_that_is_nearly_right_is_rejected_with_what_to_write(text: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_side(text)
    assert message in raised.value.message
    assert "secret" not in raised.value.message
    assert hint in raised.value.hint


def test_a_study_names_the_key_of_a_command_with_an_unknown_field() -> None:
    content = tomllib.loads(
        study_of([parse_side("./a"), parse_side("./b")], LoadSpec(urls=("http://a/",), duration_s=2.0)).text
    )
    content["server"]["a"]["command"] = "./a {prot}"
    with pytest.raises(
        UsageError, match=r"server\.a\.command: .*found the unknown field \{prot\}, expected \{host\} or"
    ):
        parse_study(Path("mine.toml"), "", content, "quick")


def test_the_value_of_an_interpreters_option_is_not_taken_for_the_script() -> None:
    assert titles("python3 -m http.server {port}", "python3 -X dev -m http.server {port}") == [
        "http.server",
        "http.server -X dev",
    ]
    assert titles("java -cp lib.jar Main {port}", "node --require ./a.js serve.js {port}") == ["Main", "serve.js"]


def test_a_side_is_called_by_its_program_or_by_the_script_that_an_interpreter_runs() -> None:
    assert titles("gunicorn -b {host}:{port} app:app", "/opt/bin/uvicorn asgi:app --port {port}") == [
        "gunicorn",
        "uvicorn",
    ]
    assert titles("python3 -m http.server {port}", "node server.js", "php -S {host}:{port}") == [
        "http.server", "server.js", "php",
    ]  # fmt: skip
    assert titles(f"{URL}/", "http://127.0.0.1:8002/a") == ["127.0.0.1:8001", "127.0.0.1:8002/a"]


def test_sides_of_one_program_are_told_apart_by_their_words_and_equal_ones_by_number() -> None:
    assert titles("gunicorn -w 1 app:app", "gunicorn -w 4 app:app") == ["gunicorn 1", "gunicorn 4"]
    assert titles("./serve {port}", "./serve {port}") == ["serve #1", "serve #2"]
    assert names("./serve {port}", "./serve {port}") == ["serve-1", "serve-2"]


def test_a_command_that_is_called_like_a_stack_has_another_name_in_the_study() -> None:
    assert names("sanic app:app -p {port}", "uvicorn app:app") == ["sanic-command", "uvicorn"]


def test_the_study_starts_commands_loads_urls_and_knows_stacks() -> None:
    sides = [Side("./serve {port}", "command", env={"A": "1"}), Side(URL, "url", pids=()), Side("sanic", "stack")]
    study = study_of(sides, LoadSpec(urls=("http://server/",), duration_s=2.0), workload="echo")
    command, url, stack = [one.stack for one in study.cells(1) if one.cell.arm == "main"]
    assert isinstance(command, Stack)
    assert command.in_place
    assert command.environment({}, {"port": "8000"}) == {"PORT": "8000", "A": "1"}
    assert isinstance(url, ExternalStack)
    assert url.url == URL
    assert isinstance(stack, Stack)
    assert not stack.in_place


def test_the_first_side_is_the_baseline_and_runs_twice_in_each_block() -> None:
    study = study_of([parse_side("./a"), parse_side("./b")], LoadSpec(urls=("http://server/",), duration_s=2.0))
    assert [(one.stack.label, one.cell.arm) for one in study.cells(1)] == [("a", "main"), ("b", "main"), ("a", "aa")]
    assert (study.file.method.width, study.file.method.budget_s) == (0.05, 120.0)


def test_the_request_and_the_load_are_those_of_the_command_line() -> None:
    spec = LoadSpec(
        urls=("http://server/receive?x=1",), duration_s=2.0, connections=20, body=b'{"a": 1}', headers=(("X-Y", "z"),)
    )
    cell = study_of([parse_side("./a"), parse_side("./b")], spec).cells(1)[0]
    request = cell.request("http://127.0.0.1:1")
    assert (request.method, request.target, request.body) == ("POST", "http://127.0.0.1:1/receive?x=1", b'{"a": 1}')
    assert request.headers == (("X-Y", "z"),)
    assert cell.cell.load.connections == 20
    rate = study_of([parse_side("./a"), parse_side("./b")], replace(spec, rate_rps=100.0)).cells(1)[0]
    assert "100" in rate.cell.load.label


def test_a_load_that_limits_the_throughput_ends_when_the_response_time_is_known() -> None:
    sides, spec = [parse_side("./a"), parse_side("./b")], LoadSpec(urls=("http://server/",), duration_s=2.0)
    assert study_of(sides, spec).file.method.width_of == "throughput_rps"
    for limited in (replace(spec, rate_rps=100.0), replace(spec, users=5.0, think=Think(1.0, 1.0))):
        assert study_of(sides, limited).file.method.width_of == "response_time_us.p50"


@pytest.mark.parametrize("script", [None, "sleep(1)", "http.get(url)"])
def test_pauses_of_a_scenario_or_a_script_limit_the_throughput_too(tmp_path: Path, script: str | None) -> None:
    sides, spec = [parse_side("./a"), parse_side("./b")], LoadSpec(urls=("http://server/",), duration_s=2.0)
    tool = None
    if script is None:
        file = tmp_path / "scenario.toml"
        file.write_text('[[steps]]\npath = "/"\nthink = { constant_s = 1 }\n')
        spec = replace(spec, scenario=read_scenario(file), scenario_file=str(file))
    else:
        (tmp_path / "script.js").write_text(script)
        tool = ("k6", str(tmp_path / "script.js"))
    study = study_of(sides, spec, script=tool)
    is_limited = script != "http.get(url)"
    assert study.file.method.width_of == ("response_time_us.p50" if is_limited else "throughput_rps")
    assert {one.cell.load.limits_throughput for one in study.cells(1)} == {is_limited}


def test_the_client_certificate_is_that_of_the_command_line(tmp_path: Path) -> None:
    for name in ("client.pem", "client.key"):
        (tmp_path / name).write_text("-----BEGIN SOMETHING-----\n")
    given = {"tls_certificate": str(tmp_path / "client.pem"), "tls_key": str(tmp_path / "client.key")}
    spec = read_flags(("https://server/",), given)
    cell = study_of([parse_side("./a"), parse_side("./b")], replace(spec, duration_s=2.0), scheme="https").cells(1)[0]
    assert cell.tls == Tls(certificate=given["tls_certificate"], key=given["tls_key"])


def test_a_certificate_is_relative_to_the_study_and_a_missing_one_is_named_by_its_key(tmp_path: Path) -> None:
    text = write_study(
        name_sides([parse_side("./a"), parse_side("./b")]), LoadSpec(urls=("https://server/",), duration_s=2.0),
        workload=None, answer={}, warmups_s={"a": 1.0, "b": 1.0}, precision=0.05, budget_s=120.0, ready={},
    )  # fmt: skip
    content = tomllib.loads(text)
    content["load"] |= {"tls_certificate": "client.pem", "tls_key": "client.key"}
    study = parse_study(tmp_path / "mine.toml", "", content, "quick")
    with pytest.raises(UsageError, match=r"load\.tls_certificate: found '.*client.pem', expected a readable file"):
        study.cells(1)
    for name in ("client.pem", "client.key"):
        (tmp_path / name).write_text("-----BEGIN SOMETHING-----\n")
    assert study.cells(1)[0].tls == Tls(certificate=str(tmp_path / "client.pem"), key=str(tmp_path / "client.key"))


def test_messages_name_no_file_if_weir_has_written_the_study() -> None:
    sides, no_process = name_sides([parse_side(URL), parse_side("./b")]), 2**22 + 1
    text = write_study(
        [replace(sides[0], pids=(no_process,)), sides[1]], LoadSpec(urls=("http://server/",), duration_s=2.0),
        workload=None, answer={}, warmups_s=dict.fromkeys((one.name for one in sides), 1.0), precision=0.05,
        budget_s=120.0, ready={},
    )  # fmt: skip
    for is_written_by_weir, place in ((True, ""), (False, "/x/mine.toml: ")):
        path = Path("/x/mine.toml")
        study = parse_study(path, text, tomllib.loads(text), "quick", is_written_by_weir=is_written_by_weir)
        with pytest.raises(UsageError) as raised:
            study.cells(1)
        assert raised.value.message.startswith(f"{place}external.127-0-0-1-8001.pids: found {no_process}")
        with pytest.raises(UsageError) as raised:
            parse_study(path, text, {"schema": 2}, None, is_written_by_weir=is_written_by_weir)
        assert raised.value.message == f"{place}schema: found 2, expected 1"


def test_a_side_that_is_warm_sooner_is_warmed_up_for_less_long() -> None:
    warmups_s = {"a": 5.0, "b": 1.0}
    study = study_of(
        [parse_side("./a"), parse_side("./b")], LoadSpec(urls=("http://server/",), duration_s=2.0), warmups_s=warmups_s
    )
    assert {one.stack.label: one.method.warmup_s for one in study.cells(1)} == warmups_s


def test_the_scale_evidence_has_ten_blocks_and_no_budget() -> None:
    spec = LoadSpec(urls=("http://server/",), duration_s=2.0)
    method = study_of([parse_side("./a"), parse_side("./b")], spec, scale="evidence").file.method
    assert (method.blocks, method.width, method.budget_s) == (10, None, None)


def test_the_path_is_that_of_the_urls_unless_they_differ() -> None:
    both = [parse_side(f"{URL}/a?b=1"), parse_side("http://127.0.0.1:8002/a?b=1")]
    assert choose_path(both, None) == "/a?b=1"
    assert choose_path([parse_side("./a")], None) == "/"
    assert choose_path([parse_side("./a")], "/x") == "/x"
    with pytest.raises(UsageError, match="expected the same path for each side"):
        choose_path([both[0], parse_side("http://127.0.0.1:8002/c")], None)
    with pytest.raises(UsageError, match="expected only one path"):
        choose_path(both, "/x")
