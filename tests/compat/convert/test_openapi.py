"""Operations of an OpenAPI file become requests, with values of the file. weir invents no value and writes no secret."""

import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from weir.compat.convert import convert
from weir.compat.convert.conversion import Conversion
from weir.compat.convert.openapi_values import write_path, write_query
from weir.compat.study_export import format_scenario
from weir.model.errors import UsageError

Convert = Callable[..., Conversion]
OK: dict[str, Any] = {"responses": {"200": {"description": "fine"}}}


@pytest.fixture
def describe(tmp_path: Path) -> Convert:
    """Returns a function that converts an OpenAPI 3 file with the given paths."""

    def run(paths: dict[str, Any], *words: str, **more: Any) -> Conversion:
        content = {"openapi": "3.0.3", "servers": [{"url": "https://api.example/v1"}], "paths": paths, **more}
        (tmp_path / "api.json").write_text(json.dumps(content))
        return convert("openapi", [str(tmp_path / "api.json"), *words])

    return run


def list_requests(found: Conversion) -> list[str]:
    assert found.scenario is not None
    return [f"{step.method} {step.path}" for step in found.scenario.requests]


def query(name: str, **how: Any) -> dict[str, Any]:
    return {"in": "query", "name": name, "required": True, **how}


def test_get_operations_with_values_are_taken_and_the_others_are_counted(describe: Convert) -> None:
    writes = {"requestBody": {"content": {"application/json": {"example": {"a": 1}}}}, **OK}
    found = describe(
        {
            "/pets": {"get": {"operationId": "listPets", **OK}, "post": writes, "put": writes, "delete": OK},
            "/pets/{petId}": {"parameters": [{"in": "path", "name": "petId", "required": True}], "get": OK},
            "/old": {"get": {"deprecated": True, **OK}},
            "/hooked": {"get": {"callbacks": {"x": {}}, **OK}, "options": OK},
            "/far": {"get": {"servers": [{"url": "https://far.example"}], **OK}},
        }
    )
    assert list_requests(found) == ["GET /v1/pets", "GET /v1/hooked"]
    assert found.scenario is not None
    assert found.scenario.requests[0].name == "listPets"
    assert found.scenario.requests[0].check.status == [200]
    notes = "\n".join(found.notes)
    assert "converted: 2 of 9 requests (GET 2)" in notes
    assert "left out 2: operations that write: POST, PUT and PATCH (--with writes includes them)" in notes
    assert "left out 1: DELETE operations (--with deletes includes them)" in notes
    assert "left out 1: deprecated operations (--with deprecated includes them): GET /old" in notes
    assert "left out 1: OPTIONS and TRACE operations" in notes
    assert "left out 1: callbacks, which the server sends: GET /hooked" in notes
    assert "left out 1: operations of other hosts (--host URL chooses a host): https://far.example" in notes
    assert "GET /pets/{petId} needs petId" in notes
    assert "parameters without a value in the file: petId (1)" in notes


