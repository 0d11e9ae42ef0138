"""Recordings, OpenAPI files and collections with broken parts: weir converts the rest or reports an error, and never fails
in another way. Whatever weir writes is a valid scenario."""

import copy
import json
import random
import tomllib
from pathlib import Path
from typing import Any

import pytest

from weir.compat.convert import convert
from weir.compat.study_export import format_scenario
from weir.model.errors import UsageError
from weir.scenario import Scenario

JUNK: list[Any] = [None, True, 0, -1.5, "", "{{", "{{x}}", "é\0\n", [], {}, [None], {"a": None}, ["x"]]
JUNK += [{"$ref": "#/"}, {"$ref": "b.yaml#/a"}, {"$ref": 3}, "http://[", "://", "//h", {"key": None}, 10**30]
PAIR = {"key": "a", "value": "{{v}}", "type": "text"}
RECORDING = {
    "log": {
        "entries": [
            {
                "startedDateTime": "2026-03-01T10:00:00Z",
                "time": 5,
                "pageref": "p",
                "request": {
                    "method": "POST",
                    "url": "https://h/a?b=c",
                    "headers": [{"name": "Cookie", "value": "a=b"}],
                    "postData": {"mimeType": "multipart/form-data", "params": [{"name": "a", "value": "b"}]},
                },
                "response": {
                    "status": 302,
                    "headers": [{"name": "Location", "value": "/o/12345"}],
                    "content": {"mimeType": "application/json", "text": '{"a": [1]}'},
                },
            }
        ]
    }
}
API = {
    "openapi": "3.0.0",
    "servers": [{"url": "https://{a}.h/v1", "variables": {"a": {"default": "b"}}}],
    "security": [{"key": []}],
    "components": {"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "K"}}},
    "paths": {
        "/a/{id}": {
            "parameters": [{"in": "path", "name": "id", "required": True, "schema": {"enum": [1]}}],
            "get": {"operationId": "x", "servers": [{"url": "/"}], "responses": {"200": {}}},
            "post": {
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/json": {
                            "schema": {"allOf": [{"required": ["a"], "properties": {"a": {"items": {"example": 1}}}}]}
                        }
                    },
                }
            },
        }
    },
}
COLLECTION = {
    "auth": {"type": "bearer", "bearer": [{"key": "token", "value": "t"}]},
    "variable": [PAIR, {"key": "v", "value": "1"}],
    "item": [
        {
            "name": "f",
            "item": [
                {
                    "name": "r",
                    "event": [{"listen": "test", "script": {"exec": ["pm.globals.set('x', pm.response.json().a)"]}}],
                    "response": [{"code": 200}],
                    "request": {
                        "method": "POST",
                        "url": {"raw": "http://h/:p?a=b", "query": [PAIR], "variable": [{"key": "p", "value": "1"}]},
                        "header": [PAIR],
                        "body": {"mode": "urlencoded", "urlencoded": [PAIR]},
                    },
                }
            ],
        }
    ],
}


def list_places(value: Any) -> list[tuple[Any, Any]]:
    """Returns each container in a document with each of its keys or indexes."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [place for key in keys for place in [(value, key), *list_places(value[key])]]


@pytest.mark.parametrize(
    ("form", "document", "words"),
    [
        ("har", RECORDING, []),
        ("openapi", API, ["--with", "writes"]),
        ("openapi", API, ["--host", "http://h"]),
        ("postman", COLLECTION, []),
    ],
)
def test_a_broken_part_is_an_error_or_is_left_out(form: str, document: Any, words: list[str], tmp_path: Path) -> None:
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(document))
    assert convert(form, [str(path), *words]).scenario is not None
    for place in range(len(list_places(document))):
        for junk in random.Random(place).sample(JUNK, 3):
            broken = copy.deepcopy(document)
            holder, key = list_places(broken)[place]
            holder[key] = copy.deepcopy(junk)
            path.write_text(json.dumps(broken))
            try:
                found = convert(form, [str(path), *words])
            except UsageError:
                continue
            assert found.scenario is not None
            Scenario.model_validate(tomllib.loads(format_scenario(found.scenario)))
