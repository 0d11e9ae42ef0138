"""Reads a workload, `workloads/NAME.toml`: a request, and the conditions of a correct response, for several stacks.

Path and body may contain `{{int LOW HIGH}}` and `{{word LENGTH}}`: random inputs that every check draws again. In
`answer.json`, `{{body}}` is the request's JSON value. `{{sha256 TIMES INPUT}}` is SHA-256, applied TIMES times to the
path's random input number INPUT (from 1). `answer.rows` queries the dataset, with a `?` for each random input.
"""

import hashlib
import json
import random
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from weir.model.load import Method, Request
from weir.model.template import pieces
from weir.services.dataset import load_truth, render
from weir.stacks.invariant import Invariant
from weir.toml_file import DataFile, Table, read_data_file

_DIGEST = re.compile(r"\{\{sha256 (?P<times>\d+) (?P<input>\d+)\}\}")


class RequestTemplate(Table):
    """Request of a workload. Path and body may contain random inputs."""

    method: Method = "GET"
    """HTTP method."""
    path: str
    """Path and query of the request. The first character is `/`."""
    headers: dict[str, str] = Field(default_factory=dict)
    """Headers of the request. The keys are names of headers."""
    body: str | None = None
    """Body of the request. weir replaces only the random inputs."""

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


class Rows(Table):
    """Rows of the dataset in a correct response, as JSON objects. The objects' keys are column names."""

    sql: str
    match: Literal["all", "one"] = "all"
    """Form of a correct response. `all`: an array of all rows, in any order. `one`: an object with one of the rows."""
    lists: dict[str, str] = Field(default_factory=dict)
    """Additional keys of each object, each with an SQL query. The value of the key is an array of the query's rows."""

    def read(self, dataset_id: str, inputs: Sequence[str]) -> list[dict[str, Any]]:
        """Returns the rows of a correct response, each with its lists. `inputs`: the random inputs in the request's
        path. Raises ValueError with the query's key if the query is not valid for the dataset."""

        def query(key: str, sql: str) -> list[dict[str, Any]]:
            try:
                return load_truth(dataset_id).rows(sql, inputs)
            except ValueError as error:
                raise ValueError(f"{key}: {error}") from None

        rows = query("sql", self.sql)
        lists = {name: query(f"lists.{name}", sql) for name, sql in self.lists.items()}
        return [{**row, **lists} for row in rows]


class Work(Table):
    """Expected work of the databases for a request. If the measured work differs, reports mark the trial as suspect."""

    statements: float | None = Field(default=None, ge=0)
    """Number of statements per request, without control statements such as `BEGIN`."""
    rows: float | None = Field(default=None, ge=0)
    """Number of rows per request that these statements return or change."""
    rows_differ: str = ""
    """Reason why correct stacks may differ in the number of rows. With a reason, reports do not compare rows."""

    @model_validator(mode="after")
    def _rows_are_known_or_differ(self) -> "Work":
        if self.rows is not None and self.rows_differ:
            raise ValueError(f"rows_differ: found together with rows = {self.rows:g}, expected only one of the two")
        return self


class PlainAnswer(Table):
    """Conditions of a correct response that need no database. A correct response meets all conditions."""

    status: int = 200
    """Expected status code."""
    text_matches: str | None = None
    """Regular expression that must match a part of the body."""
    json_: Any = Field(default=None, alias="json")
    """Expected JSON value of the body."""

    @field_validator("text_matches")
    @classmethod
    def _pattern_compiles(cls, pattern: str | None) -> str | None:
        if pattern is not None:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"expected a valid regular expression: {error}") from None
        return pattern


class Answer(PlainAnswer):
    """Conditions of a correct response. A correct response meets all conditions."""

    rows: Rows | None = None


