"""A workload, `workloads/NAME.toml`: a request, and the conditions of a correct response. All stacks share workloads.

A template may contain `{{int LOW HIGH}}` and `{{word LENGTH}}`. Every check draws new random values for them. In
`answer.json`, the string `{{body}}` is the JSON value of the request. `{{sha256 TIMES INPUT}}` is a digest of a random
input of the path, from 1. `answer.rows` is SQL on the workload's dataset, with a `?` for each random input.
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
    """The request, with random inputs."""

    method: Method = "GET"
    """HTTP method."""
    path: str
    """Path and query, beginning with /."""
    headers: dict[str, str] = Field(default_factory=dict)
    """Headers. The keys are names of headers."""
    body: str | None = None
    """Body, exactly as weir sends it."""

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
    """Rows of the dataset in a correct response, as JSON objects. The keys are column names."""

    sql: str
    match: Literal["all", "one"] = "all"
    """`all`: the response is an array of all these rows, in any order. `one`: it is one of these rows, as an object."""
    lists: dict[str, str] = Field(default_factory=dict)
    """Further keys of each object, each with an SQL query. Its value is an array of the query's rows, in order."""

    def read(self, dataset_id: str, inputs: Sequence[str]) -> list[dict[str, Any]]:
        """Returns the rows of a dataset, each with its lists, for the random inputs of a request's path. Raises
        ValueError, which names the key, if a query is not valid for this dataset."""

        def query(key: str, sql: str) -> list[dict[str, Any]]:
            try:
                return load_truth(dataset_id).rows(sql, inputs)
            except ValueError as error:
                raise ValueError(f"{key}: {error}") from None

        rows = query("sql", self.sql)
        lists = {name: query(f"lists.{name}", sql) for name, sql in self.lists.items()}
        return [{**row, **lists} for row in rows]


class Work(Table):
    """Expected work of the databases for a request. Other work makes a trial suspect."""

    statements: float | None = Field(default=None, ge=0)
    """Data statements per request."""
    rows: float | None = Field(default=None, ge=0)
    """Rows that these statements return or change, per request."""
    rows_differ: str = ""
    """Reason why correct stacks may differ in rows. If it is given, reports show rows without a comparison."""

    @model_validator(mode="after")
    def _rows_are_known_or_differ(self) -> "Work":
        if self.rows is not None and self.rows_differ:
            raise ValueError(f"rows_differ: found together with rows = {self.rows:g}, expected only one of the two")
        return self


class PlainAnswer(Table):
    """Conditions of a correct response without a database. All given keys must hold."""

    status: int = 200
    """Status code."""
    text_matches: str | None = None
    """A regular expression that must match somewhere in the body."""
    json_: Any = Field(default=None, alias="json")
    """The JSON value of the body."""

    @field_validator("text_matches")
    @classmethod
    def _pattern_compiles(cls, pattern: str | None) -> str | None:
        if pattern is not None:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"expected a regular expression: {error}") from None
        return pattern


class Answer(PlainAnswer):
    """Conditions of a correct response. All given keys must hold."""

    rows: Rows | None = None


class Workload(DataFile):
    """The file `workloads/ID.toml`."""

    description: str = ""
    dataset: str | None = None
    """Dataset of the stack's database."""
    services: list[str] = Field(default_factory=list)
    """Upstreams for this workload. An upstream runs only for workloads that name the upstream."""
    request: RequestTemplate
    answer: Answer
    work: Work = Field(default_factory=Work)
    invariant: dict[str, Invariant] = Field(default_factory=dict)
    """Conditions that the database must meet after a trial. The keys are names of your choice."""

    @model_validator(mode="after")
    def _answers_can_be_told(self) -> "Workload":
        asking = [name for name, asked in (("answer.rows", self.answer.rows), ("invariant", self.invariant)) if asked]
        if asking and self.dataset is None:
            raise ValueError(f"{asking[0]}: expected 'dataset', too")
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
        """Draws a request with random inputs. Uses the stack's own path if there is one."""
        body = None if self.request.body is None else render(self.request.body, inputs)
        return Request(
            method=self.request.method,
            target=base_url + render(path or self.request.path, inputs),
            headers=tuple(self.request.headers.items()),
            body=None if body is None else body.encode(),
        )

    def inputs(self, path: str, template: str | None = None) -> list[str]:
        """Returns the random inputs in the path of a request for `template`; None: the workload's path."""
        parts = pieces(template or self.request.path)
        match = re.fullmatch("".join(re.escape(one) if isinstance(one, str) else "(.+?)" for one in parts), path)
        return list(match.groups()) if match else []

    def step(self, request: Request, *, path: str | None = None) -> dict[str, Any]:
        """Returns `request`, drawn for `path`, as a step of a scenario, so that the generator checks every response. If
        several responses are correct, the step looks only for a column's name; `why_wrong` checks more."""
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
        """Returns a sentence about the error in a response to `request`, drawn for `path`; None if it is correct."""
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
    """Reads a workload. Raises UsageError if the workload does not exist, or its file is not valid."""
    return read_data_file(Workload, "workloads", workload_id)


def _expect_json(template: Any, body: bytes | None, inputs: list[str]) -> Any:
    """Returns the JSON value of a correct response to a request with this body and these inputs of its path. Raises
    ValueError if `template`, which is `answer.json`, has a digest of an input that does not exist."""
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
        expected = f"the number of one of {len(inputs)} random inputs of the path"
        raise ValueError(f"{template}: expected {{{{sha256 TIMES INPUT}}}} with {expected}")
    digest = inputs[number - 1].encode()
    for _ in range(times):
        digest = hashlib.sha256(digest).digest()
    return digest.hex()


def _compare_rows(body: bytes, found: Any, rows: list[dict[str, Any]], match: Literal["all", "one"]) -> str | None:
    """Returns a sentence about the error in `found`, the JSON value of `body`; None if the value is correct."""
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
    """Returns the rows that `others` lacks, counting repetitions."""
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
    """Compares JSON values. True == 1 holds in Python, but not in JSON."""
    if isinstance(found, bool) or isinstance(expected, bool):
        return found is expected
    if isinstance(found, dict) and isinstance(expected, dict):
        return found.keys() == expected.keys() and all(_is_same_json(found[key], expected[key]) for key in found)
    if isinstance(found, list) and isinstance(expected, list):
        return len(found) == len(expected) and all(map(_is_same_json, found, expected))
    return bool(found == expected)


def _split_path(request: Request) -> str:
    """Returns path and query of a request."""
    url = urlsplit(request.target)
    return f"{url.path}?{url.query}" if url.query else url.path


def _shorten(body: bytes) -> str:
    text = body.decode("utf-8", "replace")
    return repr(text if len(text) <= 120 else text[:117] + "...")