def test_options_take_writes_and_give_values(describe: Convert, tmp_path: Path) -> None:
    (tmp_path / "ids.csv").write_text("petId,other\n1,2\n")
    body = {"requestBody": {"required": True, "content": {"application/json": {"example": {"a": "é"}}}}}
    paths = {
        "/pets/{petId}": {"get": OK, "put": {**OK, **body}, "delete": {"operationId": "drop", **OK}},
        "/search": {"get": {"parameters": [{"in": "query", "name": "q"}], **OK}},
    }
    kinds = ("--with", "writes", "--with", "deletes")
    found = describe(paths, "--csv", str(tmp_path / "ids.csv"), "--set", "drop.petId=a/b", "--set", "q=x y", *kinds)
    assert list_requests(found) == [
        "GET /v1/pets/{{csv values.petId}}",
        "PUT /v1/pets/{{csv values.petId}}",
        "DELETE /v1/pets/a%2Fb",
        "GET /v1/search?q=x%20y",
    ]
    assert found.scenario is not None
    assert found.scenario.feeders["values"].file == str(tmp_path / "ids.csv")
    assert found.scenario.requests[1].body == '{"a": "é"}'
    assert found.scenario.requests[1].headers == {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("parameter", "written"),
    [
        (query("a", example="x"), "a=x"),
        (query("a", examples={"one": {"value": "x y"}}), "a=x%20y"),
        (query("a", schema={"type": "string", "example": "x"}), "a=x"),
        (query("a", schema={"examples": [7]}), "a=7"),
        (query("a", schema={"const": True}), "a=true"),
        (query("a", schema={"default": 0}), "a=0"),
        (query("a", schema={"enum": ["new", "old"]}), "a=new"),
        (query("a", schema={"allOf": [{"enum": ["new"]}]}), "a=new"),
        (query("a", schema={"oneOf": [{"type": "string"}, {"enum": ["b"]}]}), "a=b"),
        (query("a", schema={"type": "array", "items": {"enum": ["x"]}}), "a=x"),
        (query("a", schema={"$ref": "#/components/schemas/Kind"}), "a=small"),
    ],
)
def test_a_value_comes_from_any_place_of_the_file(parameter: Any, written: str, describe: Convert) -> None:
    components = {"schemas": {"Kind": {"type": "string", "enum": ["small"]}}}
    found = describe({"/a": {"get": {"parameters": [parameter], **OK}}}, components=components)
    assert list_requests(found) == [f"GET /v1/a?{written}"]


@pytest.mark.parametrize(
    ("how", "value", "written"),
    [
        ({}, ["x", "y"], "a=x&a=y"),
        ({"explode": False}, ["x", "y"], "a=x,y"),
        ({"style": "pipeDelimited", "explode": False}, ["x", "y"], "a=x%7Cy"),
        ({"style": "spaceDelimited", "explode": False}, ["x", "y"], "a=x%20y"),
        ({"style": "deepObject", "explode": True}, {"b": 1, "c": {"d": 2}}, "a%5Bb%5D=1&a%5Bc%5D%5Bd%5D=2"),
        ({}, {"b": 1, "c": True}, "b=1&c=true"),
        ({"collectionFormat": "csv"}, ["x", "y"], "a=x,y"),
        ({"collectionFormat": "multi"}, ["x", "y"], "a=x&a=y"),
    ],
)
def test_arrays_and_objects_in_a_query(how: dict[str, Any], value: Any, written: str) -> None:
    assert write_query({"name": "a", **how}, value) == written


@pytest.mark.parametrize(
    ("how", "value", "written"),
    [
        ({}, ["x", "y"], "x,y"),
        ({"style": "label", "explode": True}, ["x", "y"], ".x.y"),
        ({"style": "matrix"}, ["x", "y"], ";a=x,y"),
        ({"style": "matrix", "explode": True}, ["x", "y"], ";a=x;a=y"),
        ({"explode": True}, {"b": 1}, "b=1"),
        ({}, "a b/c", "a%20b%2Fc"),
    ],
)
def test_arrays_and_objects_in_a_path(how: dict[str, Any], value: Any, written: str) -> None:
    assert write_path({"name": "a", **how}, value) == written