class Workload(DataFile):
    """The file `workloads/ID.toml`."""

    description: str = ""
    dataset: str | None = None
    """Dataset that the stack's database must contain."""
    services: list[str] = Field(default_factory=list)
    """Upstream services that the workload needs. weir starts an upstream only for workloads that name the upstream."""
    request: RequestTemplate
    answer: Answer
    work: Work = Field(default_factory=Work)
    invariant: dict[str, Invariant] = Field(default_factory=dict)
    """Conditions that the database must meet after the load. The keys are names of your choice."""

    @model_validator(mode="after")
    def _answers_can_be_told(self) -> "Workload":
        asking = [name for name, asked in (("answer.rows", self.answer.rows), ("invariant", self.invariant)) if asked]
        if asking and self.dataset is None:
            raise ValueError(f"{asking[0]}: found without 'dataset', expected both")
        inputs = self.inputs(render(self.request.path, random.Random(0)))
        try:
            _expect_json(self.answer.json_, b"null", inputs)
        except ValueError as error:
            raise ValueError(f"answer.json: {error}") from None
        if self.answer.rows is not None and self.dataset is not None:
            try:
                self.answer.rows.read(self.dataset, inputs)
            except ValueError as error:
                raise ValueError(f"answer.rows.{error}") from None
        return self

    def draw(self, base_url: str, inputs: random.Random, *, path: str | None = None) -> Request:
        """Returns a request with new random inputs. `path`: the stack's own path; None: the workload's path."""
        body = None if self.request.body is None else render(self.request.body, inputs)
        return Request(
            method=self.request.method,
            target=base_url + render(path or self.request.path, inputs),
            headers=tuple(self.request.headers.items()),
            body=None if body is None else body.encode(),
        )

    def inputs(self, path: str, template: str | None = None) -> list[str]:
        """Returns the random inputs in a request's path. `template`: the stack's path; None: the workload's path."""
        parts = pieces(template or self.request.path)
        match = re.fullmatch("".join(re.escape(one) if isinstance(one, str) else "(.+?)" for one in parts), path)
        return list(match.groups()) if match else []

    def step(self, request: Request, *, path: str | None = None) -> dict[str, Any]:
        """Returns a request as a step of a scenario, so that the generator checks every response. If several responses
        are correct, the step only checks that the body contains the name of a column. `path`: see `draw`."""
        asked = _split_path(request)
        inputs = self.inputs(asked, path)
        check: dict[str, Any] = {"status": [self.answer.status]}
        if self.answer.json_ is not None:
            check["json"] = {"": _expect_json(self.answer.json_, request.body, inputs)}
        elif self.answer.rows is not None and self.dataset is not None:
            rows = self.answer.rows.read(self.dataset, inputs)
            if len(rows) == 1 and self.answer.rows.match == "one":
                check["json"] = {"": rows[0]}
            elif rows:
                check["body_contains"] = json.dumps(list(rows[0])[-1])
        body, headers = {} if request.body is None else {"body": request.body.decode()}, map(list, request.headers)
        return {"method": request.method, "path": asked, "headers": list(headers), "check": check, **body}

    def why_wrong(self, request: Request, status: int, body: bytes, *, path: str | None = None) -> str | None:
        """Returns a sentence about the error in a response. None for a correct response. `path`: see `draw`."""
        inputs, pattern = self.inputs(_split_path(request), path), self.answer.text_matches
        if status != self.answer.status:
            return f"status: found {status}, expected {self.answer.status}; body {_shorten(body)}"
        if pattern is not None and not re.search(pattern, body.decode("utf-8", "replace")):
            return f"body: found {_shorten(body)}, expected text that matches {pattern!r}"
        has_rows = self.answer.rows is not None and self.dataset is not None
        if self.answer.json_ is None and not has_rows:
            return None
        try:
            found = json.loads(body)
        except ValueError:
            return f"body: found {_shorten(body)}, expected JSON"
        if self.answer.json_ is not None:
            expected = _expect_json(self.answer.json_, request.body, inputs)
            if not _is_same_json(found, expected):
                return f"body: found {_shorten(body)}, expected {_shorten(json.dumps(expected).encode())}"
        if self.answer.rows is not None and self.dataset is not None:
            return _compare_rows(body, found, self.answer.rows.read(self.dataset, inputs), self.answer.rows.match)
        return None


