"""A collection becomes steps in order. Variables without a value are named together; no script runs, no secret is written."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from weir.compat.convert import convert
from weir.compat.convert.conversion import Conversion
from weir.compat.convert.postman_script import read_script
from weir.compat.study_export import format_scenario
from weir.model.errors import UsageError

SECRET = "s3cr3t-Zq81kLm"
Collect = Callable[..., Conversion]


def request(name: str, url: Any, method: str = "GET", **how: Any) -> dict[str, Any]:
    script = how.pop("script", None)
    events = [{"listen": how.pop("listen", "test"), "script": {"exec": script}}] if script else []
    saved = [{"code": code} for code in how.pop("codes", [])]
    return {"name": name, "event": events, "response": saved, "request": {"method": method, "url": url, **how}}


@pytest.fixture
def collect(tmp_path: Path) -> Collect:
    """Returns a function that converts a collection with items. `more`: other keys of the collection."""

    def run(*items: dict[str, Any], words: tuple[str, ...] = (), **more: Any) -> Conversion:
        path = tmp_path / "shop.postman_collection.json"
        path.write_text(json.dumps({"info": {"name": "Shop"}, "item": items, **more}))
        return convert("postman", [str(path), *words])

    return run


def list_steps(found: Conversion) -> list[str]:
    assert found.scenario is not None
    return [f"{step.method} {step.path}" for step in found.scenario.steps]


def read_text(found: Conversion) -> str:
    assert found.scenario is not None
    return "\n".join([format_scenario(found.scenario), *found.notes])


def test_folders_give_the_order_and_the_names(collect: Collect) -> None:
    folder = {"name": "Orders", "item": [request("List", "{{url}}/orders", codes=[200, 404])]}
    found = collect(request("Home", "http://h/"), folder, words=("--var", "url=http://h/api"))
    assert list_steps(found) == ["GET /", "GET /api/orders"]
    assert found.scenario is not None
    assert [step.name for step in found.scenario.steps] == ["Home", "Orders / List"]
    assert [step.check.status for step in found.scenario.steps] == [None, [200]]


def test_values_come_from_the_command_line_then_the_environment_then_the_collection(
    collect: Collect, tmp_path: Path
) -> None:
    values = [
        {"key": "url", "value": "http://{{host}}", "enabled": True},
        {"key": "host", "value": "h"},
        {"key": "a", "value": "environment"},
        {"key": "b", "value": "environment"},
        {"key": "c", "value": "disabled", "enabled": False},
    ]
    (tmp_path / "local.json").write_text(json.dumps({"values": values}))
    variables = [{"key": name, "value": "collection"} for name in "abc"]
    words = ("-e", str(tmp_path / "local.json"), "--var", "a=given")
    found = collect(request("x", "{{url}}/{{a}}/{{b}}/{{c}}"), words=words, variable=variables)
    assert list_steps(found) == ["GET /given/environment/collection"]


def test_all_variables_without_a_value_are_named_at_once_with_their_requests(collect: Collect) -> None:
    with pytest.raises(UsageError) as error:
        collect(
            request("One", "{{url}}/a/:item", variable=[]),
            request("Two", {"raw": "{{url}}/b/:item", "variable": [{"key": "item", "value": ""}]}),
            request("Three", "{{url}}/c", "POST", body={"mode": "raw", "raw": '{"x": "{{y}}"}'}),
        )
    assert "found 3 variables without a value:" in error.value.message
    for line in ("url: One, Two, Three", "item: Two", "y: Three"):
        assert f"\n  {line}" in error.value.message
    assert "--var url=..." in error.value.hint


def test_a_part_of_a_response_that_a_script_stores_becomes_an_extraction(collect: Collect) -> None:
    found = collect(
        request("Login", "http://h/login", "POST", script=['pm.environment.set("tok en", pm.response.json().a.b[0]);']),
        request(
            "Me", "http://h/me/{{tok en}}", auth={"type": "bearer", "bearer": [{"key": "token", "value": "{{tok en}}"}]}
        ),
    )
    assert found.scenario is not None
    login, me = found.scenario.steps
    assert login.extract["tok_en"].json_ == "/a/b/0"
    assert (me.path, me.headers) == ("/me/{{tok_en}}", {"Authorization": "Bearer {{tok_en}}"})
    assert any("{{tok_en}} comes from /a/b/0 in the response of 'Login'" in note for note in found.notes)


@pytest.mark.parametrize(
    ("text", "pointers", "unknown", "does_more"),
    [
        ("pm.environment.set('a', pm.response.json().b)", {"a": "/b"}, set(), False),
        (
            "const j = pm.response.json();\npm.collectionVariables.set('a', j.b['c d'][2]);",
            {"a": "/b/c d/2"},
            set(),
            False,
        ),
        ("var d = JSON.parse(responseBody)\npostman.setEnvironmentVariable('a', d.id)", {"a": "/id"}, set(), False),
        ("let d = pm.response.json().data; let e = d.x;\npm.globals.set('a', e?.y)", {"a": "/data/x/y"}, set(), False),
        ("// pm.environment.set('a', pm.response.json().b)", {}, set(), False),
        ("pm.environment.set('a', Date.now())", {}, {"a"}, True),
        ("pm.environment.set('a', 'x' + pm.response.json().b)", {}, {"a"}, True),
        ("pm.test('fine', () => pm.response.to.have.status(200))", {}, set(), True),
    ],
)
def test_a_script_is_read_and_not_run(text: str, pointers: Any, unknown: set[str], does_more: bool) -> None:
    script = read_script(text)
    assert (script.pointers, script.unknown, script.does_more) == (pointers, unknown, does_more)


def test_a_request_that_needs_a_value_of_a_script_is_left_out_with_those_behind_it(collect: Collect) -> None:
    items = [
        request("First", "http://h/1", script=["pm.environment.set('sign', makeSign())"]),
        request("Second", "http://h/{{sign}}"),
        request("Third", "http://h/3"),
    ]
    found = collect(*items)
    assert list_steps(found) == ["GET /1"]
    assert any(
        note.startswith(
            "left out 2: requests, 'Second' and all later ones, because only scripts set {{sign}} (script of 'First')"
        )
        for note in found.notes
    )
    assert list_steps(collect(*items, words=("--var", "sign=7"))) == ["GET /1", "GET /7", "GET /3"]
    assert "left out 1: scripts, which weir does not run: First (test)" in found.notes


@pytest.mark.parametrize(
    ("auth", "headers", "path"),
    [
        ({"type": "bearer", "bearer": [{"key": "token", "value": SECRET}]}, {"Authorization": "Bearer {{env BEARER_TOKEN}}"}, "/"),
        ({"type": "bearer", "bearer": {"token": "{{token}}"}}, {"Authorization": "Bearer {{env TOKEN}}"}, "/"),
        (
            {"type": "basic", "basic": [{"key": "username", "value": "u"}, {"key": "password", "value": SECRET}]},
            {"Authorization": "Basic {{env BASIC_BASE64}}"},
            "/",
        ),
        ({"type": "apikey", "apikey": {"key": "X-K", "value": SECRET}}, {"X-K": "{{env API_KEY}}"}, "/"),
        (
            {"type": "apikey", "apikey": [{"key": "key", "value": "k"}, {"key": "in", "value": "query"}]},
            {},
            "/?k={{env API_KEY}}",
        ),
        ({"type": "noauth"}, {}, "/"),
    ],
)  # fmt: skip
def test_auth_of_the_collection_is_inherited_and_never_written(
    auth: Any, headers: dict[str, str], path: str, collect: Collect
) -> None:
    found = collect({"name": "Folder", "item": [request("x", "http://h/")]}, auth=auth)
    assert found.scenario is not None
    assert (found.scenario.steps[0].headers, found.scenario.steps[0].path) == (headers, path)
    assert SECRET not in read_text(found)


def test_the_auth_of_a_request_replaces_that_of_its_folder(collect: Collect) -> None:
    bearer = {"type": "bearer", "bearer": [{"key": "token", "value": SECRET}]}
    items = [request("a", "http://h/a", auth={"type": "noauth"}), request("b", "http://h/b")]
    found = collect({"name": "F", "item": items, "auth": bearer})
    assert found.scenario is not None
    assert [len(step.headers) for step in found.scenario.steps] == [0, 1]


@pytest.mark.parametrize(
    ("body", "media_type", "text"),
    [
        ({"mode": "raw", "raw": "{}", "options": {"raw": {"language": "json"}}}, "application/json", "{}"),
        ({"mode": "raw", "raw": "<a/>", "options": {"raw": {"language": "xml"}}}, "application/xml", "<a/>"),
        (
            {"mode": "urlencoded", "urlencoded": [{"key": "a", "value": "x y"}, {"key": "b", "disabled": True}]},
            "application/x-www-form-urlencoded",
            "a=x%20y",
        ),
        (
            {"mode": "graphql", "graphql": {"query": "{ me { id } }", "variables": '{"a": 1}'}},
            "application/json",
            '{"query": "{ me { id } }", "variables": {"a": 1}}',
        ),
        ({"mode": "raw", "raw": '{"id": "{{$guid}}", "n": {{$randomInt}}}'}, "application/json", '{"id": "{{uuid}}", "n": {{int 0 1000}}}'),
    ],
)  # fmt: skip
def test_bodies_of_each_mode(body: Any, media_type: str, text: str, collect: Collect) -> None:
    found = collect(request("x", "http://h/", "POST", body=body))
    assert found.scenario is not None
    step = found.scenario.steps[0]
    assert (step.headers["Content-Type"], step.body) == (media_type, text)


def test_a_form_with_a_file_is_left_out_and_one_without_is_sent(collect: Collect) -> None:
    file = {"mode": "formdata", "formdata": [{"key": "f", "type": "file", "src": "/a.pdf"}]}
    plain = {"mode": "formdata", "formdata": [{"key": "a", "value": "x", "type": "text"}]}
    found = collect(request("up", "http://h/", "POST", body=file), request("x", "http://h/", "POST", body=plain))
    assert found.scenario is not None
    assert 'name="a"\r\n\r\nx\r\n' in (found.scenario.steps[0].body or "")
    assert "left out 1: requests with files in a form: up" in found.notes


def test_disabled_headers_other_hosts_and_deletes_are_left_out(collect: Collect) -> None:
    header = [{"key": "A", "value": "1"}, {"key": "B", "value": "2", "disabled": True}]
    items = [
        request("a", "http://h/", header=header),
        request("b", "http://other/"),
        request("c", "http://h/", "DELETE"),
        request("d", "http://h/", auth={"type": "hawk"}),
        request("e", {"raw": "http://h/q?x=1&y=2", "query": [{"key": "x", "value": "1", "disabled": True}, {"key": "y", "value": "2"}]}),
    ]  # fmt: skip
    found = collect(*items)
    assert list_steps(found) == ["GET /", "GET /q?y=2"]
    assert found.scenario is not None
    assert found.scenario.steps[0].headers == {"A": "1"}
    notes = "\n".join(found.notes)
    assert "left out 1: requests to other hosts (--host chooses another host): http://other" in notes
    assert "left out 1: DELETE requests (--with deletes includes them): c" in notes
    assert "left out 1: requests with hawk authentication, which weir cannot make: d" in notes
    assert list_steps(collect(*items, words=("--host", "other"))) == ["GET /"]
    with pytest.raises(UsageError, match="--host: found 'none', expected one of the hosts"):
        collect(*items, words=("--host", "none"))


def test_secrets_of_environment_header_and_command_line_are_never_written(collect: Collect, tmp_path: Path) -> None:
    values = [{"key": "mine", "value": SECRET, "type": "secret"}, {"key": "apiKey", "value": SECRET + "2"}]
    (tmp_path / "local.json").write_text(json.dumps({"values": values}))
    header = [{"key": "Authorization", "value": f"Token {SECRET}3"}, {"key": "X", "value": "{{mine}}"}]
    body = {"mode": "raw", "raw": f'{{"password": "{SECRET}4", "n": {{{{n}}}}, "k": "{{{{apiKey}}}}"}}'}
    words = ("-e", str(tmp_path / "local.json"), "--var", f"token={SECRET}5", "--var", "n=3")
    found = collect(request("x", "http://h/?t={{token}}", "POST", header=header, body=body), words=words)
    text = read_text(found)
    assert SECRET not in text
    for name in ("MINE", "APIKEY", "AUTHORIZATION", "PASSWORD", "TOKEN"):
        assert f"{{{{env {name}}}}}" in text


@pytest.mark.parametrize("text", ["[]", "{}", '{"requests": []}', "no"])
def test_a_file_that_is_no_collection_is_an_error(text: str, tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(text)
    with pytest.raises(UsageError, match="expected a Postman collection"):
        convert("postman", [str(tmp_path / "c.json")])