def test_a_recursive_schema_has_no_value_and_weir_stops(describe: Convert) -> None:
    node = {"type": "object", "required": ["next"], "properties": {"next": {"$ref": "#/components/schemas/Node"}}}
    loop = {"$ref": "#/components/schemas/Loop"}
    body = {"required": True, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Node"}}}}
    paths = {
        "/tree": {"post": {"requestBody": body, **OK}},
        "/loop": {"get": {"parameters": [query("a", schema=loop)], **OK}},
        "/": {"get": OK},
    }
    found = describe(paths, "--with", "writes", components={"schemas": {"Node": node, "Loop": loop}})
    assert list_requests(found) == ["GET /v1/"]
    assert "left out 1: operations whose required body has no example in the file: POST /tree" in found.notes


def test_a_body_is_built_from_the_examples_of_required_properties(describe: Convert) -> None:
    properties = {"name": {"example": "Ann"}, "size": {"enum": [3]}, "note": {"type": "string"}}
    schema = {"type": "object", "required": ["name", "size"], "properties": properties}
    posts = {
        kind: {"post": {"requestBody": {"required": True, "content": {media: {"schema": schema}}}, **OK}}
        for kind, media in (("/json", "application/json"), ("/form", "application/x-www-form-urlencoded"))
    }
    file = {"properties": {"f": {"type": "string", "format": "binary"}}}
    posts["/file"] = {"post": {"requestBody": {"content": {"multipart/form-data": {"schema": file}}}, **OK}}
    found = describe(posts, "--with", "writes")
    assert found.scenario is not None
    assert [step.body for step in found.scenario.requests] == ['{"name": "Ann", "size": 3}', "name=Ann&size=3"]
    assert "left out 1: requests with files: POST /file" in found.notes


def test_security_becomes_placeholders_and_no_example_of_a_secret_is_written(describe: Convert) -> None:
    schemes = {
        "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
        "asked": {"type": "apiKey", "in": "query", "name": "k"},
        "kept": {"type": "apiKey", "in": "cookie", "name": "sid"},
        "http": {"type": "http", "scheme": "bearer"},
        "old": {"type": "http", "scheme": "basic"},
        "flow": {"type": "oauth2"},
    }
    paths = {f"/{name}": {"get": {"security": [{name: []}], **OK}} for name in schemes}
    paths["/free"] = {"get": {"security": [], "parameters": [query("password", example="hunter2-77")], **OK}}
    found = describe(paths, components={"securitySchemes": schemes}, security=[{"key": []}])
    assert found.scenario is not None
    requests = {step.path: step.headers for step in found.scenario.requests}
    assert requests["/v1/key"] == {"X-Key": "{{env KEY}}"}
    assert "/v1/asked?k={{env ASKED}}" in requests
    assert requests["/v1/kept"] == {"Cookie": "sid={{env KEPT}}"}
    assert requests["/v1/http"] == {"Authorization": "Bearer {{env HTTP}}"}
    assert requests["/v1/old"] == {"Authorization": "Basic {{env OLD_BASE64}}"}
    assert requests["/v1/flow"] == {"Authorization": "Bearer {{env FLOW}}"}
    assert requests["/v1/free?password={{env PASSWORD}}"] == {}
    assert "hunter2" not in format_scenario(found.scenario) + "".join(found.notes)


def test_a_file_of_version_2_in_yaml(tmp_path: Path) -> None:
    (tmp_path / "old.yaml").write_text(
        """
swagger: "2.0"
host: old.example
basePath: /v2
schemes: [http]
consumes: [application/json]
paths:
  /pets/{id}:
    get:
      parameters:
        - {in: path, name: id, required: true, type: integer, x-example: 4}
        - {in: query, name: since, required: true, type: string, default: 2026-01-01}
        - {in: query, name: kinds, required: true, type: array, items: {type: string, enum: [a]}}
      responses: {200: {description: fine}, default: {description: wrong}}
  /pets:
    post:
      parameters:
        - {in: body, name: pet, required: true, schema: {type: object, required: [on], properties: {on: {example: yes}}}}
      responses: {201: {description: made}}
  /form:
    post:
      parameters: [{in: formData, name: size, required: true, type: string, enum: [big]}]
      responses: {"204": {description: made}}
  /file:
    post:
      parameters: [{in: formData, name: f, type: file}]
"""
    )
    found = convert("openapi", [str(tmp_path / "old.yaml"), "--with", "writes"])
    assert found.spec.urls == ("http://old.example/",)
    assert list_requests(found) == ["GET /v2/pets/4?since=2026-01-01&kinds=a", "POST /v2/pets", "POST /v2/form"]
    assert found.scenario is not None
    assert [step.check.status for step in found.scenario.requests] == [[200], [201], [204]]
    assert [step.body for step in found.scenario.requests] == [None, '{"on": "yes"}', "size=big"]


@pytest.mark.parametrize(
    ("words", "servers", "target"),
    [
        (["--host", "http://127.0.0.1:8000"], [{"url": "https://api.example/v1"}], "http://127.0.0.1:8000 /v1/a"),
        (["--host", "http://h/api/"], [{"url": "https://api.example/v1"}], "http://h /api/a"),
        (["--host", "http://h"], [{"url": "/v3"}], "http://h /v3/a"),
        (["--host", "http://h"], [], "http://h /a"),
        ([], [{"url": "https://{who}.example", "variables": {"who": {"default": "me"}}}], "https://me.example /a"),
        (["--set", "who=you"], [{"url": "https://{who}.example", "variables": {"who": {}}}], "https://you.example /a"),
    ],
)
def test_the_host_comes_from_the_file_or_from_the_command_line(
    words: list[str], servers: Any, target: str, describe: Convert
) -> None:
    found = describe({"/a": {"get": OK}}, *words, servers=servers)
    assert f"{found.spec.urls[0].rstrip('/')} {list_requests(found)[0].removeprefix('GET ')}" == target


@pytest.mark.parametrize(
    ("content", "words", "message"),
    [
        ({"openapi": "3.0.0", "paths": {}}, [], "servers: found '/', expected a URL with a host"),
        ({"swagger": "2.0", "paths": {}}, [], "host: found '/', expected a URL with a host"),
        ({"openapi": "4.0.0"}, [], "found '4.0.0', expected an OpenAPI file of version 2 or 3"),
        ({"a": 1}, [], "found no key openapi or swagger"),
        ({"openapi": "3.1.0", "paths": {}}, ["--host", "h"], "--host: found 'h', expected a URL"),
        ({"openapi": "3.1.0", "paths": {}}, ["--host", "http://h"], "found no request that weir can send"),
        (
            {"openapi": "3.1.0", "paths": {}},
            ["--host", "http://h", "--set", "a=1"],
            "--set: found 'a', expected the name",
        ),
        (
            {"openapi": "3.1.0", "paths": {}},
            ["--host", "http://h", "--set", "a"],
            "--set: found 'a', expected NAME=VALUE",
        ),
    ],
)
def test_a_missing_or_wrong_part_is_an_error(content: Any, words: list[str], message: str, tmp_path: Path) -> None:
    (tmp_path / "api.json").write_text(json.dumps(content))
    with pytest.raises(UsageError, match=message.replace("(", r"\(")):
        convert("openapi", [str(tmp_path / "api.json"), *words])


def test_yaml_is_read_as_version_1_2(tmp_path: Path) -> None:
    values = ["NO", "12:30", "007", "2026-01-01", "1.5", "true"]
    parameter = "in: query, name: a, required: true, example:"
    lines = [f"  /{at}: {{get: {{parameters: [{{{parameter} {text}}}]}}}}" for at, text in enumerate(values)]
    (tmp_path / "a.yaml").write_text("openapi: 3.1.0\nservers: [{url: http://h}]\npaths:\n" + "\n".join(lines))
    found = convert("openapi", [str(tmp_path / "a.yaml")])
    expected = ["NO", "12%3A30", "007", "2026-01-01", "1.5", "true"]
    assert list_requests(found) == [f"GET /{at}?a={text}" for at, text in enumerate(expected)]


@pytest.mark.parametrize("text", ["a: [", "- 1", "a: &a [*a]\n\tb", "{" * 5000])
def test_a_file_that_is_neither_json_nor_yaml_is_an_error(text: str, tmp_path: Path) -> None:
    (tmp_path / "api.yaml").write_text(text)
    with pytest.raises(UsageError, match="expected an OpenAPI file"):
        convert("openapi", [str(tmp_path / "api.yaml")])


def test_a_file_behind_a_url_without_servers_has_the_host_of_the_url() -> None:
    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"openapi": "3.0.0", "paths": {"/a": {"get": OK}}}).encode())

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = Thread(target=server.handle_request)
        thread.start()
        base = f"http://127.0.0.1:{server.server_port}"
        found = convert("openapi", [f"{base}/docs/openapi.json"])
        thread.join()
    assert found.spec.urls == (f"{base}/",)
    assert list_requests(found) == ["GET /a"]