def read_workload(workload_id: str) -> Workload:
    """Reads a workload. Raises UsageError if the workload does not exist or its file is not valid."""
    return read_data_file(Workload, "workloads", workload_id)


def _expect_json(template: Any, body: bytes | None, inputs: list[str]) -> Any:
    """Returns the JSON value of a correct response: `template` (the value of `answer.json`) without placeholders.
    `body` and `inputs` are from the request. Raises ValueError if a digest refers to a missing input."""
    if isinstance(template, dict):
        return {key: _expect_json(value, body, inputs) for key, value in template.items()}
    if isinstance(template, list):
        return [_expect_json(value, body, inputs) for value in template]
    if template == "{{body}}":
        return json.loads(body or b"null")
    asked = _DIGEST.fullmatch(template) if isinstance(template, str) else None
    if asked is None:
        return template
    times, number = int(asked["times"]), int(asked["input"])
    if not 1 <= number <= len(inputs) or not times:
        expected = f"TIMES above 0, and INPUT as the number of one of {len(inputs)} random inputs"
        raise ValueError(f"{template}: expected {{{{sha256 TIMES INPUT}}}} with {expected}")
    digest = inputs[number - 1].encode()
    for _ in range(times):
        digest = hashlib.sha256(digest).digest()
    return digest.hex()


def _compare_rows(body: bytes, found: Any, rows: list[dict[str, Any]], match: Literal["all", "one"]) -> str | None:
    """Returns a sentence about the error in `found`, the parsed `body` of a response. None if `found` is correct."""
    if match == "one":
        if any(_is_same_json(found, row) for row in rows):
            return None
        one = f"the row {_shorten(json.dumps(rows[0]).encode())}" if len(rows) == 1 else ""
        return f"body: found {_shorten(body)}, expected {one or f'one of {len(rows)} rows of the dataset'}"
    if not isinstance(found, list):
        return f"body: found {_shorten(body)}, expected an array of {len(rows)} rows"
    missing = _subtract(rows, found)
    surplus = _subtract(found, rows)
    if not missing and not surplus:
        return None
    parts = [f"without {json.dumps(missing[0])}"] if missing else []
    parts += [f"with the wrong row {_shorten(json.dumps(surplus[0]).encode())}"] if surplus else []
    return f"body: found {len(found)} rows {' and '.join(parts)}; expected the {len(rows)} rows of the dataset"


def _subtract(rows: list[Any], others: list[Any]) -> list[Any]:
    """Returns the rows that `others` does not contain. A row that `rows` contains twice must also be there twice."""
    left = Counter(json.dumps(other, sort_keys=True) for other in others)
    missing = []
    for row in rows:
        key = json.dumps(row, sort_keys=True)
        if left[key] > 0:
            left[key] -= 1
        else:
            missing.append(row)
    return missing


def _is_same_json(found: Any, expected: Any) -> bool:
    """Returns whether two JSON values are equal. Unlike in Python, `true` does not equal 1."""
    if isinstance(found, bool) or isinstance(expected, bool):
        return found is expected
    if isinstance(found, dict) and isinstance(expected, dict):
        return found.keys() == expected.keys() and all(_is_same_json(found[key], expected[key]) for key in found)
    if isinstance(found, list) and isinstance(expected, list):
        return len(found) == len(expected) and all(map(_is_same_json, found, expected))
    return bool(found == expected)


def _split_path(request: Request) -> str:
    url = urlsplit(request.target)
    return f"{url.path}?{url.query}" if url.query else url.path


def _shorten(body: bytes) -> str:
    text = body.decode("utf-8", "replace")
    return repr(text if len(text) <= 120 else text[:117] + "...")
