"""A workload: what one request asks, and what proves that the answer is right. Said once for all stacks, in `workloads/NAME.toml`.

A template holds `{{int LOW HIGH}}` and `{{word LENGTH}}`, drawn anew for every check. In `answer.json` the string `{{body}}` stands for the
JSON value that the request carried.
"""

import json
import random
import re
import string
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from weir.model.errors import UsageError
from weir.model.load import Request
from weir.model.template import pieces
from weir.places import data_folder
from weir.toml_file import Table, read_toml, validate

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]


class RequestTemplate(Table):
    """The request, with random inputs."""

    method: Method = "GET"
    path: str
    headers: dict[str, str] = Field(default_factory=dict)
    body: str | None = None

    @field_validator("path")
    @classmethod
    def _path_is_absolute(cls, path: str) -> str:
        if not path.startswith("/"):
            raise ValueError("expected a path that begins with '/'")
        return path

    @model_validator(mode="after")
    def _templates_render(self) -> "RequestTemplate":
        for text in (self.path, self.body or ""):
            render(text, random.Random(0))
        return self


class Answer(Table):
    """What a right answer is. Every key that is given must hold."""

    status: int = 200
    text_matches: str | None = None
    """A regular expression that the body, as text, must contain."""
    json_: Any = Field(default=None, alias="json")
    """The value that the body must be, as JSON."""

    @field_validator("text_matches")
    @classmethod
    def _pattern_compiles(cls, pattern: str | None) -> str | None:
        if pattern is not None:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"expected a regular expression: {error}") from None
        return pattern


class Workload(Table):
    """The file `workloads/ID.toml`."""

    schema_number: Literal[1] = Field(alias="schema")
    id: str
    title: str
    description: str = ""
    request: RequestTemplate
    answer: Answer

    def draw(self, base_url: str, inputs: random.Random, *, path: str | None = None) -> Request:
        """A request of this workload with inputs drawn from `inputs`.

        Args:
            base_url: scheme, host and port.
            inputs: the source of the random inputs; the same seed draws the same request.
            path: the stack's own path, where it differs from the workload's.
        """
        body = None if self.request.body is None else render(self.request.body, inputs).strip()
        return Request(
            method=self.request.method,
            target=base_url + render(path or self.request.path, inputs),
            headers=tuple(self.request.headers.items()),
            body=None if body is None else body.encode(),
        )

    def why_wrong(self, request: Request, status: int, body: bytes) -> str | None:
        """What is wrong with an answer to `request`; None where it is right."""
        if status != self.answer.status:
            return f"status: found {status}, expected {self.answer.status}; body {_excerpt(body)}"
        if self.answer.text_matches is not None and not re.search(self.answer.text_matches, body.decode("utf-8", "replace")):
            return f"body: found {_excerpt(body)}, expected text that matches {self.answer.text_matches!r}"
        if self.answer.json_ is not None:
            try:
                found = json.loads(body)
            except ValueError:
                return f"body: found {_excerpt(body)}, expected JSON"
            expected = _with_body(self.answer.json_, request.body)
            if not _same_json(found, expected):
                return f"body: found {_excerpt(body)}, expected {_excerpt(json.dumps(expected).encode())}"
        return None


def read_workload(workload_id: str) -> Workload:
    """The workload of that name.

    Raises:
        UsageError: there is no such workload, or its file is not valid.
    """
    folder = data_folder("workloads")
    path = folder / f"{workload_id}.toml"
    known = ", ".join(sorted(p.stem for p in folder.glob("*.toml")))
    workload = validate(Workload, read_toml(path, what="a workload", hint=f"known workloads: {known}"), path=path)
    if workload.id != path.stem:
        raise UsageError(f"{path}: id: found {workload.id!r}, expected {path.stem!r}, the file's name")
    return workload


def render(template: str, inputs: random.Random) -> str:
    """`template` with its placeholders drawn from `inputs`.

    Raises:
        ValueError: a placeholder is not known or has wrong arguments.
    """

    def draw(piece: str | list[str]) -> str:
        match piece:
            case str(text):
                return text
            case ["int", low, high]:
                return str(inputs.randint(int(low), int(high)))
            case ["word", length]:
                return "".join(inputs.choices(string.ascii_letters, k=int(length)))
        raise ValueError(f"unknown placeholder {{{{{' '.join(piece)}}}}}; expected {{{{int LOW HIGH}}}} or {{{{word LENGTH}}}}")

    return "".join(map(draw, pieces(template)))


def workload_files() -> list[Path]:
    """All workload files that travel with this weir."""
    return sorted(data_folder("workloads").glob("*.toml"))


def _with_body(expected: Any, body: bytes | None) -> Any:
    if expected == "{{body}}":
        return json.loads(body or b"null")
    if isinstance(expected, dict):
        return {key: _with_body(value, body) for key, value in expected.items()}
    if isinstance(expected, list):
        return [_with_body(value, body) for value in expected]
    return expected


def _same_json(found: Any, expected: Any) -> bool:
    """Equality of JSON values. Python holds True == 1, JSON does not."""
    if isinstance(found, bool) or isinstance(expected, bool):
        return found is expected
    if isinstance(found, dict) and isinstance(expected, dict):
        return found.keys() == expected.keys() and all(_same_json(found[key], expected[key]) for key in found)
    if isinstance(found, list) and isinstance(expected, list):
        return len(found) == len(expected) and all(map(_same_json, found, expected))
    return bool(found == expected)


def _excerpt(body: bytes) -> str:
    text = body.decode("utf-8", "replace")
    return repr(text if len(text) <= 120 else text[:117] + "...")
